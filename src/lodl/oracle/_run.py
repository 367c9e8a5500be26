"""A run: makes the pending solver calls on any workers, and stores answers as they return."""

import logging
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lodl._progress import progress_bar
from lodl.errors import LodlError, OracleError
from lodl.oracle._failures import (
    OK,
    FailedCall,
    Options,
    Status,
    Tally,
    TaskError,
    as_text,
    describe,
)
from lodl.oracle._guard import marked_ctrl_c
from lodl.oracle._samples import Samples
from lodl.oracle._task import Result, Task, content, given_up
from lodl.oracle._workers import STARTING, Workers, WorkersLostError

_TASK_SECONDS = 1.0  # work that a kill may cost each worker
_MIN_SECONDS = 0.1  # length of a task if little time is lost between two tasks
_CAREFUL_SECONDS = 0.05  # length of a task that may hold the call that ends its worker
_MAX_ROWS = 4096  # instances of a task: enough to hide its overhead
_N_PIECES = 16  # pieces into which a task is cut that ended, or held up, its worker
_SLACK = 2.0  # seconds that a task may be late for other reasons than its calls
_ARRIVAL = 5.0  # factor by which the next arrival of a problem at a worker may take longer
_PATIENCE = 5.0  # seconds without a result after which to check that there are workers
_LOG_EVERY = 30.0  # seconds
_FIRST_LOG = 2.0  # seconds of work after which its cost is known
_BAR_DELAY = 2.0  # seconds before a bar appears: most runs have ended by then

_logger = logging.getLogger(__name__)


class Calls(NamedTuple):
    """The calls in columns `start` to `stop` of some instances, row by row; 0 is the label."""

    numbers: npt.NDArray[np.intp]  # the instances
    start: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.start

    @property
    def n_calls(self) -> int:
        return len(self.numbers) * self.width

    def between(self, first: int, stop: int) -> "list[Calls]":
        """Return calls `first` to `stop`: whole rows, and pieces of rows before and after."""
        pieces = []
        while first < stop:
            row, column = divmod(first, self.width)
            n_rows, n_columns = (stop - first) // self.width, self.width
            if column or not n_rows:
                n_rows, n_columns = 1, min(self.width - column, stop - first)
            begin = self.start + column
            pieces.append(Calls(self.numbers[row : row + n_rows], begin, begin + n_columns))
            first += n_rows * n_columns
        return pieces

    def cut(self) -> "list[Calls]":
        """Return about 16 pieces, none of them empty."""
        edges = np.linspace(0, self.n_calls, min(_N_PIECES, self.n_calls) + 1).astype(int).tolist()
        return [piece for a, b in pairwise(edges) for piece in self.between(a, b)]


def pending(samples: Samples, *, retry: bool) -> list[Calls]:
    """Return the calls that the store lacks, each once. With `retry`, also calls that failed."""
    numbers, is_repeated = np.arange(len(samples)), np.zeros(len(samples), dtype=np.bool_)
    if len(set(samples.instances.ids)) < len(samples):
        ids = list(zip(samples.instances.ids, samples.draws[0].ids, strict=True))
        first = dict(zip(reversed(ids), numbers[::-1].tolist(), strict=True))
        is_repeated[np.setdiff1d(numbers, list(first.values()))] = True
    calls = defaultdict[tuple[int, int], list[npt.NDArray[np.intp]]](list)
    for part in samples.parts():
        status = samples.table(part).status
        is_pending = status != OK if retry else status == Status.PENDING.value
        is_pending[is_repeated[part.start : part.stop]] = False
        if not retry:  # without its optimum an instance has no regrets
            is_pending[status[:, 0] > OK] = False
        patterns, kind = is_pending[:1], np.zeros(len(part), dtype=np.intp)
        if (is_pending != patterns).any():
            patterns, kind = np.unique(is_pending, axis=0, return_inverse=True)
        for pattern, row in enumerate(patterns):
            alike = numbers[part.start : part.stop][kind.reshape(-1) == pattern]
            edges = np.flatnonzero(np.diff(row, prepend=False, append=False))
            for start, stop in edges.reshape(-1, 2).tolist():
                calls[start, stop].append(alike)
    group, context = dict[int, int](), samples.instances.context
    if context is not None:  # instances of equal contexts follow each other, to share a batch
        numbers = np.array([group.setdefault(hash(content(own)), len(group)) for own in context])
    made = {columns: np.concatenate(rows) for columns, rows in calls.items()}
    return [Calls(rows[numbers[rows].argsort(kind="stable")], *at) for at, rows in made.items()]


