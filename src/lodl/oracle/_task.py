"""The work of one task in a worker: solver calls for some instances, scored as they return."""

import copy
import pickle
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lodl._arrays import context_of
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.errors import LodlError, OracleError, ProblemError
from lodl.oracle._failures import OK, FailedCall, Failure, Status, TaskError, what_failed
from lodl.oracle._guard import CtrlC, Guard, owned
from lodl.oracle._instances import Draws, Instances
from lodl.oracle._store import NO_ANSWER, Block, Run
from lodl.problems import Problem
from lodl.problems._regret import gradients, read_only, score, score_many
from lodl.samplers._samplers import BLOCK_SIZE

# Columns at which batches of a vectorised problem begin; later blocks are one batch each. Few
# samples cost few calls, many go in large batches. The last digits may depend on the batch.
_BATCH_EDGES = (0, 21, 51, 101, 251, BLOCK_SIZE + 1)
CHANGES_CONTEXT = "`solve` or `objective` changes the context it is given; let it work on a copy."
PLAIN = (np.ndarray, list, tuple, set, Mapping)  # contexts to copy and compare; others may cache
_LARGEST = 1e300  # largest loss: regrets, and their sums, stay finite

_kept = threading.local()  # the problem of this worker thread


@dataclass(frozen=True, eq=False)
class Task:
    """The same columns of some instances, row by row: 0 is the label, j is point j - 1."""

    instances: Instances
    draws: Draws
    start: int  # first column
    stop: int  # one after the last column
    label_scale: Array | None  # unit of the steps for slopes; None without slopes
    stop_at_failure: bool
    seconds: float  # time after which the task returns the calls made so far
    timeout: float | None  # longest time of a call
    is_scored: bool = True  # whether decisions are scored under the label
    returns_decisions: bool = False

    def batches(self, problem: Problem) -> list[tuple[int, int]]:
        """Return the columns that are solved at once, or, one by one, drawn at once."""
        edges = list(_BATCH_EDGES if problem.is_vectorised else (0, BLOCK_SIZE + 1))
        edges += range(2 * BLOCK_SIZE + 1, self.stop + BLOCK_SIZE + 1, BLOCK_SIZE)
        parts = [(max(a, self.start), min(b, self.stop)) for a, b in pairwise(edges)]
        return [part for part in parts if part[0] < part[1]]


class Result(NamedTuple):
    """The outcome of the first calls of a task."""

    n_done: int  # calls of the task that have an outcome
    n_calls: int  # solver calls made; a batch that fails is called again one by one
    runs: list[Run]
    seconds: float  # time that the calls took
    failures: list[Failure]
    decisions: dict[tuple[int, int], Any]  # by row and column


def answer(problem: Problem, task: Task) -> Result:
    """Make the calls of a task, as many as its time allows."""
    began = time.perf_counter()
    guard, rows = Guard(problem, task.timeout), list[_Row]()
    batches = task.batches(problem)
    with guard.alarm():
        for row in range(len(task.instances)):
            rows.append(_Row(guard, task, row, began + task.seconds))
            rows[-1].call_all(batches)
            if rows[-1].must_end():
                break
    return _result(task, rows, guard.n_calls, time.perf_counter() - began)


def given_up(problem: Problem, task: Task, reason: FailedCall) -> Result:
    """Return the result of a task whose only call ended its worker, or was abandoned."""
    row = _Row(Guard(problem), task, 0, 0.0)
    row.fail(reason)
    return _result(task, [row], 1, 0.0)


