"""The work of one task: oracle calls for some instances, nothing else. Runs in workers."""

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, InstanceContext
from lodl.oracle._failure import NO_OPTIMUM, OK, PENDING, Failure, Status
from lodl.oracle._instances import Series
from lodl.oracle._signals import Alarm, CallTimeoutError, alarm_after
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


@dataclass(frozen=True, eq=False)
class Row:
    """Calls to make for one instance.

    Attributes:
        number: The instance's number in the run.
        y: Its label.
        context: Its context.
        key: Names its random stream.
        centre: What its candidates lie around; None stands for the label.
        columns: The calls: 0 is the label, j is candidate j - 1, in ascending order.
    """

    number: int
    y: Array
    context: InstanceContext
    key: int
    centre: Array | None
    columns: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Task:
    """Calls for some instances.

    Attributes:
        rows: What to ask.
        series: How candidates are drawn; its centres are in the rows.
        spread: How far labels lie apart, where slopes are asked for; else None.
        stop_at_failure: Whether to return at the first failure.
        seconds: Time after which to return what there is.
        timeout: Longest time a call may take, or None.
        mark: File in which a worker notes the call it is about to make, so that its parent knows
            which one it died of, and the task's number, from 1; None where they share no files.
    """

    rows: list[Row]
    series: Series
    spread: Array | None
    stop_at_failure: bool
    seconds: float
    timeout: float | None
    mark: tuple[str, int] | None = None

    @property
    def n_calls(self) -> int:
        """Number of calls to make."""
        return sum(len(row.columns) for row in self.rows)

    def largest_batch(self, *, is_vectorised: bool) -> int:
        """Return the largest number of calls that are made at once."""
        if not is_vectorised:
            return 1
        spans = (span for row in self.rows for span in _spans(row.columns, is_vectorised))
        return max(stop - first for first, stop in spans)


@dataclass(eq=False)
class Found:
    """What was found out about one instance.

    Attributes:
        number: The instance's number in the run.
        columns: The calls made.
        loss: Decision loss of each, NaN where it failed.
        status: What became of each.
        decision: Which row of `gradient` each decision has; -1 where it failed or was not asked.
        gradient: Derivative of the loss of each distinct decision by the label, shape (m, D).
    """

    number: int
    columns: npt.NDArray[np.int32]
    loss: Array
    status: npt.NDArray[np.uint8]
    decision: npt.NDArray[np.int32]
    gradient: Array


@dataclass(eq=False)
class Result:
    """What a task found out; calls not listed were not made."""

    found: list[Found] = field(default_factory=list)
    failures: list[tuple[int, Failure]] = field(default_factory=list)  # with the row's number
    seconds: float = 0.0


def ask(problem: Problem, task: Task) -> Result:
    """Make the calls of a task, as far as time allows."""
    result, began = Result(), time.perf_counter()
    with alarm_after(task.timeout) as alarm, _marker(task.mark) as mark:
        for number, row in enumerate(task.rows):
            asking = _Asking(problem, task, row, alarm, began + task.seconds)
            asking.mark = mark and partial(mark, number)
            asking.ask_all()
            result.found.append(asking.found())
            result.failures += [(row.number, failure) for failure in asking.failures]
            if asking.must_end():
                break
    result.seconds = time.perf_counter() - began
    return result


