"""Makes the calls that are pending: on any workers, saved as they come, whatever goes wrong."""

import logging
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from lodl._progress import progress_bar
from lodl.errors import InvalidInputError, LodlError, OracleError
from lodl.oracle._ask import Result, Task, given_up
from lodl.oracle._failure import NO_OPTIMUM, FailedCall, Status, describe, listed
from lodl.oracle._part import Part
from lodl.oracle._samples import Samples
from lodl.oracle._signals import ctrl_c_told_apart, late
from lodl.oracle._workers import Workers, WorkersLostError, described

_TASK_SECONDS = 1.0  # work that a kill may cost each worker
_LEAST_SECONDS = 0.1  # of a task, where few are lost between two
_CAREFUL_SECONDS = 0.05  # of a task that may hold the call that ends its worker
_MAX_ROWS = 4096  # of a task: enough to hide its overhead
_SLACK = 2.0  # seconds that a task may be late for other reasons than its calls
_START = 60.0  # seconds that new workers may take to start
_ARRIVAL = 5.0  # times as long as before that a problem may take to reach a worker
_PATIENCE = 5.0  # seconds without a result after which to see whether there are workers
_LOG_EVERY = 30.0  # seconds
_BAR_DELAY = 2.0  # seconds before a bar appears: most runs have ended by then
_FIRST_LOG = 2.0  # seconds of work after which its cost is known

_logger = logging.getLogger(__name__)

OnFailure = Literal["raise", "skip"]


@dataclass(frozen=True)
class RunSettings:
    """How to treat failures, time and the user; see `sample`."""

    on_failure: OnFailure
    max_failure_rate: float
    timeout: float | None
    progress: bool

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
class Tally:
    """The calls of an oracle: what it made, and how many of them failed."""

    n_calls: int = 0  # solver calls made
    n_labels: int = 0  # outcomes at labels
    n_samples: int = 0  # outcomes at other points
    failed_labels: int = 0
    failed_samples: int = 0
    first_failures: dict[str, str] = field(default_factory=dict)  # by kind
    seconds: float = 0.0  # time spent in tasks, summed over workers

    @property
    def n_outcomes(self) -> int:
        """Calls that have an outcome."""
        return self.n_labels + self.n_samples

    @property
    def n_failed(self) -> int:
        """Calls that failed."""
        return self.failed_labels + self.failed_samples

    def __str__(self) -> str:
        parts = []
        if self.failed_labels:
            labels = f"{self.failed_labels} of {self.n_labels} labels failed"
            parts.append(f"{labels} (their instances have no regrets)")
        if self.failed_samples:
            parts.append(f"{self.failed_samples} of {self.n_samples} samples failed")
        return ", ".join(parts)


@dataclass(frozen=True)
class Wanted:
    """What a run returns besides stored answers."""

    scores: bool = True  # whether decisions are scored under the labels
    decisions: bool = False  # whether the decisions themselves are returned


@dataclass(eq=False)
class _Flight:
    """A task that is out."""

    part: Part
    is_suspect: bool  # whether it is out alone because it may end, or hold up, its worker
    sent_at: float
    allowed: float  # seconds after which it is late