class _Row:
    """The calls of a task at one instance. Arrays hold a column for each, filled from the left."""

    def __init__(self, guard: Guard, task: Task, row: int, until: float) -> None:
        self.guard, self.task, self.row, self.until = guard, task, row, until
        self.problem, self.sign = guard.problem, 1 if guard.problem.sense == "min" else -1
        self.y = read_only(task.instances.y[row])
        self.context = _owned_context(context_of(task.instances.context, row))
        self.n_done, self.width = 0, task.stop - task.start
        self.answers = np.full(self.width, NO_ANSWER)
        self.loss, self.status = self.answers["loss"], self.answers["status"]
        self.decision = self.answers["decision"]
        self.slopes = _Slopes(self.problem, self.y, self.context, task.label_scale)
        self.failures: list[Failure] = []
        self.kept: dict[tuple[int, int], Any] = {}

    def must_end(self) -> bool:
        """Return whether to leave the remaining calls to a later task."""
        has_failed = self.task.stop_at_failure and self.failures
        return bool(has_failed) or time.perf_counter() > self.until

    def call_all(self, batches: list[tuple[int, int]]) -> None:
        """Make the calls until all are done, the label fails, or the task must end."""
        before = _content(self.context)
        for start, stop in batches:
            self._call(start, stop)
            if self._label_failed():
                self.status[self.n_done :] = Status.NO_OPTIMUM
                self.n_done = self.width
            if self.n_done == self.width or self.must_end():
                break
        if _content(self.context) != before:
            raise ProblemError(CHANGES_CONTEXT)

    def fail(self, error: BaseException) -> None:
        self._note(self.n_done, error)
        self.n_done += 1

    def runs(self) -> Iterator[Run]:
        """Yield the answers at the label and at the points, with their id and first column."""
        task, gradient = self.task, np.array(self.slopes.gradient).reshape(-1, self.y.size)
        n_labels = int(task.start == 0)
        edges = (0, n_labels, task.instances.ids), (n_labels, self.n_done, task.draws.ids)
        for first, last, ids in edges:
            if self.status[first:last].any():
                slopes, decision = gradient, self.decision[first:last]
                if len(gradient):
                    used, number = np.unique(decision[decision >= 0], return_inverse=True)
                    decision[decision >= 0], slopes = number, gradient[used]
                block = Block(self.answers[first:last], slopes, self._messages(first, last))
                yield ids[self.row], max(task.start - 1, 0), block

    def _messages(self, first: int, last: int) -> dict[str, str]:
        failures = () if self.task.stop_at_failure else self.failures
        inside = [f for f in failures if first <= f.column - self.task.start < last]
        return {f.status.name.lower(): f.message for f in reversed(inside)}

    def _label_failed(self) -> bool:
        return self.task.start == 0 and bool(self.status[0] > OK)

    def _call(self, start: int, stop: int) -> None:
        """Make the calls of some columns: at once, or one after another until time is up."""
        try:
            y_hats = self._predictions(start, stop)
            is_finite = bool(np.isfinite(y_hats).all())
        except Exception as error:  # noqa: BLE001 - the user's `project` may raise anything
            for _ in range(start, stop):
                self.fail(error)
            return
        is_batch = self.problem.is_vectorised and is_finite and len(y_hats) > 1
        if not (is_batch and self._call_at_once(y_hats.copy())):  # the solver may write to it
            for y_hat in y_hats:
                self._call_once(y_hat, is_finite=is_finite)
                if self.must_end() or (start == 0 and self._label_failed()):
                    return

    def _predictions(self, start: int, stop: int) -> Array:
        """Return the predictions of some columns, in arrays that solvers may write to."""
        task, label = self.task, self.y[np.newaxis]
        if stop == 1:
            return label.copy()
        first = max(start - 1, 0)
        points = task.draws.points(self.problem, task.instances, self.row, first, stop - 1)
        return points if start > 0 else np.concatenate([label, points])

    def _call_at_once(self, y_hats: Array) -> bool:
        """Solve a batch. Return False if that failed and each call must be made by itself."""
        first, last, losses = self.n_done, self.n_done + len(y_hats), np.zeros(len(y_hats))
        try:
            with self.guard.limited(len(y_hats)):
                zs = self.guard.solve_many(y_hats, self.context)
                if self.task.is_scored:
                    losses = score_many(self.problem, zs, self.y, self.context)
                    self.decision[first:last] = self.slopes.numbers(zs, losses)
        except BaseException as error:  # noqa: BLE001 - a solver may raise anything
            self.guard.forgive(error)
            return False
        if self.task.returns_decisions:
            self.kept |= {
                (self.row, column): owned(z) for column, z in enumerate(zs, self.task.start + first)
            }
        self.loss[first:last] = self.sign * losses
        self.status[first:last] = OK
        self.n_done = last
        for place in np.flatnonzero(~(np.abs(losses) < _LARGEST)).tolist():  # NaN is not
            self._note(first + place, _not_finite(losses[place]))
        return True

    def _call_once(self, y_hat: Array, *, is_finite: bool) -> None:
        column, value = self.n_done, 0.0
        try:
            if not (is_finite or np.isfinite(y_hat).all()):
                raise FailedCall(Status.BAD_POINT, "the point is not finite")
            with self.guard.limited():
                z = self.guard.solve(y_hat, self.context)
                if self.task.is_scored:
                    value = score(self.problem, z, self.y, self.context)
                    if not abs(value) < _LARGEST:  # NaN is not
                        raise _not_finite(value)
                    if self.task.label_scale is not None:
                        self.decision[column] = self.slopes.numbers([z], [value])[0]
        except BaseException as error:  # noqa: BLE001 - even SystemExit is the call's failure
            self.guard.forgive(error)
            self.fail(error)
            return
        if self.task.returns_decisions:
            self.kept[self.row, column + self.task.start] = owned(z)
        self.loss[column] = self.sign * value
        self.status[column] = OK
        self.n_done += 1

    def _note(self, column: int, error: BaseException) -> None:
        failure = Failure.of(error, self.row, column + self.task.start, self.context)
        self.answers[column] = np.nan, failure.status, -1
        self.failures.append(failure)


