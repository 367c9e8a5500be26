"""The work of one task in a worker: solver calls for some instances, scored as they return."""

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lodl._arrays import context_of, distinct_rows
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.errors import LodlError, OracleError, ProblemError
from lodl.oracle._failures import OK, FailedCall, Failure, Options, Status, TaskError, what_failed
from lodl.oracle._guard import PLAIN, CtrlC, Guard, owned, owned_context
from lodl.oracle._instances import Draws, Instances
from lodl.oracle._store import NO_ANSWER, Block
from lodl.problems import LinearProblem, Problem
from lodl.problems._regret import gradients, read_only, score, score_rows
from lodl.samplers import BLOCK_SIZE

# Columns at which batches of a vectorised problem begin; later blocks are one batch each. Few
# samples cost few calls, many go in large batches. The last digits may depend on the batch.
_BATCH_EDGES = (0, 21, 51, 101, 251, BLOCK_SIZE + 1)
_MAX_TOGETHER = 4096  # calls of several instances in one batch
CHANGES_CONTEXT = "`solve` or `objective` changes the context it is given; let it work on a copy."
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
    seconds: float  # time after which the task returns the calls made so far
    options: Options
    is_scored: bool  # whether decisions are scored under the label
    returns_decisions: bool

    @property
    def first_neighbour(self) -> int:
        """The column that is the decision itself if one call answers all points next to it."""
        return 0 if self.draws.centres is None else 1

    def batches(self, problem: Problem) -> list[tuple[int, int]]:
        """Return the columns that are solved at once, or, one by one, drawn at once."""
        edges = list(_BATCH_EDGES if problem.is_vectorised else (0, BLOCK_SIZE + 1))
        if self.draws.sampler.shares_call:
            edges = [0, self.first_neighbour, BLOCK_SIZE + 1]
        edges += range(2 * BLOCK_SIZE + 1, self.stop + BLOCK_SIZE + 1, BLOCK_SIZE)
        parts = [(max(a, self.start), min(b, self.stop)) for a, b in pairwise(edges)]
        return [part for part in parts if part[0] < part[1]]

    def groups(self, problem: Problem) -> Iterator[range]:
        """Yield the rows that are solved together: several if a batch may mix instances."""
        n_rows, width, n_together = len(self.instances), self.stop - self.start, 1
        can_mix = problem.is_vectorised and problem.mixes_instances
        can_mix = can_mix and not self.draws.sampler.shares_call
        # A time limit holds for a single call: a batch must not take much longer.
        if can_mix and not self.options.is_limited and len(self.batches(problem)) == 1:
            n_together = max(_MAX_TOGETHER // width, 1)
        edges = [0, n_rows]
        if n_together > 1 and self.instances.context is not None:
            contents = map(content, self.instances.context)
            edges[1:1] = [
                i for i, (a, b) in enumerate(pairwise(contents), 1) if a is None or a != b
            ]
        for first, stop in pairwise(edges):
            for start in range(first, stop, n_together):
                yield range(start, min(start + n_together, stop))


class Result(NamedTuple):
    """The outcome of the first calls of a task."""

    n_done: int  # calls of the task that have an outcome
    n_calls: int  # solver calls made; a batch that fails is called again one by one
    blocks: list[Block]
    seconds: float  # time that the calls took
    failures: list[Failure]
    decisions: dict[tuple[int, int], Any]  # by row and column


def answer(problem: Problem, task: Task) -> Result:
    """Make the calls of a task, as many as its time allows."""
    began = time.perf_counter()
    guard, done, batches = Guard(problem, task.options), list[_Rows](), task.batches(problem)
    todo = deque(task.groups(problem))
    with guard.alarm():
        while todo:
            rows = _Rows(guard, task, todo.popleft(), began + task.seconds)
            if len(rows) > 1 and not rows.call_together():
                todo.extendleft(range(row, row + 1) for row in reversed(rows.numbers))
                continue
            if len(rows) == 1:
                rows.call_all(batches)
            done.append(rows)
            if rows.must_end():
                break
    return _result(task, done, guard.n_calls, time.perf_counter() - began)


def given_up(problem: Problem, task: Task, reason: FailedCall) -> Result:
    """Return the result of a task whose only call ended its worker, or was abandoned."""
    row = _Rows(Guard(problem, task.options), task, range(1), 0.0)
    row.fail(reason)
    return _result(task, [row], 1, 0.0)


class _Rows:
    """The calls of a task at one instance, or at several in one batch.

    Arrays have a row per instance and a column per call. One instance's are filled from the left.
    """

    def __init__(self, guard: Guard, task: Task, numbers: range, until: float) -> None:
        self.guard, self.task, self.numbers, self.until = guard, task, numbers, until
        self.problem, self.sign = guard.problem, 1 if guard.problem.sense == "min" else -1
        self.y = read_only(task.instances.y[numbers.start : numbers.stop])
        self.context = owned_context(context_of(task.instances.context, numbers.start))
        self.n_done, self.width = 0, task.stop - task.start  # columns
        self.answers = np.full((len(numbers), self.width), NO_ANSWER)
        self.loss, self.status = self.answers["loss"], self.answers["status"]
        self.decision = self.answers["decision"]
        self.slopes = _Slopes(self.problem, self.y, self.context, task.label_scale)
        self.failures: list[Failure] = []
        self.kept: dict[tuple[int, int], Any] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def must_end(self) -> bool:
        """Return whether to leave the remaining calls to a later task."""
        has_failed = bool(self.failures) and self.task.options.stops
        return has_failed or time.perf_counter() > self.until

    def call_together(self) -> bool:
        """Make all calls at once. Return False if each instance must be called by itself."""
        before = content(self.context)
        try:
            y_hats = self._predictions(self.task.start, self.task.stop)
        except Exception:  # noqa: BLE001 - the user's `project` may raise anything
            return False
        if not np.isfinite(y_hats).all() or not self._call_at_once(y_hats):
            return False
        if self.task.start == 0:
            has_failed = self.status[:, 0] > OK
            self.status[has_failed, 1:] = Status.NO_OPTIMUM
        self._check_context(before)
        return True

    def call_all(self, batches: list[tuple[int, int]]) -> None:
        """Make the calls until all are done, the label fails, or the task must end."""
        before = content(self.context)
        for start, stop in batches:
            self._call(start, stop)
            if self._label_failed():
                self.status[0, self.n_done :] = Status.NO_OPTIMUM
                self.n_done = self.width
            if self.n_done == self.width or self.must_end():
                break
        self._check_context(before)

    def _check_context(self, before: bytes | None) -> None:
        if content(self.context) != before:
            raise ProblemError(CHANGES_CONTEXT)

    def fail(self, error: BaseException) -> None:
        self._note(0, self.n_done, error)
        self.n_done += 1

    def _label_failed(self) -> bool:
        return self.task.start == 0 and bool(self.status[0, 0] > OK)

    def _call(self, start: int, stop: int) -> None:
        """Make the calls of some columns: at once, or one after another until time is up."""
        try:
            y_hats = self._predictions(start, stop)
            is_finite = bool(np.isfinite(y_hats).all())
        except Exception as error:  # noqa: BLE001 - the user's `project` may raise anything
            for _ in range(start, stop):
                self.fail(error)
            return
        if self.task.draws.sampler.shares_call and stop > self.task.first_neighbour:
            self._call_neighbours(y_hats)
            return
        is_batch = self.problem.is_vectorised and is_finite and len(y_hats) > 1
        if not (is_batch and self._call_at_once(y_hats.copy())):  # the solver may write to it
            for y_hat in y_hats:
                self._call_once(y_hat, is_finite=is_finite)
                if self.must_end() or (start == 0 and self._label_failed()):
                    return

    def _call_neighbours(self, y_hats: Array) -> None:
        """Fill columns with decisions next to one, by one call; if it fails, they all do."""
        first, last = self.n_done, self.n_done + len(y_hats)
        before = self.task.start + first - self.task.first_neighbour

        def nearest(y_hats: Array, context: Any) -> Any:
            return self.guard.neighbours(y_hats[0], context, before + len(y_hats))[before:]

        if not self._call_at_once(y_hats.copy(), nearest):
            self._call_once(y_hats[0], is_finite=bool(np.isfinite(y_hats).all()))
            self.answers[0, first:last] = self.answers[0, first]
            self.n_done = last

    def _predictions(self, start: int, stop: int) -> Array:
        """Return the predictions of some columns, row by row, in an array to write to."""
        parts, first = [], max(start - 1, 0)
        if start == 0:
            parts.append(self.y[:, np.newaxis])
        if stop > 1:
            draws, instances = self.task.draws, self.task.instances
            parts.append(draws.points(self.problem, instances, self.numbers, first, stop - 1))
        y_hats = np.concatenate(parts, axis=1)
        return y_hats.reshape(-1, *y_hats.shape[2:])

    def _call_at_once(self, y_hats: Array, solve: Callable[..., Any] | None = None) -> bool:
        """Solve a batch. Return False if that failed and each call must be made by itself."""
        n_columns = len(y_hats) // len(self)
        first, last, losses = self.n_done, self.n_done + n_columns, np.zeros((len(self), n_columns))
        try:
            with self.guard.limited(len(y_hats) if solve is None else 1):
                zs = (solve or self.guard.solve_many)(y_hats, self.context)
                if self.task.is_scored:
                    losses = score_rows(self.problem, zs, self.y, self.context)
                    self.decision[:, first:last] = self.slopes.numbers(zs)
        except BaseException as error:  # noqa: BLE001 - a solver may raise anything
            self.guard.forgive(error)
            return False
        if self.task.returns_decisions:
            for place, z in enumerate(zs):
                row, column = divmod(place, n_columns)
                self.kept[self.numbers[row], self.task.start + first + column] = owned(z)
        self.loss[:, first:last] = self.sign * losses
        self.status[:, first:last] = OK
        self.n_done = last
        for row, column in np.argwhere(~(np.abs(losses) < _LARGEST)).tolist():  # NaN is not
            self._note(row, first + column, _not_finite(losses[row, column]))
        return True

    def _call_once(self, y_hat: Array, *, is_finite: bool) -> None:
        column, value = self.n_done, 0.0
        try:
            if not (is_finite or np.isfinite(y_hat).all()):
                raise FailedCall(Status.BAD_POINT, "the point is not finite")
            with self.guard.limited():
                z = self.guard.solve(y_hat, self.context)
                if self.task.is_scored:
                    value = score(self.problem, z, self.y[0], self.context)
                    if not abs(value) < _LARGEST:  # NaN is not
                        raise _not_finite(value)
                    if self.task.label_scale is not None:
                        self.decision[0, column] = self.slopes.numbers([z])[0][0]
        except BaseException as error:  # noqa: BLE001 - even SystemExit is the call's failure
            self.guard.forgive(error)
            self.fail(error)
            return
        if self.task.returns_decisions:
            self.kept[self.numbers[0], column + self.task.start] = owned(z)
        self.loss[0, column] = self.sign * value
        self.status[0, column] = OK
        self.n_done += 1

    def _note(self, row: int, column: int, error: BaseException) -> None:
        number, place = self.numbers[row], column + self.task.start
        failure = Failure.of(error, number, place, self.context)
        self.answers[row, column] = np.nan, failure.status, -1
        self.failures.append(failure)


def _result(task: Task, done: list[_Rows], n_calls: int, seconds: float) -> Result:
    failures = [failure for rows in done for failure in rows.failures]
    return Result(
        sum(len(rows) * rows.n_done for rows in done),
        n_calls,
        _blocks(task, done, failures),
        seconds,
        failures,
        {place: z for rows in done for place, z in rows.kept.items()},
    )


def _blocks(task: Task, done: list[_Rows], failures: list[Failure]) -> list[Block]:
    """Return the answers at the labels, and those at the points."""
    gradient = list[Array]()
    for rows in done:
        rows.decision[rows.decision >= 0] += len(gradient)
        gradient += rows.slopes.gradient
    slopes = np.array(gradient).reshape(-1, task.instances.y[0].size)
    answers = np.concatenate([rows.answers for rows in done])
    if task.options.stops:  # calls that failed stay pending: the next run makes them again
        answers["status"][answers["status"] != OK] = Status.PENDING
        failures = []
    n_labels = int(task.start == 0)
    messages: tuple[dict[tuple[int, str], str], ...] = ({}, {})  # at labels, and at points
    for failure in failures:
        kind = failure.row, failure.status.name.lower()
        messages[failure.column > 0].setdefault(kind, failure.message)
    of_labels, of_points = (ids[: len(answers)] for ids in (task.instances.ids, task.draws.ids))
    labels = Block(of_labels, 0, answers[:, :n_labels], slopes, messages[0])
    start = max(task.start - 1, 0)
    points = Block(of_points, start, answers[:, n_labels:], slopes, messages[1])
    return [block for block in (labels, points) if block.answers.size]


def content(context: Any) -> bytes | None:
    """Return a context as bytes, or None if it is not plain."""
    with suppress(Exception):  # it may hold an object that cannot be pickled
        return pickle.dumps(context) if isinstance(context, PLAIN) else None
    return None


def _not_finite(value: float) -> FailedCall:
    kind = "a number that is not too large" if np.isfinite(value) else "a finite number"
    return FailedCall(Status.NON_FINITE, f"the objective is {value}, expected {kind}")


class _Slopes:
    """The derivatives of the loss by the label for distinct decisions of some instances."""

    def __init__(self, problem: Problem, ys: Array, context: Any, scale: Array | None) -> None:
        self._problem, self._ys, self._context, self._scale = problem, ys, context, scale
        self._numbers: dict[Any, int] = {}
        self.gradient: list[Array] = []

    def numbers(self, zs: Any) -> Any:
        """Return each decision's row of `gradient`, shape (n, k), or -1 if slopes are not wanted.

        There are k decisions for each of the n labels, row by row.
        """
        if self._scale is None:
            return -1
        n = len(self._ys)
        if n > 1 and type(self._problem).slope is LinearProblem.slope:  # whatever the label is
            decisions = np.ascontiguousarray(zs, dtype=np.float64)
            first, number = distinct_rows(decisions.reshape(len(zs), -1))
            self.gradient = list(self._gradients(0, decisions[first]))
            return number.reshape(n, -1)
        k = len(zs) // n
        return [self._of_row(row, zs[row * k : row * k + k]) for row in range(n)]

    def _of_row(self, row: int, zs: Any) -> list[int]:
        keys = [(row, _key(z)) for z in zs]
        new = {key: place for place, key in enumerate(keys) if key not in self._numbers}
        if new:
            places = list(new.values())
            fresh = zs[places] if isinstance(zs, np.ndarray) else [zs[place] for place in places]
            self._numbers |= {key: len(self.gradient) + i for i, key in enumerate(new)}
            self.gradient += list(self._gradients(row, fresh))
        return [self._numbers[key] for key in keys]

    def _gradients(self, row: int, zs: Any) -> Array:
        assert self._scale is not None
        slopes = gradients(self._problem, zs, self._ys[row], self._context, self._scale)
        if not np.isfinite(slopes).all():
            raise FloatingPointError("the slope of the objective is not finite at the label")
        return slopes


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
    function, problem, arguments, options, may_exit = unpickled
    guard = Guard(problem, options, may_exit=may_exit)
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