class _Asking:
    """The calls for one instance, made in order."""

    def __init__(self, problem: Problem, task: Task, row: Row, alarm: Alarm, until: float) -> None:
        self.problem, self.task, self.row, self.alarm, self.until = problem, task, row, alarm, until
        self.sign = sign_of(problem)
        self.y = read_only(row.y)
        n = len(row.columns)
        self.n_done = 0
        self.loss = np.full(n, np.nan)
        self.status = np.zeros(n, dtype=np.uint8)
        self.decision = np.full(n, -1, dtype=np.int32)
        self.gradients = _Gradients(problem, self.y, row.context, task.spread)
        self.failures: list[Failure] = []
        self.mark: Callable[[int, int], None] | None = None

    def ask_all(self) -> None:
        columns = self.row.columns
        for first, stop in _spans(columns, self.problem.is_vectorised):
            try:
                y_hats = self._predictions(columns[first:stop])
            except Exception as error:  # noqa: BLE001 - `project` is the user's; without it all fail
                for place in range(first, stop):
                    self._fail(place, Failure.of(error, int(columns[place])))
            else:
                is_finite = np.asarray(np.isfinite(y_hats.reshape(len(y_hats), -1)).all(axis=1))
                if self.problem.is_vectorised and stop - first > 1 and is_finite.all():
                    self._ask_at_once(first, y_hats)
                else:
                    self._ask_each(first, y_hats, is_finite)
            if self._label_failed:
                self.status[self.n_done :] = NO_OPTIMUM
                self.n_done = len(columns)
            if self.must_end():
                return

    def must_end(self) -> bool:
        """Return whether to give back what there is and leave the rest to a later task."""
        failed = self.task.stop_at_failure and self.failures
        return bool(failed) or time.perf_counter() > self.until

    def found(self) -> Found:
        made = slice(0, self.n_done)
        return Found(
            self.row.number,
            self.row.columns[made],
            self.loss[made],
            self.status[made],
            self.decision[made],
            self.gradients.array(self.row.y.size),
        )

    def _predictions(self, columns: npt.NDArray[np.int32]) -> Array:
        """Return what is asked in some ascending columns, in arrays that solvers may write to."""
        row, parts = self.row, []
        if columns[0] == 0:
            parts, columns = [row.y[np.newaxis]], columns[1:]
        if len(columns):
            start, stop = int(columns[0]) - 1, int(columns[-1])
            drawn = self.task.series.candidates(
                self.problem, row.y, row.key, row.centre, start, stop
            )
            parts.append(drawn if len(drawn) == len(columns) else drawn[columns - 1 - start])
        return np.concatenate(parts)

    def _ask_at_once(self, first: int, y_hats: Array) -> None:
        """Ask for a batch, or, if that fails, for each prediction, to learn which one it was."""
        stop, context = first + len(y_hats), self.row.context
        try:
            if self.mark:
                self.mark(first, stop)
            self.alarm.set(len(y_hats))
            zs = decide_many(self.problem, y_hats.copy(), context)
            self.loss[first:stop] = score_many(self.problem, zs, self.y, context)
            if self.task.spread is not None:
                self.decision[first:stop] = self.gradients.see_many(zs, self.loss[first:stop])
        except BaseException as error:  # noqa: BLE001 - a solver may raise anything
            self.alarm.forgive(error)
            self._ask_each(first, y_hats, np.ones(len(y_hats), dtype=np.bool_))
        else:
            self.alarm.clear()
            self._settle(first, stop)

    def _ask_each(self, first: int, y_hats: Array, is_finite: npt.NDArray[np.bool_]) -> None:
        place, stop = first, first + len(y_hats)
        while place < stop and not self._label_failed and not (place > first and self.must_end()):
            place = self._ask_in_a_row(place, first, y_hats, is_finite)
        self._settle(first, place)

    def _ask_in_a_row(
        self, place: int, first: int, y_hats: Array, is_finite: npt.NDArray[np.bool_]
    ) -> int:
        """Ask one after another until a call fails or time is up; return where to go on."""
        problem, context, y, loss = self.problem, self.row.context, self.y, self.loss
        see = self.gradients.see if self.task.spread is not None else None
        alarm, until, clock, mark = self.alarm, self.until, time.perf_counter, self.mark
        try:
            for place in range(place, first + len(y_hats)):  # noqa: B020 - `place` names the failed
                if not is_finite[place - first]:
                    raise _BadCandidateError
                if mark is not None:
                    mark(place, place + 1)
                if alarm.is_armed:
                    alarm.set(1)
                z = decide(problem, y_hats[place - first], context)
                value = loss[place] = score(problem, z, y, context)
                if not abs(value) < _LARGEST:  # NaN is not
                    raise _NotFiniteError(value)
                if see is not None:
                    self.decision[place] = see(z, value)
                if clock() > until:
                    break
        except BaseException as error:  # noqa: BLE001 - even SystemExit is the call's failure
            alarm.forgive(error)
            self._fail(place, _failure(error, int(self.row.columns[place]), alarm))
        alarm.clear()
        return place + 1

    @property
    def _label_failed(self) -> bool:
        return bool(self.row.columns[0] == 0 and self.status[0] > OK)

    def _settle(self, first: int, stop: int) -> None:
        """Take finite losses for answers, and others for failures."""
        self.loss[first:stop] *= self.sign
        values, status = self.loss[first:stop], self.status[first:stop]
        is_new = status == PENDING
        is_finite = np.abs(values) < _LARGEST  # NaN is not
        status[is_new & is_finite] = OK
        for place in first + np.flatnonzero(is_new & ~is_finite):
            error, column = _NotFiniteError(self.sign * self.loss[place]), self.row.columns[place]
            self._fail(int(place), _failure(error, int(column), self.alarm))
        self.n_done = stop

    def _fail(self, place: int, failure: Failure) -> None:
        self.loss[place] = np.nan
        self.decision[place] = -1
        self.status[place] = failure.status
        self.failures.append(failure)
        self.n_done = max(self.n_done, place + 1)


class _BadCandidateError(Exception):
    """The candidate is not finite."""


class _NotFiniteError(Exception):
    """The objective is not finite, or too large."""

    def __init__(self, value: float) -> None:
        kind = "a number that is not too large" if np.isfinite(value) else "a finite number"
        super().__init__(f"the objective is {value}, expected {kind}")


def _failure(error: BaseException, column: int, alarm: Alarm) -> Failure:
    if isinstance(error, _BadCandidateError):
        return Failure(Status.BAD_CANDIDATE, column, "the candidate is not finite")
    if isinstance(error, _NotFiniteError):
        return Failure(Status.NON_FINITE, column, str(error))
    if isinstance(error, CallTimeoutError):
        return Failure.late(column, alarm.timeout)
    return Failure.of(error, column)


