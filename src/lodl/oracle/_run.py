"""Fills a table: first the optimum of every instance, then the regrets."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from lodl._progress import progress_bar
from lodl.errors import InvalidInputError, OracleError, StoreError
from lodl.oracle._inputs import OracleInputs
from lodl.oracle._panel import Chunk, Panel
from lodl.oracle._parallel import WorkersError, run_unordered
from lodl.oracle._table import Table
from lodl.oracle._tasks import (
    OptimumTask,
    RegretTask,
    TaskResult,
    evaluate_optimum,
    evaluate_regrets,
)

OnFailure = Literal["raise", "skip"]
_LOG_EVERY = 10.0  # seconds
_MAX_LISTED = 10  # instances in a message


@dataclass(frozen=True)
class RunSettings:
    """How to run.

    Attributes:
        on_failure: "raise": the first failed call ends the run, and failed calls are tried again
            by the next one. "skip": failed calls stay failed.
        max_failure_rate: With "skip", the share of failed samples that is still accepted.
        n_jobs: As in joblib.
        progress: Whether to show a bar on a terminal.
    """

    on_failure: OnFailure
    max_failure_rate: float
    n_jobs: int | None
    progress: bool

    def __post_init__(self) -> None:
        if self.on_failure not in get_args(OnFailure):
            raise InvalidInputError(
                f'`on_failure` must be "raise" or "skip", got {self.on_failure!r}.'
            )
        rate = self.max_failure_rate
        if not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
            raise InvalidInputError(
                f"`max_failure_rate` must be from 0 to 1, got {self.max_failure_rate!r}."
            )
        if self.n_jobs is not None and (not isinstance(self.n_jobs, int) or self.n_jobs == 0):
            raise InvalidInputError(
                "`n_jobs` must be None or a whole number other than 0 (-1 for all cores), "
                f"got {self.n_jobs!r}."
            )

    @property
    def stops(self) -> bool:
        """Whether the first failure ends the run."""
        return self.on_failure == "raise"


@dataclass(frozen=True, eq=False)
class _Job:
    """A chunk with calls to make: `wanted` tells which, None stands for all."""

    chunk: Chunk
    wanted: npt.NDArray[np.bool_] | None

    @property
    def n_calls(self) -> int:
        rows, columns = self.chunk.shape
        return rows * columns if self.wanted is None else int(self.wanted.sum())

    @property
    def instances(self) -> range:
        return range(self.chunk.rows.start, self.chunk.rows.stop)


class Run:
    """One run over a table. What is done is saved, whatever ends it."""

    def __init__(
        self, inputs: OracleInputs, table: Table, n_samples: int, settings: RunSettings
    ) -> None:
        self._inputs = inputs
        self._table = table
        self._n_samples = n_samples
        self._settings = settings
        self._n_failures = 0
        self._error: OracleError | None = None
        self._logged = time.monotonic()

    def finish(self) -> None:
        """Makes all calls that are pending."""
        try:
            self._fill_optimum()
            self._fill_regrets()
            if self._settings.stops and self._n_samples == self._table.regret.shape[1]:
                self._table.log.first_failures.clear()  # those of earlier runs succeeded now
        finally:
            self._table.save_log()

    def _fill_optimum(self) -> None:
        def make_task(job: _Job) -> OptimumTask:
            return OptimumTask(self._inputs.take(job.chunk.rows), self._settings.stops, job.wanted)

        self._fill(self._table.optimum, 1, evaluate_optimum, make_task)

    def _fill_regrets(self) -> None:
        panel = self._table.regret
        optima = self._table.optimum.read(slice(0, panel.shape[0]), slice(0, 1))
        if optima.is_pending.any():
            raise StoreError("Optima were damaged while they were in use. Call `evaluate` again.")

        def make_task(job: _Job) -> RegretTask:
            chunk, wanted = job.chunk, job.wanted
            return RegretTask(
                self._inputs.take(chunk.rows),
                optimum=optima.values[chunk.rows, 0],
                columns=range(chunk.cols.start, chunk.cols.stop),
                wanted=np.ones(chunk.shape, dtype=np.bool_) if wanted is None else wanted,
                stop_at_failure=self._settings.stops,
            )

        self._fill(panel, self._n_samples, evaluate_regrets, make_task)

    def _fill(
        self,
        panel: Panel,
        n_columns: int,
        function: Callable[[Any], TaskResult],
        make_task: Callable[[_Job], Any],
    ) -> None:
        """Makes the pending calls of a panel: again for those that tasks had no time for."""
        jobs = self._plan(panel, n_columns)
        self._check_rate()
        while jobs and self._error is None:
            is_done = self._run_jobs(panel, jobs, function, make_task)
            jobs = [] if is_done else self._plan(panel, n_columns)
        if self._error is not None:
            raise self._error

    def _plan(self, panel: Panel, n_columns: int) -> list[_Job]:
        """Returns the chunks with calls to make, and counts the failures that stay."""
        jobs: list[_Job] = []
        self._n_failures = 0
        for band in panel.bands(n_columns):
            outcomes = panel.read(band, slice(0, n_columns))
            wanted = ~outcomes.is_ok if self._settings.stops else outcomes.is_pending
            if panel is self._table.regret:
                self._n_failures += int((outcomes.is_failed & ~wanted).sum())
            for chunk in panel.chunks(band, n_columns):
                top, bottom = chunk.rows.start - band.start, chunk.rows.stop - band.start
                part = np.zeros(chunk.shape, dtype=np.bool_)  # a chunk may hold more columns
                asked = wanted[top:bottom, chunk.cols]
                part[:, : asked.shape[1]] = asked
                if part.any():
                    jobs.append(_Job(chunk, None if part.all() else part))
        return jobs

    def _run_jobs(
        self,
        panel: Panel,
        jobs: list[_Job],
        function: Callable[[Any], TaskResult],
        make_task: Callable[[_Job], Any],
    ) -> bool:
        """Runs the jobs, saves each as it finishes, and tells whether all calls were made."""
        n_left = sum(job.n_calls for job in jobs)
        bar = progress_bar(
            n_left,
            unit="calls",
            description="optima" if panel is self._table.optimum else "samples",
            enabled=self._settings.progress,
        )
        results = run_unordered(
            function,
            lambda number: make_task(jobs[number]),
            n_tasks=len(jobs),
            n_jobs=self._settings.n_jobs,
            should_stop=lambda: self._error is not None,
        )
        with bar, closing(results), self._workers_named(jobs):
            for number, result in results:
                self._save(panel, jobs[number], result)
                self._note(panel, result)
                n_made = int((~result.outcomes.is_pending).sum())
                n_left -= n_made
                bar.set_postfix(failures=self._n_failures, refresh=False)
                bar.update(n_made)
        return n_left == 0

    @contextmanager
    def _workers_named(self, jobs: list[_Job]) -> Iterator[None]:
        """Tells which instances were with workers that died."""
        try:
            yield
        except WorkersError as error:
            rows = sorted({row for task in error.tasks for row in jobs[task].instances})
            held = f" They held instances {_listed(rows)}." if rows else ""
            raise OracleError(f"{error}{held} {self._table.note}") from error.__cause__

    def _save(self, panel: Panel, job: _Job, result: TaskResult) -> None:
        outcomes = result.outcomes
        if self._settings.stops:
            outcomes = outcomes.without_failures()
        if job.wanted is not None or outcomes.is_pending.any():
            outcomes = panel.read(job.chunk.rows, job.chunk.cols).updated_by(outcomes)
        panel.write(job.chunk, outcomes)

    def _note(self, panel: Panel, result: TaskResult) -> None:
        """Keeps the log, and ends the run if too much fails: tasks that are out are still saved."""
        log = self._table.log
        log.seconds += result.seconds
        for status, failure in result.failures.items():
            if self._settings.stops:  # the next run tries it again: nothing to note
                self._error = self._error or failure.error(self._table.note)
            else:
                log.first_failures.setdefault(status.name.lower(), str(failure))
        if panel is self._table.regret:
            self._n_failures += int(result.outcomes.is_failed.sum())
            self._check_rate()
        if time.monotonic() - self._logged > _LOG_EVERY:
            self._logged = time.monotonic()
            self._table.save_log()

    def _check_rate(self) -> None:
        n_samples = len(self._inputs.y) * self._n_samples
        if self._n_failures > self._settings.max_failure_rate * n_samples:
            reasons = "; ".join(self._table.log.first_failures.values())
            self._error = self._error or OracleError(
                f"{self._n_failures} of {n_samples} samples failed so far, more than "
                f"max_failure_rate={self._settings.max_failure_rate:g} allows. "
                f"The first of each kind: {reasons}. {self._table.note}"
            )


def _listed(rows: list[int]) -> str:
    shown = ", ".join(str(row) for row in rows[:_MAX_LISTED])
    return shown if len(rows) <= _MAX_LISTED else f"{shown} and {len(rows) - _MAX_LISTED} more"
