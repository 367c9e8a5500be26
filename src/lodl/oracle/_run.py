"""Makes the calls that are pending: on any workers, saved as they come, whatever goes wrong."""

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, replace

import numpy as np

from lodl._progress import progress_bar
from lodl.errors import OracleError
from lodl.oracle._ask import Result, Task
from lodl.oracle._failure import OK, FailedCall, Failure, Status, describe, listed
from lodl.oracle._marks import Mark, read_mark
from lodl.oracle._oracle_samples import OracleSamples
from lodl.oracle._part import Part
from lodl.oracle._run_settings import RunSettings
from lodl.oracle._signals import interrupts, late
from lodl.oracle._workers import Workers

_TASK_SECONDS = 1.0  # work that a kill may cost each worker
_CAREFUL_SECONDS = 0.05  # of a task that may hold the call that ends its worker
_MAX_ROWS = 4096  # of a task: enough to hide its overhead
_SLACK = 2.0  # seconds that a task may be late for other reasons than its calls
_START = 60.0  # seconds that new workers may take to start
_ARRIVAL = 5.0  # times as long as before that a problem may take to reach a worker
_LOG_EVERY = 30.0  # seconds
_FIRST_LOG = 2.0  # seconds of work after which its cost is known
_FLUSH_SHARE, _FLUSH_LEAST, _FLUSH_MOST = 1 / 200, 1.0, 10.0  # of the time so far, seconds

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Flight:
    """A task that is out."""

    part: Part
    task: Task
    is_suspect: bool  # whether it is out alone because it may end, or hold up, its worker
    sent_at: float
    late_at: float  # when to look whether it is late

    @property
    def mark(self) -> Mark | None:
        """The calls that its worker began last, as far as is known."""
        return None if self.task.mark is None else read_mark(*self.task.mark)