class _Gradients:
    """The distinct decisions of one instance, by what their loss's derivative is."""

    def __init__(
        self, problem: Problem, y: Array, context: InstanceContext, spread: Array | None
    ) -> None:
        self._of = (problem, y, context, spread)
        self._numbers: dict[Any, int] = {}
        self._rows: list[Array] = []

    def see(self, z: Any, loss: float) -> int:
        """Return the number of a decision, which may be a buffer that is written to again."""
        key = _key(z)
        number = self._numbers.get(key) if key is not None else None
        if number is None:
            number = self._number(self._compute([z])[0], loss)
            if key is not None:
                self._numbers[key] = number
        return number

    def see_many(self, zs: Any, losses: Array) -> npt.NDArray[np.int32]:
        """Return the number of each decision."""
        keys = [_key(z) for z in zs]
        if None in keys:
            numbers = [self.see(z, loss) for z, loss in zip(zs, losses, strict=True)]
            return np.array(numbers, dtype=np.int32)
        new = {key: place for place, key in enumerate(keys) if key not in self._numbers}
        if new:
            places = list(new.values())
            fresh = zs[places] if isinstance(zs, np.ndarray) else [zs[place] for place in places]
            rows = self._compute(fresh)
            for (key, place), row in zip(new.items(), rows, strict=True):
                self._numbers[key] = self._number(row, losses[place])
        return np.array([self._numbers[key] for key in keys], dtype=np.int32)

    def array(self, dim: int) -> Array:
        return np.array(self._rows).reshape(len(self._rows), dim)

    def _compute(self, zs: Any) -> Array:
        problem, y, context, spread = self._of
        assert spread is not None
        rows = gradients(problem, zs, y, context, spread)
        if not np.isfinite(rows).all():
            raise FloatingPointError("the slope of the objective is not finite at the label")
        return rows

    def _number(self, row: Array, loss: float) -> int:
        """Return the number of a decision: two of the same loss and derivative count as one."""
        key = ("row", float(loss), row.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self._rows)
            self._rows.append(row)
        return self._numbers[key]


def _key(z: Any) -> Any:
    """Return a value that equal decisions share, None for those that cannot be compared."""
    if isinstance(z, np.ndarray) and not z.dtype.hasobject:
        return z.shape, z.dtype.str, z.tobytes()
    if isinstance(z, int | float | str | bytes | np.generic):
        return type(z), z
    if isinstance(z, list | tuple):
        keys = tuple(_key(one) for one in z)
        return None if None in keys else keys
    return None


def _spans(columns: npt.NDArray[np.int32], is_vectorised: bool) -> Iterator[tuple[int, int]]:
    """Give the batches that ascending columns fall into, as places among them."""
    last = int(columns[-1]) + 1
    if last <= (_BATCH_EDGES[1] if is_vectorised else BLOCK_SIZE + 1):
        yield 0, len(columns)
        return
    edges = [*_BATCH_EDGES, *range(2 * BLOCK_SIZE + 1, last + BLOCK_SIZE + 1, BLOCK_SIZE)]
    if not is_vectorised:  # a batch is what is drawn at once
        edges = [0, *range(BLOCK_SIZE + 1, last + BLOCK_SIZE + 1, BLOCK_SIZE)]
    places = np.searchsorted(columns, edges)
    yield from ((int(a), int(b)) for a, b in pairwise(places) if a < b)


_MARK = struct.Struct("<qiiid")
_N_MARKS = 1024  # in a file: more than tasks are out at a time


@contextmanager
def _marker(mark: tuple[str, int] | None) -> Iterator[Callable[[int, int, int], None] | None]:
    """Give a function that notes which calls of which row are about to be made."""
    if mark is None:
        yield None
        return
    path, number = mark
    file, place = os.open(path, os.O_WRONLY), number % _N_MARKS * _MARK.size

    def note(row: int, first: int, stop: int) -> None:
        os.pwrite(file, _MARK.pack(number, row, first, stop, time.monotonic()), place)

    try:
        yield note
    finally:
        os.close(file)


class Mark(NamedTuple):
    """The calls that a worker noted.

    Attributes:
        row: Which row of the task.
        first: The first of its calls, as a place among its columns.
        stop: One after the last.
        began: When they began, by a clock that the processes of a machine share.
    """

    row: int
    first: int
    stop: int
    began: float


def marked_calls(task: Task) -> Mark | None:
    """Return the calls that a worker began last, None if it began none or shares no files."""
    if task.mark is None:
        return None
    path, number = task.mark
    with open(path, "rb") as file:  # noqa: PTH123 - a file of a few bytes
        content = file.read()[number % _N_MARKS * _MARK.size :][: _MARK.size]
    if len(content) < _MARK.size:
        return None
    noted, *rest = _MARK.unpack(content)
    return Mark(*rest) if noted == number else None
