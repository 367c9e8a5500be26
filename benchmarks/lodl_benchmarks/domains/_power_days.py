"""Days of a power system: forecasts of load and wind, period by period."""

from dataclasses import dataclass

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl_benchmarks.domains._streams import streams


@dataclass(frozen=True, eq=False)
class PowerDays:
    """Features that are known on the evening before, and the noise that is not."""

    load: Array  # forecast, relative to its mean, shape (n_days, n_periods)
    wind_power: Array  # power of the forecast wind, between 0 and 1
    x: Array  # features of a period: load, speed of the wind, sine and cosine of the time of day
    noise: Array  # positive factors around 1


def power_days(purpose: str, seed: int, shape: tuple[int, int], noise: float) -> PowerDays:
    """Draw days.

        load_t = -cos(2 pi t / T) / 2 + cos(4 pi t / T) / 5 + 0.3 a_t
        wind_power_t = (min(max(b_t + 1, 0), 2) / 2)^3
        noise_t = exp(noise c_t)

    where a, b (the speed of the wind) and c are stationary autoregressive processes of variance 1
    that keep 90% of their value from one period to the next and begin each day anew.

    `purpose` is the name of the domain, so that no two domains have the same days.
    """
    n_periods = check_count("n_periods", shape[1])
    if not 0 <= noise < np.inf:
        raise InvalidInputError(f"`noise` must be at least 0 and finite, got {noise!r}.")
    load_rng, wind_rng, noise_rng = streams(purpose, seed, 3)
    angle = np.broadcast_to(2 * np.pi * np.arange(n_periods) / n_periods, shape)
    load = -np.cos(angle) / 2 + np.cos(2 * angle) / 5 + 0.3 * _autoregressive(load_rng, shape)
    wind = _autoregressive(wind_rng, shape)
    return PowerDays(
        load=load,
        wind_power=(np.clip(wind + 1, 0, 2) / 2) ** 3,
        x=np.stack([load, wind, np.sin(angle), np.cos(angle)], axis=-1),
        noise=np.exp(noise * _autoregressive(noise_rng, shape)),
    )


def _autoregressive(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    shocks = rng.standard_normal(shape)
    for period in range(1, shape[1]):
        shocks[:, period] *= np.sqrt(1 - 0.9**2)
        shocks[:, period] += 0.9 * shocks[:, period - 1]
    return shocks
