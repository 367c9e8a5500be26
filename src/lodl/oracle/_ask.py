"""The work of one task: oracle calls for some instances, nothing else. Runs in workers."""

import copy
import pickle
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lodl._arrays import context_of
from lodl._typing import Array
from lodl.errors import ProblemError
from lodl.oracle._answer_table import Run
from lodl.oracle._failure import NO_OPTIMUM, OK, PENDING, FailedCall, Failure, Status
from lodl.oracle._guard import Guard, owned
from lodl.oracle._instances import Instances, Series
from lodl.problems import Problem
from lodl.problems._problem import sign_of
from lodl.problems._regret import gradients, read_only, score, score_many
from lodl.samplers._sampler import BLOCK_SIZE

_BATCH_EDGES = (0, 21, 51, 101, 251, BLOCK_SIZE + 1)
"""Columns at which batches of a vectorised problem begin; later blocks are one batch each.

The label is column 0. Small batches first: few samples cost few calls, many go in large batches.
Answers may depend on the batch in their last digits: the borders do not move with the work.
"""

_PLAIN = (np.ndarray, list, tuple, set, Mapping)  # contexts that can be copied and compared
_LARGEST = 1e300  # of a loss: regrets, and their sums, stay finite


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
    is_scored: bool = True  # whether decisions are scored under the label
    returns_decisions: bool = False

    def largest_batch(self, problem: Problem) -> int:
        """Return the largest number of calls that are made at once."""
        if not problem.is_vectorised:
            return 1
        return max(b - a for a, b in _batches(self.start, self.stop, is_vectorised=True))


class Result(NamedTuple):
    """The outcome of the first calls of a task, as far as it came."""

    n_done: int  # calls of the task that have an outcome
    n_calls: int  # solver calls made; a batch that fails is called again one by one
    runs: list[Run]  # the answers as they are kept
    seconds: float  # time that they took
    messages: dict[str, str]  # by kind of failure and id, the first message
    failures: list[Failure]
    decisions: dict[int, Any]  # by the number of the call in the task


def ask(problem: Problem, task: Task) -> Result:
    """Make the calls of a task, as far as time allows."""
    began = time.perf_counter()
    asking = _Asking(problem, task, began + task.seconds)
    with asking.guard.alarm:
        asking.ask_all()
    return asking.result(time.perf_counter() - began)


def given_up(problem: Problem, task: Task, reason: FailedCall) -> Result:
    """Return the result of a task whose only call ended its worker, or was given up."""
    asking = _Asking(problem, task, 0.0)
    asking.fail(reason)
    asking.guard.n_calls = 1
    return asking.result(0.0)