def _result(task: Task, rows: list[_Row], n_calls: int, seconds: float) -> Result:
    if task.stop_at_failure:  # calls that failed stay pending: the next run makes them again
        for row in rows:
            row.status[row.status != OK] = Status.PENDING
    return Result(
        sum(row.n_done for row in rows),
        n_calls,
        [run for row in rows if row.n_done for run in row.runs()],
        seconds,
        [failure for row in rows for failure in row.failures],
        {place: z for row in rows for place, z in row.kept.items()},
    )


def _owned_context(context: Any) -> Any:
    """Return a copy of a plain context, so that a solver cannot change the caller's."""
    with suppress(Exception):  # it may hold an object that cannot be copied
        return copy.deepcopy(context) if isinstance(context, PLAIN) else context
    return context


def _content(context: Any) -> bytes | None:
    with suppress(Exception):  # it may hold an object that cannot be pickled
        return pickle.dumps(context) if isinstance(context, PLAIN) else None
    return None


def _not_finite(value: float) -> FailedCall:
    kind = "a number that is not too large" if np.isfinite(value) else "a finite number"
    return FailedCall(Status.NON_FINITE, f"the objective is {value}, expected {kind}")


class _Slopes:
    """The derivatives of the loss by the label for the distinct decisions of one instance."""

    def __init__(self, problem: Problem, y: Array, context: Any, scale: Array | None) -> None:
        self._problem, self._y, self._context, self._scale = problem, y, context, scale
        self._numbers: dict[Any, int] = {}
        self.gradient: list[Array] = []

    def numbers(self, zs: Any, losses: Any) -> Any:
        """Return each decision's row of `gradient`, or -1 if slopes are not wanted."""
        if self._scale is None:
            return -1
        keys = [_key(z) for z in zs]
        new = {key: place for place, key in enumerate(keys) if key not in self._numbers}
        if new:
            places = list(new.values())
            fresh = zs[places] if isinstance(zs, np.ndarray) else [zs[place] for place in places]
            rows = gradients(self._problem, fresh, self._y, self._context, self._scale)
            if not np.isfinite(rows).all():
                raise FloatingPointError("the slope of the objective is not finite at the label")
            for (key, place), row in zip(new.items(), rows, strict=True):
                self._numbers[key] = self._number(row, float(losses[place]))
        return [self._numbers[key] for key in keys]

    def _number(self, row: Array, loss: float) -> int:
        """Return the number of a decision. Decisions of the same loss and derivative share one."""
        number = self._numbers.setdefault((loss, row.tobytes()), len(self.gradient))
        if number == len(self.gradient):
            self.gradient.append(row)
        return number


def _key(z: Any) -> Any:
    """Return a value that equal decisions share. Decisions that cannot be compared share none."""
    if isinstance(z, np.ndarray) and not z.dtype.hasobject:
        return z.shape, z.dtype.str, z.tobytes()
    if isinstance(z, int | float | str | bytes | np.generic):
        return type(z), z
    if isinstance(z, list | tuple):
        return tuple(map(_key, z))
    return object()


def work(key: str, pickled: bytes | None, pickled_task: bytes) -> Result | None:
    """Run a task, or return None if this worker thread does not have the problem yet."""
    # Each thread keeps its own problem from task to task: solvers are seldom safe to share.
    if getattr(_kept, "key", None) != key:
        if pickled is None:
            return None
        _kept.problem = _unpickle(pickled)
        _kept.key = key
    task = _unpickle(pickled_task)
    with one_blas_thread(), _as_task_error():
        return answer(_kept.problem, task)


def apply(call: bytes | tuple[Any, ...]) -> tuple[Any, int]:
    """Return `function(guard, *arguments)`, and the number of solver calls it made."""
    unpickled = _unpickle(call) if isinstance(call, bytes) else call
    function, problem, arguments, timeout, may_exit = unpickled
    guard = Guard(problem, timeout, may_exit=may_exit)
    try:
        with guard.alarm():
            return function(guard, *arguments), guard.n_calls
    except (CtrlC, LodlError):
        raise
    except BaseException as error:  # SystemExit, say, would end the parent
        raise OracleError(f"The problem failed: {what_failed(error, None)}") from error


def _unpickle(pickled: bytes) -> Any:
    with _as_task_error(while_unpickling=True):
        return pickle.loads(pickled)  # noqa: S301 - from the process that started us


@contextmanager
def _as_task_error(*, while_unpickling: bool = False) -> Iterator[None]:
    try:
        yield
    except LodlError:
        raise
    except BaseException as error:
        raise TaskError(f"{type(error).__name__}: {error}", while_unpickling) from error
