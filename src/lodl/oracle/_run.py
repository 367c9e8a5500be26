"""Makes the calls that are pending: on any workers, saved as they come, whatever goes wrong."""

import logging
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from lodl._progress import progress_bar
from lodl._typing import Array
from lodl._validation import context_of
from lodl.errors import InvalidInputError, OracleError
from lodl.oracle._ask import Found, Result, Row, Task, marked_calls
from lodl.oracle._failure import OK, Failure, Status, listed
from lodl.oracle._instances import Instances, Series
from lodl.oracle._shard import Run
from lodl.oracle._signals import interrupts
from lodl.oracle._store import Store
from lodl.oracle._workers import Workers

OnFailure = Literal["raise", "skip"]

_TASK_SECONDS = 1.0  # work that a kill may cost each worker
_CAREFUL_SECONDS = 0.05  # of a task that may hold the call that ends its worker
_MAX_ROWS = 4096  # of a task: enough to hide its overhead
_PIECES = 16  # into which a task that ended its worker is cut
_SLACK = 2.0  # seconds that a task may be late for other reasons than its calls
_START = 60.0  # seconds that new workers may take to start
_ARRIVAL = 5.0  # times as long as before that a problem may take to reach a worker
_LOG_EVERY = 30.0  # seconds
_FIRST_LOG = 2.0  # seconds of work after which its cost is known
_FLUSH_SHARE, _FLUSH_LEAST, _FLUSH_MOST = 1 / 200, 1.0, 10.0  # of the time so far, seconds

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunSettings:
    """How to run.

    Attributes:
        on_failure: "raise": the first failed call ends the run, and failed calls are tried again
            by the next one. "skip": failed calls stay failed.
        max_failure_rate: With "skip", the share of failed samples that is still accepted.
        timeout: Seconds after which a call is given up, or None.
        progress: Whether to show a bar on a terminal.
    """

    on_failure: OnFailure = "raise"
    max_failure_rate: float = 0.1
    timeout: float | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        if self.on_failure not in get_args(OnFailure):
            raise InvalidInputError(
                f'`on_failure` must be "raise" or "skip", got {self.on_failure!r}.'
            )
        rate, timeout = self.max_failure_rate, self.timeout
        if not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
            raise InvalidInputError(f"`max_failure_rate` must be from 0 to 1, got {rate!r}.")
        is_number = isinstance(timeout, int | float | np.number) and not isinstance(timeout, bool)
        if timeout is not None and not (is_number and 0 < timeout < np.inf):
            raise InvalidInputError(f"`timeout` must be None or above 0 seconds, got {timeout!r}.")
        object.__setattr__(self, "timeout", None if timeout is None else float(timeout))

    @property
    def stops(self) -> bool:
        """Whether the first failure ends the run."""
        return self.on_failure == "raise"


@dataclass(eq=False)
class _Flight:
    """A task that is out.

    Attributes:
        task: The task.
        is_suspect: Whether it is out alone because it may end, or hold up, its worker.
        sent_at: When it was sent.
        late_at: When to look whether it is late.
    """

    task: Task
    is_suspect: bool
    sent_at: float
    late_at: float


@dataclass(eq=False)
class Calls:
    """The calls of a run.

    Attributes:
        instances: The instances.
        series: How their candidates are drawn.
        series_ids: What the answers of each instance are kept under.
        spread: How far labels lie apart, where slopes are asked for; else None.
    """

    instances: Instances
    series: Series
    series_ids: list[bytes]
    spread: Array | None

    def row(self, number: int, columns: Any) -> Row:
        """Return the calls for one instance as a worker wants them."""
        instances, centres = self.instances, self.series.centres
        return Row(
            number,
            instances.y[number],
            context_of(instances.context, number),
            instances.keys[number],
            None if centres is None else centres[number],
            np.asarray(columns, dtype=np.int32),
        )