class _Asking:
    """The calls of a task, made in order, and what became of them."""

    def __init__(self, problem: Problem, task: Task, until: float) -> None:
        self.problem, self.task, self.until = problem, task, until
        self.guard = Guard(problem, task.timeout)
        self.sign, self.is_vectorised = sign_of(problem), problem.is_vectorised
        self.labels = read_only(task.instances.y)
        self.width = task.stop - task.start
        n_calls = len(self.labels) * self.width
        self.n_done = 0
        self.loss = np.full(n_calls, np.nan)
        self.status = np.full(n_calls, PENDING, dtype=np.uint8)
        self.decision = np.full(n_calls, -1, dtype=np.int32)
        self.decisions: list[_Decisions] = []
        self.failures: list[Failure] = []
        self.kept: dict[int, Any] = {}

    def ask_all(self) -> None:
        task = self.task
        batches = list(_batches(task.start, task.stop, self.is_vectorised))
        for row, y in enumerate(self.labels):
            context = _owned_context(context_of(task.instances.context, row))
            before = _content(context)
            self.decisions.append(_Decisions(self.problem, y, context, task.spread))
            end = (row + 1) * self.width
            for start, stop in batches:
                self._ask_columns(row, start, stop)
                if self._label_failed(row):
                    self.status[self.n_done : end] = NO_OPTIMUM
                    self.n_done = end
                if self.n_done == end or self._must_end():
                    break
            if _content(context) != before:
                raise ProblemError(
                    "`solve` or `objective` changes the context it is given; let it work on a copy."
                )
            if self._must_end():
                return

    def result(self, seconds: float) -> Result:
        """Return what was done: of each instance, a run for its label and one for its points."""
        task, failures = self.task, dict[str, str]()
        ids = (task.instances.ids, task.series.ids)
        if task.stop_at_failure:  # calls that failed stay pending: the next run tries them again
            self.status[self.status != OK] = PENDING
        else:
            for failure in self.failures:
                id_ = ids[failure.column > 0][failure.row]
                key = f"{failure.status.name.lower()} {id_.hex()}"
                failures.setdefault(key, failure.message)
        runs, n_rows = list[Run](), -(-self.n_done // max(self.width, 1))
        for row in range(n_rows):
            first, last = row * self.width, min((row + 1) * self.width, self.n_done)
            gradient = self.decisions[row].gradient if row < len(self.decisions) else []
            if task.start == 0:
                has_slope = int(self.decision[first] == 0)
                runs.append(self._run(ids[0][row], 0, first, first + 1, gradient[:has_slope]))
                first += 1
            if first < last:
                start = max(task.start - 1, 0)
                runs.append(self._run(ids[1][row], start, first, last, gradient))
        return Result(
            self.n_done, self.guard.n_calls, runs, seconds, failures, self.failures, self.kept
        )

    def _run(self, id_: bytes, start: int, first: int, last: int, gradient: list[Array]) -> Run:
        calls = slice(first, last)
        return Run(
            id_,
            start,
            self.loss[calls].tobytes(),
            self.status[calls].tobytes(),
            self.decision[calls].tobytes(),
            b"".join(row.tobytes() for row in gradient),
        )

    def _must_end(self) -> bool:
        """Return whether to give back what there is and leave the rest to a later task."""
        failed = self.task.stop_at_failure and self.failures
        return bool(failed) or time.perf_counter() > self.until

    def _label_failed(self, row: int) -> bool:
        return self.task.start == 0 and bool(self.status[row * self.width] > OK)

    def _ask_columns(self, row: int, start: int, stop: int) -> None:
        """Ask for some columns of an instance: at once, or one after another until time is up."""
        try:
            y_hats = self._predictions(row, start, stop)
            is_finite = bool(np.isfinite(y_hats).all())
        except Exception as error:  # noqa: BLE001 - `project` is the user's; without it all fail
            for _ in range(start, stop):
                self.fail(error)
            return
        is_batch = self.is_vectorised and is_finite and len(y_hats) > 1
        if not (is_batch and self._ask_at_once(y_hats.copy())):  # the solver may write to it
            for y_hat in y_hats:
                self._ask(y_hat, is_finite=is_finite)
                if self._must_end() or (start == 0 and self._label_failed(row)):
                    return

    def _predictions(self, row: int, start: int, stop: int) -> Array:
        """Return what is asked in some columns, in arrays that solvers may write to."""
        task, label = self.task, self.labels[row : row + 1]
        if stop == 1:
            return label.copy()
        first = max(start - 1, 0)
        drawn = task.series.candidates(self.problem, task.instances, row, first, stop - 1)
        return drawn if start > 0 else np.concatenate([label, drawn])

    def _ask_at_once(self, y_hats: Array) -> bool:
        """Ask for a batch; return whether that succeeded, so that no call is left to ask."""
        decisions, here = self.decisions[-1], slice(self.n_done, self.n_done + len(y_hats))
        losses = np.zeros(len(y_hats))
        try:
            with self.guard.limited(len(y_hats)):
                zs = self.guard.solve_many(y_hats, decisions.context)
                if self.task.is_scored:
                    losses = score_many(self.problem, zs, decisions.y, decisions.context)
                    self.decision[here] = decisions.numbers(zs, losses)
        except BaseException as error:  # noqa: BLE001 - a solver may raise anything
            self.guard.alarm.forgive(error)
            return False
        if self.task.returns_decisions:
            self.kept.update(zip(range(here.start, here.stop), map(owned, zs), strict=True))
        self.loss[here] = self.sign * losses
        self.status[here] = OK
        self.n_done = here.stop
        if not np.abs(losses).max() < _LARGEST:  # NaN is not
            for place in np.flatnonzero(~(np.abs(losses) < _LARGEST)).tolist():
                self._note(here.start + place, _not_finite(losses[place]))
        return True

    def _ask(self, y_hat: Array, *, is_finite: bool) -> None:
        """Make one call."""
        problem, decisions, place = self.problem, self.decisions[-1], self.n_done
        try:
            if not (is_finite or np.isfinite(y_hat).all()):
                raise FailedCall(Status.BAD_CANDIDATE, "the candidate is not finite")
            value = 0.0
            with self.guard.limited():
                z = self.guard.solve(y_hat, decisions.context)
                if self.task.is_scored:
                    value = score(problem, z, decisions.y, decisions.context)
                    if not abs(value) < _LARGEST:  # NaN is not
                        raise _not_finite(value)
                    if decisions.spread is not None:
                        self.decision[place] = decisions.numbers([z], [value])[0]
        except BaseException as error:  # noqa: BLE001 - even SystemExit is the call's failure
            self.guard.alarm.forgive(error)
            self.fail(error)
        else:
            if self.task.returns_decisions:
                self.kept[place] = owned(z)
            self.loss[place] = self.sign * value
            self.status[place] = OK
            self.n_done += 1

    def fail(self, error: BaseException) -> None:
        """Note that the next call failed."""
        self._note(self.n_done, error)
        self.n_done += 1

    def _note(self, place: int, error: BaseException) -> None:
        row, column = divmod(place, self.width)
        context = context_of(self.task.instances.context, row)
        failure = Failure.of(error, row, column + self.task.start, context)
        self.loss[place], self.decision[place] = np.nan, -1
        self.status[place] = failure.status
        self.failures.append(failure)


def _owned_context(context: Any) -> Any:
    """Return a copy of a plain context, so that a solver cannot change the caller's."""
    try:
        return copy.deepcopy(context) if isinstance(context, _PLAIN) else context
    except Exception:  # noqa: BLE001 - it may hold an object that cannot be copied
        return context


def _content(context: Any) -> bytes | None:
    """Return the content of a plain context, to compare. Other objects may cache in themselves."""
    try:
        return pickle.dumps(context) if isinstance(context, _PLAIN) else None
    except Exception:  # noqa: BLE001 - it may hold an object that cannot be pickled
        return None


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
        if max(first, start) < min(last, stop):
            yield max(first, start), min(last, stop)
