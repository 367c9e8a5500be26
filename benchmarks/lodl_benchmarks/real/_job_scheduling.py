"""Jobs on machines of limited capacity, run when power is cheap: an exact search."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from lodl._arrays import check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem

_FIRST_BUDGET = 1e-3  # of the cost without capacities: what the first search may add to it
_BUDGET_FACTOR = 4.0


class Job(NamedTuple):
    """A job that runs without a break, in periods counted from 0."""

    duration: int
    earliest_start: int
    latest_end: int
    power: float
    use: int


class _Start(NamedTuple):
    """A period in which a job may start."""

    extra: float  # cost beyond that of the job's cheapest start
    period: int
    use: int  # what it takes of a machine in all periods, in the bits of a whole number


@dataclass(frozen=True)
class JobScheduling(LinearProblem):
    """Run every job on one machine, within the machine's capacity, at the least cost of power.

        min_z  sum_t z_t y_t,   z_t the power of all jobs that run in period t

    Jobs that run on a machine in the same period may together use no more than its capacity. A
    label is a vector (T,) of prices, which may be negative, a decision a vector (T,) of powers.
    There is no context.

    The solver is exact: depth first over the jobs, those of the largest use first, with the costs
    of all cheapest starts as a bound. It looks for schedules that cost little more than the bound
    first, then for dearer ones.

    Attributes:
        jobs: The jobs.
        capacities: Capacity of each machine, whole numbers.
        n_periods: Periods T.
    """

    jobs: tuple[Job, ...]
    capacities: tuple[int, ...]
    n_periods: int = 48
    sense = "min"

    def __post_init__(self) -> None:
        for job in self.jobs:
            last_start = min(job.latest_end, self.n_periods) - job.duration
            if not (0 <= job.earliest_start <= last_start and 0 < job.use <= max(self.capacities)):
                raise InvalidInputError(
                    f"A job must fit into its time, the {self.n_periods} periods and a machine, "
                    f"got {job}."
                )

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.shape[1:] != (self.n_periods,):
            raise InvalidInputError(
                f"A prediction must be a vector of {self.n_periods} prices, got shape "
                f"{y_hats.shape[1:]}."
            )
        jobs = sorted(self.jobs, key=lambda job: -job.use)
        zs = np.zeros(y_hats.shape)
        for z, y_hat in zip(zs, y_hats, strict=True):
            for job, start in zip(jobs, self._starts(jobs, y_hat), strict=True):
                z[start : start + job.duration] += job.power
        return zs

    def _starts(self, jobs: list[Job], y_hat: Array) -> list[int]:
        """Return the period in which each job starts in the cheapest schedule."""
        summed = np.concatenate([[0.0], np.cumsum(y_hat)])
        options, least = [], 0.0
        for job in jobs:
            starts = np.arange(job.earliest_start, job.latest_end - job.duration + 1)
            cost = job.power * (summed[starts + job.duration] - summed[starts])
            order = np.argsort(cost, kind="stable")
            extra = (cost[order] - cost[order[0]]).tolist()
            uses = [self._bits(job.use, int(s), job.duration) for s in starts[order]]
            options.append(list(map(_Start, extra, starts[order].tolist(), uses)))
            least += abs(float(cost[order[0]]))
        budget = _FIRST_BUDGET * least + np.finfo(float).tiny
        while True:
            best = self._search(options, budget)
            if best is not None:
                return best
            if budget > sum(starts[-1].extra for starts in options):
                raise InvalidInputError("No schedule fits into the capacities.")
            budget *= _BUDGET_FACTOR

    def _search(self, options: list[list[_Start]], budget: float) -> list[int] | None:
        """Return the cheapest schedule that costs less than the bound and a budget, if any."""
        full = self._bits(1 << self._width, 0, self.n_periods)
        best: list[int] | None = None
        starts = [0] * len(options)

        def visit(job: int, extra: float, loads: tuple[int, ...]) -> None:
            nonlocal best, budget
            if job == len(options):
                best, budget = starts.copy(), extra
                return
            for start in options[job]:
                if extra + start.extra >= budget:
                    return
                starts[job] = start.period
                for machine, load in enumerate(loads):
                    if not (load + start.use) & full:
                        loaded = (*loads[:machine], load + start.use, *loads[machine + 1 :])
                        visit(job + 1, extra + start.extra, loaded)

        # A load counts from what the largest number has beyond the capacity, so that it sets the
        # highest bit of a period if it exceeds the capacity.
        largest = (1 << self._width) - 1
        visit(0, 0.0, tuple(self._bits(largest - c, 0, self.n_periods) for c in self.capacities))
        return best

    @property
    def _width(self) -> int:
        """Bits of a capacity; a period has one more."""
        return max(self.capacities).bit_length()

    def _bits(self, value: int, start: int, duration: int) -> int:
        return _repeated(value, self._width + 1, start, duration)


@cache
def _repeated(value: int, width: int, start: int, duration: int) -> int:
    """Return a whole number that holds a value in the bits of each of some periods."""
    return sum(value << width * period for period in range(start, start + duration))