class Runner:
    """One run. What is done is saved, whatever ends it."""

    def __init__(
        self, calls: Calls, rows: list[Row], store: Store, workers: Workers, settings: RunSettings
    ) -> None:
        self._calls = calls
        self._queue = deque(rows)
        self._suspects: deque[Task] = deque()
        self._store = store
        self._workers = workers
        self._settings = settings
        self._flying: dict[Future[Result | None], _Flight] = {}
        self._error: OracleError | None = None
        self._n_calls = sum(len(row.columns) for row in rows)
        self._n_done = self._n_lost = self.n_failures = 0
        self._seconds = 0.0
        self._started = self._flushed = self._logged = time.monotonic()
        self._has_logged = self._is_warm = False
        self._marks: str | None = None
        self._n_sent = self._n_not_begun = 0
        self._arrival = 0.0  # seconds that the problem took to reach a worker
        self._n_workers = 1
        sampler = calls.series.sampler.take(slice(0, 1))  # a task has the centres of its rows
        self._series = replace(calls.series, centres=None, sampler=sampler)

    def finish(self) -> None:
        """Make all calls, or raise the error that ended the run."""
        bar = progress_bar(
            self._n_calls, unit="calls", description="asking", enabled=self._settings.progress
        )
        try:
            with bar, interrupts.watched(), self._workers.marks() as self._marks:
                while self._queue or self._suspects or self._flying:
                    self._send()
                    if not self._flying:
                        break
                    for result in self._gather():
                        self._take(result)
                        bar.set_postfix(failures=self.n_failures, refresh=False)
                        bar.update(self._n_done - bar.n)
        except KeyboardInterrupt:
            self._abandon()
            raise KeyboardInterrupt(
                f"Stopped after {self._n_done} of {self._n_calls} calls. {self._store.note}"
            ) from None
        except BaseException:
            self._abandon()
            raise
        finally:
            self._store.flush()
        if self._error is not None:
            raise self._error

    def check_rate(self, n_failures: int) -> None:
        """Raise if more samples failed than is accepted."""
        n_samples = len(self._calls.instances) * self._calls.series.n_samples
        if n_failures > self._settings.max_failure_rate * n_samples:
            reasons = listed(self._store.notes.failures.values())
            raise OracleError(
                f"{n_failures} of {n_samples} samples failed so far, more than max_failure_rate="
                f"{self._settings.max_failure_rate:g} allows. The first of each kind: {reasons} "
                f"{self._store.note}"
            )

    # Sending ------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Keep every worker busy; tasks that may end their worker go out one by one."""
        if self._error is not None:
            self._queue.clear()
            self._suspects.clear()
        self._n_workers = self._workers.n_workers  # asked once: it may be a question to a cluster
        while self._queue and not self._suspects and len(self._flying) < self._n_workers:
            self._submit(self._next_task(), is_suspect=False)
        if self._suspects and not self._flying:
            self._submit(self._suspects.popleft(), is_suspect=True)

    def _next_task(self) -> Task:
        """Return a task of about a second, as far as is known what a call costs."""
        per_row = self._seconds / max(self._n_done, 1) * len(self._queue[0].columns)
        n_rows = _TASK_SECONDS / per_row if per_row > 0 else 1
        n_rows = min(n_rows, -(-len(self._queue) // self._n_workers), _MAX_ROWS)
        rows = [self._queue.popleft() for _ in range(max(int(n_rows), 1))]
        return Task(
            rows,
            self._series,
            self._calls.spread,
            self._settings.stops,
            _TASK_SECONDS,
            self._settings.timeout,
        )

    def _submit(self, task: Task, *, is_suspect: bool, with_problem: bool = False) -> None:
        if is_suspect:
            task = replace(task, seconds=_CAREFUL_SECONDS)
        if self._marks is not None:
            self._n_sent += 1
            task = replace(task, mark=(self._marks, self._n_sent))
        if task.timeout is not None:
            self._warm_up(task)
        now = time.monotonic()
        late_at = now + self._allowed(task) + (_ARRIVAL * self._arrival if with_problem else 0.0)
        try:
            future = self._workers.submit(task, with_problem=with_problem)
        except RuntimeError as error:
            if not self._workers.has_died(error):
                raise
            future = Future()
            future.set_exception(error)
        self._flying[future] = _Flight(task, is_suspect, now, late_at)

    def _allowed(self, task: Task) -> float:
        """Return the seconds that a task may take.

        When its time is up it may be within a batch, which, if it fails, is asked one by one.
        """
        if task.timeout is None:
            return np.inf
        n_calls = 1 + task.largest_batch(is_vectorised=self._workers.problem.is_vectorised)
        return task.seconds + n_calls * task.timeout + _SLACK

    def _warm_up(self, task: Task) -> None:
        """Wait until a worker has the problem: starting up is not the fault of a call."""
        until = time.monotonic() + _START
        while not self._is_warm:
            try:
                sent = time.monotonic()
                future = self._workers.submit(replace(task, rows=[], mark=None), with_problem=True)
                future.result(timeout=max(until - sent, 0.0))
                self._is_warm, self._arrival = True, time.monotonic() - sent
            except TimeoutError as error:
                raise OracleError(
                    f"No worker of {self._workers.name} was ready in {_START:g} seconds."
                ) from error
            except Exception as error:
                if not self._workers.has_died(error):
                    raise self._not_done(error) from error

    # Gathering ----------------------------------------------------------------------------------

    def _gather(self) -> Iterator[Result]:
        """Wait for tasks, and give the results of those that came back."""
        patience = min((flight.late_at for flight in self._flying.values()), default=np.inf)
        left = min(max(patience - time.monotonic(), 0.0), 5.0)
        done, _ = wait(self._flying, timeout=left, return_when=FIRST_COMPLETED)
        if not done:
            self._workers.check_alive()
            self._give_up_on_late_ones()
        dead: list[_Flight] = []
        for future in done:
            flight = self._flying.pop(future)
            error = _error_of(future)
            if error is None:
                result = future.result()
                if result is None:
                    self._submit(flight.task, is_suspect=flight.is_suspect, with_problem=True)
                    continue
                self._requeue(flight, result)
                yield result
            elif self._workers.has_died(error):
                dead.append(flight)
            else:
                raise self._not_done(error) from error
        if dead:
            self._workers.recover()
            self._is_warm = False
            self._blame(dead, Status.DIED)

    def _requeue(self, flight: _Flight, result: Result) -> None:
        """Put back the calls that a task had no time for."""
        rest = []
        for row, found in zip(flight.task.rows, result.found, strict=False):
            if len(found.columns) < len(row.columns):
                rest.append(replace(row, columns=row.columns[len(found.columns) :]))
        rest += flight.task.rows[len(result.found) :]
        if not rest or self._error is not None:
            return
        if flight.is_suspect:
            self._suspects.appendleft(replace(flight.task, rows=rest))
        else:
            self._queue.extendleft(reversed(rest))

    def _not_done(self, error: BaseException) -> OracleError:
        """Return the error of a task that failed outside of its calls."""
        if isinstance(error, OracleError):
            return error
        name = self._workers.name
        return OracleError(
            f"{name[:1].upper()}{name[1:]} could not do a task ({type(error).__name__}: {error}). "
            f"Can the problem be unpickled there, and is what it imports installed? "
            f"{self._store.note}"
        )

    def _give_up_on_late_ones(self) -> None:
        """Replace the workers of tasks that are late, and narrow down which calls made them so."""
        now = time.monotonic()
        overdue = [future for future, flight in self._flying.items() if now > flight.late_at]
        begun = self._workers.begun(overdue) if overdue else []
        for future in overdue:
            flight = self._flying[future]
            flight.late_at = self._late_at(flight, now, is_begun=future in begun)
        late = [future for future in overdue if now > self._flying[future].late_at]
        if not late:
            return
        others = [future for future in self._flying if future not in late]
        kept = self._workers.replace(late, others)
        flying = self._flying
        self._flying = {future: flying[future] for future in kept}
        self._is_warm = False
        for future in others:
            if future not in kept:
                self._queue.extendleft(reversed(flying[future].task.rows))
        self._blame([flying[future] for future in late], Status.TIMED_OUT)

    def _late_at(self, flight: _Flight, now: float, *, is_begun: bool) -> float:
        """Return when an overdue task is late: not before one of its calls has begun.

        Until then it may wait for a worker that starts, or behind the work of others.
        """
        task = flight.task
        if task.mark is None:
            return flight.late_at if is_begun else now + self._allowed(task)
        at = marked_calls(task)
        if at is None:
            return flight.sent_at + _START + self._allowed(task)
        return at.began + (at.stop - at.first) * (task.timeout or np.inf) + _SLACK

    def _blame(self, flights: list[_Flight], status: Status) -> None:
        """Narrow tasks that ended, or held up, their worker down to the one call that did.

        Where workers share files with us they noted which call they were at. Elsewhere a task is
        cut into pieces, which go out one by one. When a worker is lost others may be lost with it,
        so that a call is guilty only if it was noted as late, or was out alone.
        """
        for flight in flights:
            is_late = status == Status.TIMED_OUT
            if is_late and flight.task.mark and marked_calls(flight.task) is None:
                self._begin_again(flight)
                continue
            is_sure = flight.is_suspect or (is_late and flight.task.mark is not None)
            task = self._narrow(flight.task)
            if task.n_calls > 1 and (is_sure or is_late):
                self._suspects.extend(_cut(task))
            elif is_sure:
                self._take(_failed(task, status))
            else:
                self._suspects.append(task)

    def _begin_again(self, flight: _Flight) -> None:
        """Send a task out once more that no worker began."""
        self._n_not_begun += 1
        if self._n_not_begun > 1:
            raise OracleError(
                f"No worker of {self._workers.name} began a task in {_START:g} seconds. Does it "
                f"take so long to unpickle a context? {self._store.note}"
            )
        self._suspects.append(flight.task)

    def _narrow(self, task: Task) -> Task:
        """Return the part of a task that its worker was at, and send the rest out again."""
        at = marked_calls(task)
        if at is None:
            return task
        number, first, stop, _ = at
        row = task.rows[number]
        rest = [replace(row, columns=np.delete(row.columns, np.s_[first:stop]))]
        rest += [*task.rows[:number], *task.rows[number + 1 :]]
        self._queue.extendleft(reversed([one for one in rest if len(one.columns)]))
        return replace(task, rows=[replace(row, columns=row.columns[first:stop])])

    # Taking -------------------------------------------------------------------------------------

    def _take(self, result: Result) -> None:
        """Save what a task found, and end the run if it must."""
        describe = self._calls.instances.describe
        failures = [replace(one, instance=describe(number)) for number, one in result.failures]
        first = {failure.status.name.lower(): str(failure) for failure in reversed(failures)}
        if self._settings.stops:
            if failures and self._error is None:
                self._error = failures[0].error(self._store.note)
            first = {}
        self._store.add(run for found in result.found for run in self._runs(found))
        self._store.add_note(result.seconds, first)
        self._seconds += result.seconds
        self._n_done += sum(len(found.columns) for found in result.found)
        self.n_failures += len(failures)
        self._report()
        now = time.monotonic()
        pause = min(max((now - self._started) * _FLUSH_SHARE, _FLUSH_LEAST), _FLUSH_MOST)
        if now - self._flushed > pause:
            self._flushed = now
            self._store.flush()
        if failures and not self._settings.stops:
            lost = (found.status[found.columns > 0] > OK for found in result.found)
            self._n_lost += sum(int(one.sum()) for one in lost)
            self.check_rate(self._n_lost)

    def _runs(self, found: Found) -> Iterator[Run]:
        """Give the runs of successive columns in which answers are kept, failures as settings say.

        With "raise" a failed call is not kept: the next run tries it again.
        """
        kept = found.status == OK if self._settings.stops else found.status > 0
        places = np.flatnonzero(kept)
        if len(places) and found.columns[places[0]] == 0:
            yield _run(self._calls.instances.ids[found.number], 0, found, places[:1])
            places = places[1:]
        if len(places):
            columns, id_ = found.columns[places], self._calls.series_ids[found.number]
            if columns[-1] - columns[0] == len(columns) - 1:
                yield _run(id_, int(columns[0]) - 1, found, places)
                return
            for part in np.split(places, np.flatnonzero(np.diff(columns) > 1) + 1):
                yield _run(id_, int(found.columns[part[0]]) - 1, found, part)

    def _report(self) -> None:
        """Log how far the run is: once its cost is known, then now and again."""
        now = time.monotonic()
        due = _LOG_EVERY if self._has_logged else _FIRST_LOG
        if now - self._logged < due or self._n_done == 0:
            return
        cost, left = self._seconds / self._n_done, self._n_calls - self._n_done
        minutes = left * (now - self._started) / self._n_done / 60
        _logger.info(
            "%s oracle calls%s, %s each, about %s left on %d worker%s; %d done, %d failed.",
            f"{self._n_calls:,}",
            " to make" if not self._has_logged else "",
            f"{cost * 1e3:.3g} ms" if cost < 1 else f"{cost:.3g} s",
            f"{minutes * 60:.0f} s" if minutes < 2 else f"{minutes:.0f} min",
            self._n_workers,
            "" if self._n_workers == 1 else "s",
            self._n_done,
            self.n_failures,
        )
        self._logged, self._has_logged = now, True

    def _abandon(self) -> None:
        """Let go of tasks that are out, and do not wait for them."""
        for future in self._flying:
            future.cancel()
        self._workers.abandon(list(self._flying))


def _error_of(future: "Future[Any]") -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        return error


def _cut(task: Task) -> list[Task]:
    """Return the pieces of a task: some rows each, or some calls of one row."""
    if len(task.rows) > 1:
        groups = np.array_split(np.arange(len(task.rows)), min(_PIECES, len(task.rows)))
        return [replace(task, rows=[task.rows[i] for i in group]) for group in groups]
    row = task.rows[0]
    parts = np.array_split(row.columns, min(_PIECES, len(row.columns)))
    return [replace(task, rows=[replace(row, columns=part)]) for part in parts]


def _failed(task: Task, status: Status) -> Result:
    """Return the result of a task whose only call ended its worker, or was given up."""
    row = task.rows[0]
    column = int(row.columns[0])
    failure = (
        Failure(Status.DIED, column, "the call ended its worker process")
        if status == Status.DIED
        else Failure.late(column, task.timeout)
    )
    found = Found(
        row.number,
        row.columns,
        np.array([np.nan]),
        np.array([status], dtype=np.uint8),
        np.array([-1], dtype=np.int32),
        np.empty((0, 0)),
    )
    return Result([found], [(row.number, failure)])


_NO_GRADIENT = np.empty((0, 0))


def _run(id_: bytes, start: int, found: Found, places: Any) -> Run:
    decision = found.decision[places]
    if not len(found.gradient):
        return Run(id_, start, found.loss[places], found.status[places], decision, _NO_GRADIENT)
    used, numbers = np.unique(decision[decision >= 0], return_inverse=True)
    renumbered = np.full(len(places), -1, dtype=np.int32)
    renumbered[decision >= 0] = numbers
    gradient = found.gradient[used] if len(used) else np.empty((0, 0))
    return Run(id_, start, found.loss[places], found.status[places], renumbered, gradient)
