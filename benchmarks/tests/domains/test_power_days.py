from math import cos, exp, pi, sin, sqrt

import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl_benchmarks import domains
from lodl_benchmarks.domains._power_days import power_days
from lodl_benchmarks.domains._streams import streams


def autoregressive(rng, n_days, n_periods):
    shocks = rng.standard_normal((n_days, n_periods))
    values = []
    for day in shocks.tolist():
        value = [day[0]]
        for shock in day[1:]:
            value.append(0.9 * value[-1] + sqrt(0.19) * shock)
        values.append(value)
    return values


@pytest.mark.parametrize(
    ("make", "purpose", "n_periods", "label"),
    [
        (
            domains.energy_scheduling,
            "energy scheduling",
            48,
            lambda load, wind, e: 20 + 30 * exp(2 * (load - wind)) * e,
        ),
        (domains.dispatch, "dispatch", 24, lambda load, wind, e: (3 + load - wind) * e),
    ],
)
def test_labels_are_those_of_the_formula(make, purpose, n_periods, label):
    part = make(5, sizes=(3, 1, 1), noise=0.2).splits.train
    a, b, c = (autoregressive(rng, 5, n_periods) for rng in streams(purpose, 5, 3))
    for day in range(3):
        for t in range(n_periods):
            angle = 2 * pi * t / n_periods
            load = -cos(angle) / 2 + cos(2 * angle) / 5 + 0.3 * a[day][t]
            wind_power = (min(max(b[day][t] + 1, 0), 2) / 2) ** 3
            features = [load, b[day][t], sin(angle), cos(angle)]
            np.testing.assert_allclose(part.x[day, t], features, atol=1e-12)
            expected = label(load, wind_power, exp(0.2 * c[day][t]))
            assert part.y[day, t] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("make", [domains.energy_scheduling, domains.dispatch])
def test_more_days_leave_the_first_ones_as_they_are(make):
    small, large = (make(sizes=(5, 5, n)).splits for n in (5, 50))
    np.testing.assert_array_equal(small.train.x, large.train.x)
    np.testing.assert_array_equal(small.test.y, large.test.y[:5])


def test_processes_have_variance_one_at_every_time_of_day():
    days = power_days("any", 0, (4000, 24), 1.0)
    np.testing.assert_allclose(np.log(days.noise).std(axis=0), 1, atol=0.05)
    np.testing.assert_allclose(days.x[..., 1].std(axis=0), 1, atol=0.05)


@pytest.mark.parametrize("noise", [-0.1, float("nan"), float("inf")])
def test_noise_must_be_finite_and_not_negative(noise):
    with pytest.raises(InvalidInputError, match="`noise` must be at least 0"):
        domains.dispatch(noise=noise)
