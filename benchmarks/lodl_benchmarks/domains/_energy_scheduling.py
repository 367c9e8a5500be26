"""Energy scheduling: run jobs when power is cheap."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains import Domain
from lodl.domains._domain import Sizes, check_sizes, in_blocks
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem
from lodl_benchmarks.domains._power_days import power_days
from lodl_benchmarks.domains._streams import streams

_MAX_JOBS = 12
_BLOCK_SIZE = 2**18  # numbers in the table of least costs: 2 MB


def energy_scheduling(
    seed: int = 0, *, sizes: Sizes = (200, 100, 400), noise: float = 0.5
) -> Domain:
    """Energy scheduling: run the jobs of a machine when power is cheap, by predicted prices.

    Data: an instance is a day of 48 half hours. Forecasts of the load and of the speed of the wind
    and the time of day are known; the label is the price, which explodes when little wind power
    (a cubic of the speed, up to a limit) meets a high load,

        y_t = 20 + 30 exp(2 (load_t - wind_power_t)) * e_t,

    with persistent noise e_t of logarithmic standard deviation `noise`. Five jobs, the same every
    day, last 2 to 8 half hours each and draw a power between 1 and 5. x has shape (n, 48, 4), y has
    shape (n, 48). Model: one linear model for all half hours, which can follow neither the
    exponential nor the cubic. Problem: `EnergyScheduling`; in batches of 500 a call takes 30 µs.

    Scheduling under predicted prices is a standard task of the literature (Mandi et al., Smart
    predict-and-optimize for hard combinatorial optimization problems, 2020), on prices of the Irish
    market and several machines; here prices are generated, and there is one machine. The
    least-squares model has a relative test regret of 0.06.

    Args:
        seed: Random seed for the days and the jobs.
        sizes: Number of training, validation and test days.
        noise: Standard deviation of the logarithm of the noise.
    """
    sizes = check_sizes(sizes)
    days = power_days("energy scheduling", seed, (sum(sizes), 48), noise)
    y = 20 + 30 * np.exp(2 * (days.load - days.wind_power)) * days.noise
    (job_rng,) = streams("energy scheduling, jobs", seed, 1)
    durations = tuple(job_rng.integers(2, 9, size=5).tolist())
    powers = tuple(job_rng.uniform(1, 5, size=5).tolist())
    return Domain.in_order(EnergyScheduling(durations, powers), sizes, days.x, y)


@dataclass(frozen=True)
class EnergyScheduling(LinearProblem):
    """Run jobs on a machine, one at a time and none with a break, at the least cost of power.

        min_z  sum_t z_t y_t,   z_t the power of the job that runs in period t, 0 if none does

    A label is a vector (T,) of prices, a decision a vector (T,) of powers. There is no context.
    Prices may be negative.

    Attributes:
        durations: Periods that each job lasts.
        powers: Power that each job draws, positive.
    """

    durations: tuple[int, ...]
    powers: tuple[float, ...]
    sense = "min"

    def __post_init__(self) -> None:
        for duration in self.durations:
            check_count("durations", duration)
        n_jobs = len(self.durations)
        if not 1 <= n_jobs <= _MAX_JOBS:
            raise InvalidInputError(f"There must be 1 to {_MAX_JOBS} jobs, got {n_jobs}.")
        if len(self.powers) != n_jobs or not all(0 < power < np.inf for power in self.powers):
            raise InvalidInputError(
                f"`powers` must be {n_jobs} positive numbers, one per job, got {self.powers}."
            )

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.ndim != 2 or y_hats.shape[1] < sum(self.durations):
            raise InvalidInputError(
                f"A prediction must be a vector of at least {sum(self.durations)} prices, as many "
                f"as the jobs last together, got shape {y_hats.shape[1:]}."
            )
        rows = _BLOCK_SIZE // (2 ** len(self.durations) * (y_hats.shape[1] + 1))
        return in_blocks(self._schedule, y_hats, rows)

    def _schedule(self, y_hats: Array) -> Array:
        """Return the schedule of each prediction, from its last job back to the first."""
        last, end = self._table(y_hats)
        n, n_periods = y_hats.shape
        durations, powers = np.array(self.durations), np.array(self.powers)
        each, periods = np.arange(n), np.arange(n_periods)
        jobs, time = np.full(n, len(last) - 1), np.full(n, n_periods)
        zs = np.zeros(y_hats.shape)
        for _ in self.durations:
            time = end[jobs, each, time]
            job = last[jobs, each, time].astype(np.intp)
            start = time - durations[job]
            is_on = (periods >= start[:, np.newaxis]) & (periods < time[:, np.newaxis])
            zs += powers[job, np.newaxis] * is_on
            jobs, time = jobs - (1 << job), start
        return zs

    def _table(self, y_hats: Array) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int16]]:
        """Return how to run every set of jobs by every time at the least cost.

            cost(jobs, t) = min(cost(jobs, t - 1), min_j cost(jobs - j, t - d_j) + p_j (y_s + ...))

        where s = t - d_j is when the last job j starts. A set of jobs is a number, bit by bit.

        Returns:
            The last job if it ends at a time, and when it ends, both of shape (sets, k, T + 1).
        """
        n, n_periods = y_hats.shape
        shape = (2 ** len(self.durations), n, n_periods + 1)
        cost, last, end = np.zeros(shape), np.zeros(shape, np.int8), np.zeros(shape, np.int16)
        summed = np.concatenate([np.zeros((n, 1)), np.cumsum(y_hats, axis=1)], axis=1)
        running = [
            power * (summed[:, duration:] - summed[:, :-duration])
            for duration, power in zip(self.durations, self.powers, strict=True)
        ]
        times = np.arange(1, n_periods + 1, dtype=np.int16)
        for jobs in range(1, len(cost)):
            ending = np.full(shape[1:], np.inf)  # the cost if the last job ends at a time
            for job, duration in enumerate(self.durations):
                if jobs >> job & 1:
                    total = cost[jobs - (1 << job)][:, :-duration] + running[job]
                    np.putmask(last[jobs][:, duration:], total < ending[:, duration:], job)
                    np.minimum(ending[:, duration:], total, out=ending[:, duration:])
            np.minimum.accumulate(ending, axis=1, out=cost[jobs])
            is_end = cost[jobs][:, 1:] < cost[jobs][:, :-1]
            np.maximum.accumulate(is_end * times, axis=1, out=end[jobs][:, 1:])
        return last, end
