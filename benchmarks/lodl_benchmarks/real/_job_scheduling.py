"""Jobs on machines of limited capacity, run when power is cheap: an exact search."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lodl._arrays import check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem

_FIRST_BUDGET = 1e-3  # of the cost without capacities: what the first search may add to it
_BUDGET_FACTOR = 4.0
_MAX_TRIED = 1_000  # starts in a search: about 20 ms; CP-SAT takes 100 ms
_MAX_KNOWN = 300_000  # packings to remember: about 200 MB
_COST_UNITS = 1e9  # CP-SAT's costs are whole numbers up to this one


class Job(NamedTuple):
    """A job that runs without a break, in periods counted from 0."""

    duration: int
    earliest_start: int
    latest_end: int
    power: float
    use: int


@dataclass(frozen=True)
class JobScheduling(LinearProblem):
    """Run every job on one machine, within the machine's capacity, at the least cost of power.

        min_z  sum_t z_t y_t,   z_t the power of all jobs that run in period t

    Jobs that run on a machine in the same period may together use no more than its capacity. A
    label is a vector (T,) of prices, which may be negative, a decision a vector (T,) of powers.
    There is no context.

    The solver is exact: a search over starts, first those that cost little more than all cheapest
    starts together, and CP-SAT if that takes long (costs rounded to a billionth of the largest).
    """

    jobs: tuple[Job, ...]  # the jobs
    capacities: tuple[int, ...]  # capacity of each machine, whole numbers
    n_periods: int = 48  # periods T
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
        packing = _packing(self.jobs, self.capacities)
        zs = np.zeros(y_hats.shape)
        for z, y_hat in zip(zs, y_hats, strict=True):
            for job, start in zip(packing.jobs, _cheapest(packing, y_hat), strict=True):
                z[start : start + job.duration] += job.power
        return zs


def _cheapest(packing: "_Packing", y_hat: Array) -> Sequence[int]:
    """Return the period in which each job starts in the cheapest schedule."""
    summed = np.concatenate([[0.0], np.cumsum(y_hat)])
    options, least = [], 0.0
    for job in packing.jobs:
        starts = np.arange(job.earliest_start, job.latest_end - job.duration + 1)
        cost = job.power * (summed[starts + job.duration] - summed[starts])
        order = np.argsort(cost, kind="stable")
        extra = cost[order] - cost[order[0]]
        options.append(list(zip(extra.tolist(), starts[order].tolist(), strict=True)))
        least += abs(float(cost[order[0]]))
    budget = _FIRST_BUDGET * least + np.finfo(float).tiny
    try:
        while (best := _search(packing, options, budget)) is None:
            if budget > sum(starts[-1][0] for starts in options):
                raise InvalidInputError("No schedule fits into the capacities.")
            budget *= _BUDGET_FACTOR
    except _SearchTooLongError:
        return _by_cp_sat(packing, options)
    return best


class _SearchTooLongError(Exception):
    """A search has tried too many starts."""


def _search(
    packing: "_Packing", options: Sequence[Sequence[tuple[float, int]]], budget: float
) -> tuple[int, ...] | None:
    """Return the cheapest schedule whose extra cost is below a budget, if there is one.

    `options` are, for each job, its starts, each after its cost beyond the cheapest one, in order;
    the budget is the cost beyond that of all cheapest starts.
    """
    best: tuple[int, ...] | None = None
    n_tried = 0

    def visit(starts: tuple[int, ...], spent: float) -> None:
        nonlocal best, budget, n_tried
        if len(starts) == len(options):
            best, budget = starts, spent
            return
        for extra, start in options[len(starts)]:
            if spent + extra >= budget:
                return
            n_tried += 1
            if n_tried > _MAX_TRIED:
                raise _SearchTooLongError
            if packing.fits((*starts, start)):
                visit((*starts, start), spent + extra)

    visit((), 0.0)
    return best


def _by_cp_sat(packing: "_Packing", options: Sequence[Sequence[tuple[float, int]]]) -> list[int]:
    """Return the starts of the cheapest schedule: the same as `_search`, by OR-Tools."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    running: list[list[Any]] = [[] for _ in packing.capacities]
    scale = _COST_UNITS / max(starts[-1][0] for starts in options)
    cost, variables = [], []
    for job, starts in zip(packing.jobs, options, strict=True):
        is_start = [model.new_bool_var("") for _ in starts]
        on_machine = [model.new_bool_var("") for _ in packing.capacities]
        model.add_exactly_one(is_start)
        model.add_exactly_one(on_machine)
        begin = model.new_int_var(0, job.latest_end, "")
        model.add(begin == sum(s * b for (_, s), b in zip(starts, is_start, strict=True)))
        for machine, chosen in enumerate(on_machine):
            new_interval = model.new_optional_fixed_size_interval_var
            running[machine].append(new_interval(begin, job.duration, chosen, ""))
        cost += [round(scale * e) * b for (e, _), b in zip(starts, is_start, strict=True)]
        variables.append(begin)
    uses = [job.use for job in packing.jobs]
    for intervals, capacity in zip(running, packing.capacities, strict=True):
        model.add_cumulative(intervals, uses, capacity)
    model.minimize(sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(model) != cp_model.OPTIMAL:
        raise InvalidInputError("No schedule fits into the capacities.")
    return [int(solver.value(begin)) for begin in variables]


class _Packing:
    """Whether jobs that start in given periods can be given machines. Answers are remembered.

    Args:
        jobs: The jobs. The attribute `jobs` has them in the order of the search: the large first.
        capacities: Capacity of each machine.
    """

    def __init__(self, jobs: tuple[Job, ...], capacities: tuple[int, ...]) -> None:
        self.jobs = sorted(jobs, key=lambda job: -job.use * job.duration**0.5)
        self.capacities = capacities
        self._known: dict[tuple[int, ...], tuple[int, ...] | None] = {}
        # The use of a machine is a whole number with `width` bits for each period. It counts from
        # what the largest number has beyond the capacity, so that a use beyond the capacity sets
        # the highest bit of a period.
        bits = max(capacities).bit_length()
        width, n_periods = bits + 1, max(job.latest_end for job in jobs)
        every = sum(1 << width * period for period in range(n_periods))
        self._full = every << bits
        self._empty = tuple(((1 << bits) - 1 - capacity) * every for capacity in capacities)
        self._uses = [
            {
                start: sum(job.use << width * (start + k) for k in range(job.duration))
                for start in range(job.earliest_start, job.latest_end - job.duration + 1)
            }
            for job in self.jobs
        ]

    def fits(self, starts: tuple[int, ...]) -> bool:
        """Return whether there are machines for the first jobs, with these starts."""
        if starts not in self._known:
            if len(self._known) > _MAX_KNOWN:
                self._known.clear()
            uses = [use[start] for use, start in zip(self._uses, starts, strict=False)]
            before = self._known.get(starts[:-1])
            loads = self._place(uses[-1:], before) if before else None
            # Machines that are all like the largest one leave less to search, and are quick to
            # show that there is no room.
            if loads is None and self._place(uses, (min(self._empty),) * len(self._empty)):
                loads = self._place(uses, self._empty)
            self._known[starts] = loads
        return self._known[starts] is not None

    def _place(self, uses: list[int], loads: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the loads of the machines with these uses besides, None if there is no room."""
        if not uses:
            return loads
        for machine, load in enumerate(loads):
            if not (load + uses[0]) & self._full and load not in loads[:machine]:
                more = (*loads[:machine], load + uses[0], *loads[machine + 1 :])
                if (placed := self._place(uses[1:], more)) is not None:
                    return placed
        return None


_packing = cache(_Packing)