@dataclass(eq=False)
class _Flight:
    """A task that a worker has."""

    calls: Calls
    is_suspect: bool  # whether it runs alone because it may end, or hold up, its worker
    sent_at: float
    allowed: float  # seconds after which it is late


class Runner:
    """One run. Answers are stored even if it is interrupted."""

    def __init__(
        self,
        samples: Samples,
        calls: list[Calls],
        workers: Workers,
        options: Options,
        tally: Tally,
        *,
        returns_decisions: bool,
        progress: bool,
    ) -> None:
        self._samples, self._store = samples, samples.store
        self._workers, self._options, self.tally = workers, options, tally
        self._returns_decisions, self._has_bar = returns_decisions, progress
        self._queue, self._suspects = deque(calls), deque[Calls]()
        self._flying: dict[Future[Result | None], _Flight] = {}
        self._error: LodlError | None = None
        self._n_calls = sum(part.n_calls for part in calls)
        self._n_planned = tally.n_outcomes + self._n_calls
        self.decisions: dict[tuple[int, int], Any] = {}  # by instance and column, if wanted
        self._n_done = self._n_failures = 0
        self._seconds = 0.0
        self._started = self._logged = time.monotonic()
        self._has_logged = False
        self._n_workers = 1
        self._delay = 0.0  # least seconds that a task took besides its calls
        self._arrival: float | None = None  # seconds that instances and problem take, if known

    def finish(self) -> None:
        """Make all calls, or raise the error that ended the run."""
        how: Any = {"unit": "calls", "description": "solving", "delay": _BAR_DELAY}
        bar = progress_bar(self._n_calls, enabled=self._has_bar, **how)
        try:
            with bar, marked_ctrl_c():
                self._bar = bar
                while self._queue or self._suspects or self._flying:
                    self._send()
                    for calls, result in self._gather():
                        self._take(calls, result)
                        bar.set_postfix(failures=self._n_failures, refresh=False)
                        bar.update(self._n_done - bar.n)
                    self._give_up_late_tasks()
        except BaseException as error:
            for future in self._flying:
                future.cancel()
            self._workers.abandon(list(self._flying))
            if isinstance(error, KeyboardInterrupt):
                done = f"{self._n_done} of {self._n_calls} calls"
                raise KeyboardInterrupt(f"Stopped after {done}. {self._samples.note}") from None
            if isinstance(error, WorkersLostError):
                raise OracleError(f"{error} {self._samples.note}") from error.__cause__
            raise
        finally:
            self._store.close()
        if self._error is not None:
            raise self._error

    def _send(self) -> None:
        """Keep every worker busy. Tasks that may end their worker run one by one."""
        if self._error is not None:
            self._queue.clear()
            self._suspects.clear()
        self._n_workers = self._workers.n_workers  # read once: a request to a cluster
        while self._queue and not self._suspects and len(self._flying) < self._n_workers:
            self._submit(self._next(), is_suspect=False)
        if self._suspects and not self._flying:
            self._submit(self._suspects.popleft(), is_suspect=True)

    @property
    def _task_seconds(self) -> float:
        """Length of a task: a kill costs little, and little time is lost between two tasks."""
        return min(max(50 * self._delay, _MIN_SECONDS), _TASK_SECONDS)

    def _next(self) -> Calls:
        """Return the calls of the next task, given what a call has cost so far."""
        calls = self._queue.popleft()
        n_made, seconds = self._n_done, self._seconds
        if not n_made:  # as long as in earlier runs, if there were any
            n_made, seconds = self.tally.n_calls, self.tally.seconds
        per_row = seconds / max(n_made, 1) * calls.width
        n_rows = self._task_seconds / per_row if per_row > 0 else 1
        n_rows = min(n_rows, -(-len(calls.numbers) // self._n_workers), _MAX_ROWS)
        n_calls = max(int(n_rows), 1) * calls.width
        self._queue.extendleft(calls.between(n_calls, calls.n_calls))
        return calls.between(0, n_calls)[0]

    def _submit(self, calls: Calls, *, is_suspect: bool, with_problem: bool = False) -> None:
        task = self._task(calls, _CAREFUL_SECONDS if is_suspect else self._task_seconds)
        allowed = np.inf
        if self._options.is_limited:
            arrival = self._warm_up(task) if self._arrival is None else self._arrival
            # Its time may end within a batch, which, if it fails, is called again one by one.
            problem, n_calls = self._workers.problem, 2
            if problem.is_vectorised:
                n_calls = 1 + max(stop - start for start, stop in task.batches(problem))
            limit = self._options.seconds(n_calls)
            allowed = task.seconds + limit + _SLACK + _ARRIVAL * arrival
        flight = _Flight(calls, is_suspect, time.monotonic(), allowed)
        self._flying[self._workers.submit(task, with_problem=with_problem)] = flight

    def _task(self, calls: Calls, seconds: float) -> Task:
        samples, (numbers, start, stop) = self._samples, calls
        scale = self._store.label_scale if samples.has_slopes else None
        where = samples.instances.take(numbers), samples.draws[0].take(numbers), start, stop
        wanted = samples.is_scored, self._returns_decisions
        return Task(*where, scale, seconds, self._options, *wanted)

    def _warm_up(self, task: Task) -> float:
        """Wait until a worker has problem and instances, and return how long that took."""
        until = time.monotonic() + STARTING
        while True:
            try:
                sent_at = time.monotonic()
                future = self._workers.submit(replace(task, stop=task.start), with_problem=True)
                future.result(timeout=max(until - sent_at, 0.0))
            except TimeoutError as error:
                slow = f"was ready in {STARTING:g} seconds"
                raise OracleError(f"No worker of {self._workers.name} {slow}.") from error
            except Exception as error:
                if not self._workers.has_died(error):
                    raise self._task_error(error) from error
            else:
                self._arrival = time.monotonic() - sent_at
                return self._arrival

    def _gather(self) -> Iterator[tuple[Calls, Result]]:
        """Wait for tasks, and yield the results of those that returned."""
        patience = min(self._options.seconds(), _PATIENCE)
        wait(self._flying, timeout=patience, return_when=FIRST_COMPLETED)
        done = [future for future in self._flying if future.done()]  # `wait` skips cancelled ones
        if self._flying and not done:
            self._workers.wait_for_any(may_start_later=False)
        dead: list[_Flight] = []
        for future in done:
            flight = self._flying.pop(future)
            try:
                result = future.result()
            except (Exception, CancelledError) as error:
                if not self._workers.has_died(error):
                    raise self._task_error(error) from error
                dead.append(flight)
                continue
            if result is None:
                self._submit(flight.calls, is_suspect=flight.is_suspect, with_problem=True)
                continue
            rest = flight.calls.between(result.n_done, flight.calls.n_calls)
            (self._suspects if flight.is_suspect else self._queue).extendleft(reversed(rest))
            delay = time.monotonic() - flight.sent_at - result.seconds
            self._delay = min(self._delay, delay) if self._n_done else delay
            yield flight.calls, result
        if dead:
            self._workers.wait_for_any(may_start_later=True)
            self._arrival = None
            self._blame(dead, FailedCall(Status.DIED, "the call ended its worker process"))

    def _task_error(self, error: BaseException) -> LodlError:
        """Return the error of a task that failed outside of its calls."""
        if isinstance(error, LodlError):
            return error
        hint = ""
        if isinstance(error, ImportError) or (isinstance(error, TaskError) and error.args[1]):
            hint = "Can the problem be unpickled there, and is what it imports installed? "
        what = f"{self._workers.title} could not do a task ({as_text(error)})"
        return OracleError(f"{what}. {hint}{self._samples.note}")

    def _give_up_late_tasks(self) -> None:
        """Replace the workers of late tasks, and narrow down which calls made them late."""
        now, lates = time.monotonic(), []
        for future, flight in self._flying.items():
            if now > flight.sent_at + flight.allowed:
                if self._workers.has_begun(future):
                    lates.append(future)
                else:  # it waits behind the work of others
                    flight.sent_at = now
        if not lates:
            return
        others = [future for future in self._flying if future not in lates]
        kept = self._workers.replace(lates, others)
        flying = self._flying
        self._flying = {future: flying[future] for future in kept}
        self._arrival = None
        self._queue.extendleft(flying[future].calls for future in others if future not in kept)
        self._blame([flying[future] for future in lates], self._options.late())

    def _blame(self, flights: list[_Flight], reason: FailedCall) -> None:
        """Find the call that ended, or held up, its worker, by cutting tasks into pieces."""
        # A lost worker may take others with it: a task is guilty only if it ran alone.
        for flight in flights:
            calls = flight.calls
            if calls.n_calls > 1 and (flight.is_suspect or reason.status == Status.TIMED_OUT):
                self._suspects.extend(calls.cut())
            elif flight.is_suspect:
                self._take(calls, given_up(self._workers.problem, self._task(calls, 0.0), reason))
            else:
                self._suspects.append(calls)

    def _take(self, calls: Calls, result: Result) -> None:
        """Store the answers of a task, count its calls, and end the run if it must."""
        self._store.add(result.blocks, result.seconds)
        self._seconds += result.seconds
        self._n_done += result.n_done
        self._n_failures += len(result.failures)
        for (row, column), z in result.decisions.items():
            self.decisions[int(calls.numbers[row]), column] = z
        self._count(calls, result)
        for failure in result.failures:
            instance = self._samples.instances.describe(int(calls.numbers[failure.row]))
            point = self._samples.describe_point(failure.column)
            text = describe(instance, point, failure.message)
            self.tally.first_failures.setdefault(failure.status.name.lower(), text)
            if self._options.stops and self._error is None:
                self._error = failure.error(instance, point, self._samples.note)
        self._log()
        self.tally.check_rate(self._options, self._n_planned, self._samples.note)

    def _count(self, calls: Calls, result: Result) -> None:
        tally = self.tally
        tally.n_calls += result.n_calls
        tally.seconds += result.seconds
        n_labels = len(range(0, result.n_done, calls.width)) if calls.start == 0 else 0
        tally.n_labels += n_labels
        tally.n_samples += result.n_done - n_labels
        failed_labels = sum(failure.column == 0 for failure in result.failures)
        if failed_labels:  # their points are not called
            skipped = Status.NO_OPTIMUM.value
            statuses = (block.answers["status"] for block in result.blocks)
            tally.n_samples -= sum(int(np.sum(status == skipped)) for status in statuses)
        tally.failed_labels += failed_labels
        tally.failed_samples += len(result.failures) - failed_labels

    def _log(self) -> None:
        """Log the progress of the run once its cost is known, then periodically."""
        now = time.monotonic()
        due = _LOG_EVERY if self._has_logged else _FIRST_LOG
        if now - self._logged < due or self._n_done == 0:
            return
        cost, left = self._seconds / self._n_done, self._n_calls - self._n_done
        minutes = left * (now - self._started) / self._n_done / 60
        workers = f"{self._n_workers} worker{'' if self._n_workers == 1 else 's'}"
        with self._bar.external_write_mode():  # not within the bar's line
            _logger.info(
                "%s %s%s, %s each, about %s left on %s; %d done, %d failed.",
                f"{self._n_calls:,}",
                "answers" if self._samples.draws[0].sampler.shares_call else "solver calls",
                " to make" if not self._has_logged else "",
                f"{cost * 1e3:.3g} ms" if cost < 1 else f"{cost:.3g} s",
                f"{minutes * 60:.0f} s" if minutes < 2 else f"{minutes:.0f} min",
                *(workers, self._n_done, self._n_failures),
            )
        self._logged, self._has_logged = now, True
