from itertools import combinations, permutations

import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl_benchmarks.domains import EnergyScheduling, energy_scheduling

THREE_JOBS = EnergyScheduling((2, 3, 1), (1.0, 2.0, 3.0))


def schedules_of(problem, n_periods):
    """All schedules, each as a vector of powers."""
    jobs = list(zip(problem.durations, problem.powers, strict=True))
    for order in permutations(jobs):
        for starts in combinations(range(n_periods), len(jobs)):
            z, free = np.zeros(n_periods), 0
            for (duration, power), start in zip(order, starts, strict=True):
                if start < free or start + duration > n_periods:
                    break
                free = start + duration
                z[start:free] = power
            else:
                yield z


@pytest.mark.parametrize("n_periods", [6, 7, 9])
def test_the_schedule_is_the_cheapest_of_all(n_periods):
    schedules = np.array(list(schedules_of(THREE_JOBS, n_periods)))
    y_hats = np.random.default_rng(0).normal(size=(30, n_periods))  # negative prices, too
    zs = THREE_JOBS.solve_many(y_hats)
    best = (y_hats @ schedules.T).min(axis=1)
    np.testing.assert_allclose((zs * y_hats).sum(axis=1), best, atol=1e-12)
    for z in zs:
        assert z.tolist() in schedules.tolist()


def test_many_predictions_are_solved_in_blocks_without_a_trace():
    domain = energy_scheduling(sizes=(500, 1, 1))
    together = domain.problem.solve_many(domain.splits.train.y, None)
    for at in (0, 250, 499):
        alone = domain.problem.solve(domain.splits.train.y[at], None)
        np.testing.assert_array_equal(together[at], alone)


@pytest.mark.parametrize(
    ("durations", "powers", "message"),
    [
        ((0,), (1.0,), "`durations` must be a whole number"),
        ((), (), "There must be 1 to 12 jobs"),
        ((1,) * 13, (1.0,) * 13, "There must be 1 to 12 jobs"),
        ((1, 2), (1.0,), "`powers` must be 2 positive numbers"),
        ((1,), (-1.0,), "`powers` must be 1 positive numbers"),
    ],
)
def test_jobs_must_make_sense(durations, powers, message):
    with pytest.raises(InvalidInputError, match=message):
        EnergyScheduling(durations, powers)


def test_a_day_must_be_long_enough_for_all_jobs():
    with pytest.raises(InvalidInputError, match=r"at least 6 prices.*got shape \(5,\)"):
        THREE_JOBS.solve(np.zeros(5), None)
