"""The work of one task: oracle calls for some instances, nothing else. Runs in workers."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl._validation import context_of
from lodl.oracle._failure import NO_OPTIMUM, OK, FailedCall, Failure, Status
from lodl.oracle._instances import Instances, Series
from lodl.oracle._marks import marker
from lodl.oracle._signals import Alarm, alarm_after
from lodl.problems import Problem
from lodl.problems._problem import sign_of
from lodl.problems._regret import decide, decide_many, gradients, read_only, score, score_many
from lodl.samplers._sampler import BLOCK_SIZE

_BATCH_EDGES = (0, 21, 51, 101, 251, BLOCK_SIZE + 1)
"""Columns at which batches of a vectorised problem begin; later blocks are one batch each.

The label is column 0. Small batches first: few samples cost few calls, many go in large batches.
Answers may depend on the batch in their last digits: the borders do not move with the work.
"""

_LARGEST = 1e300  # of a loss: regrets, and their sums, stay finite
_NO_GRADIENT = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Task:
    """The same columns of some instances, asked row by row: 0 is the label, j candidate j - 1."""

    instances: Instances
    series: Series  # how candidates are drawn
    start: int  # the first column
    stop: int  # one after the last
    spread: Array | None  # how far labels lie apart, where slopes are asked for
    stop_at_failure: bool
    seconds: float  # time after which to return what there is
    timeout: float | None  # longest time a call may take
    mark: tuple[str, int] | None = None  # file and place in which to note the calls being made

    def largest_batch(self, *, is_vectorised: bool) -> int:
        """Return the largest number of calls that are made at once."""
        if not is_vectorised:
            return 1
        return max(b - a for a, b in _batches(self.start, self.stop, is_vectorised))


@dataclass(eq=False)
class Result:
    """What became of the first calls of a task, as far as it came; arrays are as in `Shard`."""

    loss: Array
    status: npt.NDArray[np.uint8]
    decision: npt.NDArray[np.int32]
    gradient: Array
    n_gradients: npt.NDArray[np.int32]  # of each row that was begun
    failures: list[tuple[int, Failure]]  # with the row
    seconds: float = 0.0

    @classmethod
    def of_failure(cls, failure: Failure) -> "Result":
        """Return the result of a task whose only call ended its worker, or was given up."""
        status = np.array([failure.status], dtype=np.uint8)
        decision, n_gradients = np.array([-1], dtype=np.int32), np.zeros(1, dtype=np.int32)
        nothing = np.array([np.nan])
        return cls(nothing, status, decision, _NO_GRADIENT, n_gradients, [(0, failure)])


def ask(problem: Problem, task: Task) -> Result:
    """Make the calls of a task, as far as time allows."""
    began = time.perf_counter()
    with alarm_after(task.timeout) as alarm:
        asking = _Asking(problem, task, alarm, began + task.seconds)
        asking.ask_all()
    result = asking.result()
    result.seconds = time.perf_counter() - began
    return result


class _Asking:
    """The calls of a task, made in order, and what became of them."""

    def __init__(self, problem: Problem, task: Task, alarm: Alarm, until: float) -> None:
        self.problem, self.task, self.alarm, self.until = problem, task, alarm, until
        self.sign, self.is_vectorised = sign_of(problem), problem.is_vectorised
        self.labels = read_only(task.instances.y)
        self.mark = None if task.mark is None else marker(*task.mark)
        self.width = task.stop - task.start
        n_calls = len(self.labels) * self.width
        self.n_done = 0
        self.loss = np.full(n_calls, np.nan)
        self.status = np.zeros(n_calls, dtype=np.uint8)
        self.decision = np.full(n_calls, -1, dtype=np.int32)
        self.decisions: list[_Decisions] = []
        self.failures: list[tuple[int, Failure]] = []

    def ask_all(self) -> None:
        task, problem = self.task, self.problem
        batches = list(_batches(task.start, task.stop, self.is_vectorised))
        for row, y in enumerate(self.labels):
            context = context_of(task.instances.context, row)
            decisions = _Decisions(problem, y, context, task.spread)
            self.decisions.append(decisions)
            for start, stop in batches:
                self._ask_batch(row, start, stop, decisions)
                if self._label_failed(row):
                    self.status[self.n_done : (row + 1) * self.width] = NO_OPTIMUM
                    self.n_done = (row + 1) * self.width
                if self._must_end():
                    return
                if self.n_done == (row + 1) * self.width:
                    break

    def result(self) -> Result:
        done, rows = slice(0, self.n_done), [one.gradient for one in self.decisions]
        found = [gradient for row in rows for gradient in row]
        return Result(
            self.loss[done],
            self.status[done],
            self.decision[done],
            np.array(found) if found else _NO_GRADIENT,
            np.array([len(row) for row in rows], dtype=np.int32),
            self.failures,
        )

    def _must_end(self) -> bool:
        """Return whether to give back what there is and leave the rest to a later task."""
        failed = self.task.stop_at_failure and self.failures
        return bool(failed) or time.perf_counter() > self.until

    def _label_failed(self, row: int) -> bool:
        at = row * self.width
        return self.task.start == 0 and bool(self.status[at] > OK)

    def _ask_batch(self, row: int, start: int, stop: int, decisions: "_Decisions") -> None:
        """Ask for some columns at once if possible; if that fails, one by one, to learn which."""
        first = row * self.width + start - self.task.start
        try:
            y_hats = self._predictions(row, start, stop)
            is_finite = bool(np.isfinite(y_hats).all())
            if self.is_vectorised and stop - start > 1 and is_finite:
                if self._ask_at_once(first, y_hats, decisions):
                    return
                y_hats = self._predictions(row, start, stop)  # the solver may have written to them
        except Exception as error:  # noqa: BLE001 - `project` is the user's; without it all fail
            for place in range(first, first + stop - start):
                self._fail(place, error)
            self.n_done = first + stop - start
        else:
            self._ask_each(first, y_hats, decisions, is_finite=is_finite)

    def _predictions(self, row: int, start: int, stop: int) -> Array:
        """Return what is asked in some columns, in arrays that solvers may write to."""
        task, parts = self.task, []
        if start == 0:
            parts.append(self.labels[row : row + 1])
        if stop > 1:
            first = max(start - 1, 0)
            drawn = task.series.candidates(self.problem, task.instances, row, first, stop - 1)
            parts.append(drawn)
        return np.concatenate(parts)

    def _ask_at_once(self, first: int, y_hats: Array, decisions: "_Decisions") -> bool:
        """Ask for a batch, and return whether it succeeded."""
        problem, stop = self.problem, first + len(y_hats)
        try:
            if self.mark is not None:
                self.mark(first, stop)
            self.alarm.set(len(y_hats))
            zs = decide_many(problem, y_hats, decisions.context)
            losses = score_many(problem, zs, decisions.y, decisions.context)
            numbers = decisions.numbers(zs, losses)
            self.alarm.clear()
        except BaseException as error:  # noqa: BLE001 - a solver may raise anything
            self.alarm.forgive(error)
            return False
        self.loss[first:stop] = self.sign * losses
        self.decision[first:stop] = numbers
        self.status[first:stop] = OK
        self.n_done = stop
        if not np.abs(losses).max() < _LARGEST:  # NaN is not
            for place in first + np.flatnonzero(~(np.abs(losses) < _LARGEST)):
                self._fail(int(place), _not_finite(losses[place - first]))
        return True

    def _ask_each(
        self, first: int, y_hats: Array, decisions: "_Decisions", *, is_finite: bool
    ) -> None:
        """Ask one after another until time is up, or a call fails that ends the row or task."""
        problem, context, y, alarm = self.problem, decisions.context, decisions.y, self.alarm
        until, clock, mark, width = self.until, time.perf_counter, self.mark, self.width
        place, stop = first, first + len(y_hats)
        while place < stop:
            try:  # around the loop, where an alarm may ring between two calls
                for place in range(place, stop):  # noqa: B020 - `place` names the failed one
                    y_hat = y_hats[place - first]
                    if not (is_finite or np.isfinite(y_hat).all()):
                        raise FailedCall(Status.BAD_CANDIDATE, "the candidate is not finite")
                    if mark is not None:
                        mark(place, place + 1)
                    if alarm.is_armed:
                        alarm.set(1)
                    z = decide(problem, y_hat, context)
                    value = score(problem, z, y, context)
                    if not abs(value) < _LARGEST:  # NaN is not
                        raise _not_finite(value)
                    self.decision[place : place + 1] = decisions.numbers([z], [value])
                    self.loss[place] = self.sign * value
                    self.status[place] = OK
                    if clock() > until:
                        break
            except BaseException as error:  # noqa: BLE001 - even SystemExit is the call's failure
                alarm.forgive(error)
                self._fail(place, error)
            alarm.clear()
            place += 1
            self.n_done = place
            if self._must_end() or self._label_failed(first // width):
                return

    def _fail(self, place: int, error: BaseException) -> None:
        row, column = divmod(place, self.width)
        failure = Failure.of(error, column + self.task.start)
        self.loss[place], self.decision[place] = np.nan, -1
        self.status[place] = failure.status
        self.failures.append((row, failure))


def _not_finite(value: float) -> FailedCall:
    kind = "a number that is not too large" if np.isfinite(value) else "a finite number"
    return FailedCall(Status.NON_FINITE, f"the objective is {value}, expected {kind}")


class _Decisions:
    """The distinct decisions of one instance, by what their loss's derivative is."""

    def __init__(self, problem: Problem, y: Array, context: Any, spread: Array | None) -> None:
        self.problem, self.y, self.context, self.spread = problem, y, context, spread
        self.gradient: list[Array] = []
        self._numbers: dict[Any, int] = {}

    def numbers(self, zs: Any, losses: Any) -> Any:
        """Return the number of each decision, -1 for all where slopes are not asked for."""
        if self.spread is None:
            return -1
        keys = [_key(z) for z in zs]
        new = {key: place for place, key in enumerate(keys) if key not in self._numbers}
        if new:
            places = list(new.values())
            fresh = zs[places] if isinstance(zs, np.ndarray) else [zs[place] for place in places]
            rows = gradients(self.problem, fresh, self.y, self.context, self.spread)
            if not np.isfinite(rows).all():
                raise FloatingPointError("the slope of the objective is not finite at the label")
            for (key, place), row in zip(new.items(), rows, strict=True):
                self._numbers[key] = self._number(row, float(losses[place]))
        return [self._numbers[key] for key in keys]

    def _number(self, row: Array, loss: float) -> int:
        """Return the number of a decision: two of the same loss and derivative count as one."""
        number = self._numbers.setdefault((loss, row.tobytes()), len(self.gradient))
        if number == len(self.gradient):
            self.gradient.append(row)
        return number


def _key(z: Any) -> Any:
    """Return a value that equal decisions share; decisions that cannot be compared share none."""
    if isinstance(z, np.ndarray) and not z.dtype.hasobject:
        return z.shape, z.dtype.str, z.tobytes()
    if isinstance(z, int | float | str | bytes | np.generic):
        return type(z), z
    if isinstance(z, list | tuple):
        return tuple(map(_key, z))
    return object()


def _batches(start: int, stop: int, is_vectorised: bool) -> Iterator[tuple[int, int]]:
    """Give the batches that columns fall into; without vectorised calls, what is drawn at once."""
    edges = list(_BATCH_EDGES if is_vectorised else (0, BLOCK_SIZE + 1))
    edges += range(2 * BLOCK_SIZE + 1, stop + BLOCK_SIZE + 1, BLOCK_SIZE)
    for first, last in pairwise(edges):
        if first < stop and last > start:
            yield max(first, start), min(last, stop)