class Runner:
    """One run. What is done is saved, whatever ends it."""

    def __init__(
        self, samples: OracleSamples, parts: list[Part], workers: Workers, settings: RunSettings
    ) -> None:
        self._samples, self._store = samples, samples.store
        self._ids = (samples.instances.ids, samples.series[0].ids(samples.instances))
        self._workers, self._settings = workers, settings
        self._queue, self._suspects = deque(parts), deque[Part]()
        self._flying: dict[Future[Result | None], _Flight] = {}
        self._error: OracleError | None = None
        self.first_failures: dict[str, str] = {}
        self._n_calls = sum(part.n_calls for part in parts)
        self._n_done = self._n_failures = self._n_lost = 0
        self._seconds = 0.0
        self._started = self._flushed = self._logged = time.monotonic()
        self._has_logged = self._is_warm = False
        self._marks: str | None = None
        self._n_sent = 0
        self._arrival = 0.0  # seconds that the problem took to reach a worker
        self._n_workers = 1

    def finish(self) -> None:
        """Make all calls, or raise the error that ended the run."""
        bar = progress_bar(
            self._n_calls, unit="calls", description="asking", enabled=self._settings.progress
        )
        try:
            with bar, interrupts.watched(), self._workers.marks() as self._marks:
                while self._queue or self._suspects or self._flying:
                    self._send()
                    for part, result in self._gather():
                        self._take(part, result)
                        bar.set_postfix(failures=self._n_failures, refresh=False)
                        bar.update(self._n_done - bar.n)
        except BaseException as error:
            for future in self._flying:
                future.cancel()
            self._workers.abandon(list(self._flying))
            if isinstance(error, KeyboardInterrupt):
                done = f"{self._n_done} of {self._n_calls} calls"
                raise KeyboardInterrupt(f"Stopped after {done}. {self._store.note}") from None
            raise
        finally:
            self._store.flush()
        if self._error is not None:
            raise self._error

    # Sending ------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Keep every worker busy; tasks that may end their worker go out one by one."""
        if self._error is not None:
            self._queue.clear()
            self._suspects.clear()
        self._n_workers = self._workers.n_workers  # asked once: it may be a question to a cluster
        while self._queue and not self._suspects and len(self._flying) < self._n_workers:
            self._submit(self._next(), is_suspect=False)
        if self._suspects and not self._flying:
            self._submit(self._suspects.popleft(), is_suspect=True)

    def _next(self) -> Part:
        """Return calls for about a second, as far as is known what a call costs."""
        part = self._queue.popleft()
        per_row = self._seconds / max(self._n_done, 1) * part.width
        n_rows = _TASK_SECONDS / per_row if per_row > 0 else 1
        n_rows = min(n_rows, -(-len(part.numbers) // self._n_workers), _MAX_ROWS)
        n_calls = max(int(n_rows), 1) * part.width
        self._queue.extendleft(part.calls(n_calls, part.n_calls))
        return part.calls(0, n_calls)[0]

    def _submit(self, part: Part, *, is_suspect: bool, with_problem: bool = False) -> None:
        task = self._task(part, _CAREFUL_SECONDS if is_suspect else _TASK_SECONDS)
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
        self._flying[future] = _Flight(part, task, is_suspect, now, late_at)

    def _task(self, part: Part, seconds: float) -> Task:
        self._n_sent += 1
        samples, settings = self._samples, self._settings
        return Task(
            samples.instances.take(part.numbers),
            samples.series[0].take(part.numbers),
            part.start,
            part.stop,
            self._store.spread if samples.has_slopes else None,
            settings.stops,
            seconds,
            settings.timeout,
            None if self._marks is None else (self._marks, self._n_sent),
        )

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
        until, nothing = time.monotonic() + _START, np.empty(0, dtype=np.intp)
        empty = replace(task, instances=task.instances.take(nothing), mark=None)
        while not self._is_warm:
            try:
                sent = time.monotonic()
                future = self._workers.submit(empty, with_problem=True)
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

    def _gather(self) -> Iterator[tuple[Part, Result]]:
        """Wait for tasks, and give the results of those that came back."""
        patience = min((flight.late_at for flight in self._flying.values()), default=np.inf)
        left = min(max(patience - time.monotonic(), 0.0), 5.0)
        done, _ = wait(self._flying, timeout=left, return_when=FIRST_COMPLETED)
        if self._flying and not done:
            self._workers.check_alive()
            self._give_up_on_late_ones()
        dead: list[_Flight] = []
        for future in done:
            flight = self._flying.pop(future)
            try:
                result = future.result()
            except (Exception, CancelledError) as error:
                if not self._workers.has_died(error):
                    raise self._not_done(error) from error
                dead.append(flight)
                continue
            if result is None:
                self._submit(flight.part, is_suspect=flight.is_suspect, with_problem=True)
                continue
            rest = flight.part.calls(len(result.loss), flight.part.n_calls)
            (self._suspects if flight.is_suspect else self._queue).extendleft(reversed(rest))
            yield flight.part, result
        if dead:
            self._workers.recover()
            self._is_warm = False
            self._blame(dead, FailedCall(Status.DIED, "the call ended its worker process"))

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
        lates = [future for future in overdue if now > self._flying[future].late_at]
        if not lates:
            return
        others = [future for future in self._flying if future not in lates]
        kept = self._workers.replace(lates, others)
        flying = self._flying
        self._flying = {future: flying[future] for future in kept}
        self._is_warm = False
        self._queue.extendleft(flying[future].part for future in others if future not in kept)
        assert self._settings.timeout is not None
        self._blame([flying[future] for future in lates], late(self._settings.timeout))

    def _late_at(self, flight: _Flight, now: float, *, is_begun: bool) -> float:
        """Return when an overdue task is late: not before one of its calls has begun.

        Until then it may wait for a worker that starts, or behind the work of others.
        """
        task, mark = flight.task, flight.mark
        if task.mark is None:
            return flight.late_at if is_begun else now + self._allowed(task)
        if mark is None:
            return flight.sent_at + _START + self._allowed(task)
        return mark.began + (mark.stop - mark.first) * (task.timeout or np.inf) + _SLACK

    def _blame(self, flights: list[_Flight], reason: FailedCall) -> None:
        """Narrow tasks that ended, or held up, their worker down to the one call that did.

        Where workers share files with us they noted which call they were at. Elsewhere a task is
        cut into pieces, which go out one by one. When a worker is lost others may be lost with it,
        so that a call is guilty only if it was noted as late, or was out alone.
        """
        is_late = reason.status == Status.TIMED_OUT
        for flight in flights:
            part, mark = flight.part, flight.mark
            is_noted = flight.task.mark is not None
            if is_late and is_noted and mark is None:
                raise OracleError(
                    f"No worker of {self._workers.name} began a task in {_START:g} seconds. Does "
                    f"it take so long to unpickle a context? {self._store.note}"
                )
            if mark is not None:
                rest = part.calls(0, mark.first) + part.calls(mark.stop, part.n_calls)
                self._queue.extendleft(reversed(rest))
                (part,) = part.calls(mark.first, mark.stop)
            is_sure = flight.is_suspect or (is_late and is_noted)
            if part.n_calls > 1 and (is_sure or is_late):
                self._suspects.extend(part.cut())
            elif is_sure:
                self._take(part, Result.of_failure(Failure.of(reason, part.start)))
            else:
                self._suspects.append(part)

    # Taking -------------------------------------------------------------------------------------

    def _take(self, part: Part, result: Result) -> None:
        """Save what a task found, and end the run if it must."""
        settings, is_lost = self._settings, result.status > OK
        for row, failure in result.failures:
            instance = self._samples.instances.describe(int(part.numbers[row]))
            text = describe(instance, failure.column, failure.message)
            self.first_failures.setdefault(failure.status.name.lower(), text)
            if settings.stops and self._error is None:
                self._error = failure.error(instance, self._store.note)
        self._store.add(part.shard(result, self._ids, keep_failures=not settings.stops))
        self._seconds += result.seconds
        self._n_done += len(result.loss)
        self._n_failures += len(result.failures)
        self._report()
        now = time.monotonic()
        pause = min(max((now - self._started) * _FLUSH_SHARE, _FLUSH_LEAST), _FLUSH_MOST)
        if now - self._flushed > pause:
            self._flushed = now
            self._store.flush()
        if result.failures and not settings.stops:
            self._n_lost += int(np.sum(is_lost & ~part.is_label(len(is_lost))))
            self.check_rate(self._n_lost, self.first_failures)

    def check_rate(self, n_failures: int, first: Mapping[str, str]) -> None:
        """Raise if more samples failed than is accepted."""
        n_samples = self._samples.n_instances * self._samples.n_samples
        if n_failures > self._settings.max_failure_rate * n_samples:
            raise OracleError(
                f"{n_failures} of {n_samples} samples failed so far, more than max_failure_rate="
                f"{self._settings.max_failure_rate:g} allows. The first of each kind: "
                f"{listed(first.values())} {self._store.note}"
            )

    def _report(self) -> None:
        """Log how far the run is: once its cost is known, then now and again."""
        now = time.monotonic()
        due = _LOG_EVERY if self._has_logged else _FIRST_LOG
        if now - self._logged < due or self._n_done == 0:
            return
        cost, left = self._seconds / self._n_done, self._n_calls - self._n_done
        minutes = left * (now - self._started) / self._n_done / 60
        _logger.info(
            "%s solver calls%s, %s each, about %s left on %d worker%s; %d done, %d failed.",
            f"{self._n_calls:,}",
            " to make" if not self._has_logged else "",
            f"{cost * 1e3:.3g} ms" if cost < 1 else f"{cost:.3g} s",
            f"{minutes * 60:.0f} s" if minutes < 2 else f"{minutes:.0f} min",
            self._n_workers,
            "" if self._n_workers == 1 else "s",
            self._n_done,
            self._n_failures,
        )
        self._logged, self._has_logged = now, True