class Runner:
    """One run. What is done is saved, whatever ends it."""

    def __init__(
        self,
        samples: Samples,
        parts: list[Part],
        workers: Workers,
        settings: RunSettings,
        tally: Tally,
        wanted: Wanted = Wanted(),  # noqa: B008 - it is frozen
    ) -> None:
        self._samples, self._store = samples, samples.store
        self._note = samples.note
        self._workers, self._settings = workers, settings
        self._tally, self._wanted = tally, wanted
        self._queue, self._suspects = deque(parts), deque[Part]()
        self._flying: dict[Future[Result | None], _Flight] = {}
        self._error: LodlError | None = None
        self._n_calls = sum(part.n_calls for part in parts)
        self._n_planned = tally.n_outcomes + self._n_calls
        self.decisions: dict[tuple[int, int], Any] = {}  # by instance and column
        self.first_failures: dict[str, str] = {}  # by kind
        self._n_done = self._n_failures = 0
        self._seconds = 0.0
        self._started = self._logged = time.monotonic()
        self._has_logged = False
        self._n_workers = 1
        self._delay = 0.0  # seconds that a task takes besides its calls, at least
        self._arrival: float | None = None  # seconds that instances and problem take, if known

    def finish(self) -> None:
        """Make all calls, or raise the error that ended the run."""
        bar = progress_bar(
            self._n_calls,
            unit="calls",
            description="solving",
            enabled=self._settings.progress,
            delay=_BAR_DELAY,
        )
        try:
            with bar, ctrl_c_told_apart():
                while self._queue or self._suspects or self._flying:
                    self._send()
                    for part, result in self._gather():
                        self._take(part, result)
                        bar.set_postfix(failures=self._n_failures, refresh=False)
                        bar.update(self._n_done - bar.n)
                    self._give_up_on_late_ones()
        except BaseException as error:
            for future in self._flying:
                future.cancel()
            self._workers.abandon(list(self._flying))
            if isinstance(error, KeyboardInterrupt):
                done = f"{self._n_done} of {self._n_calls} calls"
                raise KeyboardInterrupt(f"Stopped after {done}. {self._note}") from None
            if isinstance(error, WorkersLostError):
                raise OracleError(f"{error} {self._note}") from error.__cause__
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

    @property
    def _task_seconds(self) -> float:
        """Short enough that a kill costs little, long beside what is lost between two tasks."""
        return min(max(50 * self._delay, _LEAST_SECONDS), _TASK_SECONDS)

    def _next(self) -> Part:
        """Return calls for one task, as far as is known what a call costs."""
        part = self._queue.popleft()
        per_row = self._seconds / max(self._n_done, 1) * part.width
        n_rows = self._task_seconds / per_row if per_row > 0 else 1
        n_rows = min(n_rows, -(-len(part.numbers) // self._n_workers), _MAX_ROWS)
        n_calls = max(int(n_rows), 1) * part.width
        self._queue.extendleft(part.calls(n_calls, part.n_calls))
        return part.calls(0, n_calls)[0]

    def _submit(self, part: Part, *, is_suspect: bool, with_problem: bool = False) -> None:
        task = self._task(part, _CAREFUL_SECONDS if is_suspect else self._task_seconds)
        allowed = np.inf
        if task.timeout is not None:
            arrival = self._warm_up(task) if self._arrival is None else self._arrival
            # When its time is up it may be within a batch, which, if it fails, is asked one by one.
            n_calls = 1 + task.largest_batch(self._workers.problem)
            allowed = task.seconds + n_calls * task.timeout + _SLACK + _ARRIVAL * arrival
        now = time.monotonic()
        future = self._workers.submit(task, with_problem=with_problem)
        self._flying[future] = _Flight(part, is_suspect, now, allowed)

    def _task(self, part: Part, seconds: float) -> Task:
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
            self._wanted.scores,
            self._wanted.decisions,
        )

    def _warm_up(self, task: Task) -> float:
        """Wait until a worker has problem and instances: that is not the fault of a call."""
        until = time.monotonic() + _START
        while True:
            try:
                sent_at = time.monotonic()
                future = self._workers.submit(replace(task, stop=task.start), with_problem=True)
                future.result(timeout=max(until - sent_at, 0.0))
            except TimeoutError as error:
                raise OracleError(
                    f"No worker of {self._workers.name} was ready in {_START:g} seconds."
                ) from error
            except Exception as error:
                if not self._workers.has_died(error):
                    raise self._not_done(error) from error
            else:
                self._arrival = time.monotonic() - sent_at
                return self._arrival

    # Gathering ----------------------------------------------------------------------------------

    def _gather(self) -> Iterator[tuple[Part, Result]]:
        """Wait for tasks, and give the results of those that came back."""
        patience = min(self._settings.timeout or np.inf, _PATIENCE)
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
                    raise self._not_done(error) from error
                dead.append(flight)
                continue
            if result is None:
                self._submit(flight.part, is_suspect=flight.is_suspect, with_problem=True)
                continue
            rest = flight.part.calls(result.n_done, flight.part.n_calls)
            (self._suspects if flight.is_suspect else self._queue).extendleft(reversed(rest))
            delay = time.monotonic() - flight.sent_at - result.seconds
            self._delay = min(self._delay, delay) if self._n_done else delay
            yield flight.part, result
        if dead:
            self._workers.wait_for_any(may_start_later=True)
            self._arrival = None
            self._blame(dead, FailedCall(Status.DIED, "the call ended its worker process"))

    def _not_done(self, error: BaseException) -> LodlError:
        """Return the error of a task that failed outside of its calls."""
        if isinstance(error, LodlError):
            return error
        name, hint = self._workers.name, ""
        if isinstance(error, ImportError) or getattr(error, "while_unpickling", False):
            hint = "Can the problem be unpickled there, and is what it imports installed? "
        return OracleError(
            f"{name[:1].upper()}{name[1:]} could not do a task ({described(error)}). "
            f"{hint}{self._note}"
        )

    # Giving up ----------------------------------------------------------------------------------

    def _give_up_on_late_ones(self) -> None:
        """Replace the workers of tasks that are late, and narrow down which calls made them so."""
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
        self._queue.extendleft(flying[future].part for future in others if future not in kept)
        assert self._settings.timeout is not None
        self._blame([flying[future] for future in lates], late(self._settings.timeout))

    def _blame(self, flights: list[_Flight], reason: FailedCall) -> None:
        """Narrow tasks that ended, or held up, their worker down to the one call that did.

        When a worker is lost others may be lost with it, so that a task is guilty only if it was
        out alone. Then it is cut into pieces, which go out one by one, until it is a single call.
        """
        is_late = reason.status == Status.TIMED_OUT
        for part, is_suspect in ((flight.part, flight.is_suspect) for flight in flights):
            if part.n_calls > 1 and (is_suspect or is_late):
                self._suspects.extend(part.cut())
            elif is_suspect:
                task = self._task(part, 0.0)
                self._take(part, given_up(self._workers.problem, task, reason))
            else:
                self._suspects.append(part)

    # Taking -------------------------------------------------------------------------------------

    def _take(self, part: Part, result: Result) -> None:
        """Save what a task found, and end the run if it must."""
        self._store.add(result.runs, result.seconds, result.messages)
        self._seconds += result.seconds
        self._n_done += result.n_done
        self._n_failures += len(result.failures)
        for place, z in result.decisions.items():
            row, column = divmod(place, part.width)
            self.decisions[int(part.numbers[row]), part.start + column] = z
        self._count(part, result)
        for failure in result.failures:
            instance = self._samples.instances.describe(int(part.numbers[failure.row]))
            point = self._samples.describe_point(failure.column)
            text = describe(instance, point, failure.message)
            for first in (self.first_failures, self._tally.first_failures):
                first.setdefault(failure.status.name.lower(), text)
            if self._settings.stops and self._error is None:
                self._error = failure.error(instance, point, self._note)
        self._report()
        if not self._settings.stops:
            check_rate(self._tally, self._n_planned, self._settings, self._note)

    def _count(self, part: Part, result: Result) -> None:
        tally = self._tally
        n_labels = len(range(0, result.n_done, part.width)) if part.start == 0 else 0
        tally.n_calls += result.n_calls
        tally.seconds += result.seconds
        tally.n_labels += n_labels
        not_called = sum(run.status.count(NO_OPTIMUM) for run in result.runs)
        tally.n_samples += result.n_done - n_labels - not_called
        failed_labels = sum(failure.column == 0 for failure in result.failures)
        tally.failed_labels += failed_labels
        tally.failed_samples += len(result.failures) - failed_labels

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
            *(self._n_workers, "" if self._n_workers == 1 else "s", self._n_done, self._n_failures),
        )
        self._logged, self._has_logged = now, True


def check_rate(tally: Tally, n_planned: int, settings: RunSettings, note: str) -> None:
    """Raise if more calls failed than `max_failure_rate` allows.

    Args:
        tally: The calls so far.
        n_planned: Number of calls when the run is complete, with those of earlier runs.
        settings: Has the rate.
        note: What is said about the answers that are kept.
    """
    if tally.n_failed > settings.max_failure_rate * max(n_planned, tally.n_outcomes):
        raise OracleError(
            f"{tally}, more than max_failure_rate={settings.max_failure_rate:g} allows. "
            f"The first of each kind: {listed(tally.first_failures.values())} {note}"
        )
