"""Fills a table: first the optimum of every instance, then the regrets."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from lodl.errors import InvalidInputError, OracleError, StoreError
from lodl.oracle._inputs import OracleInputs
from lodl.oracle._panel import Chunk, Panel
from lodl.oracle._parallel import run_unordered
from lodl.oracle._table import Table
from lodl.oracle._tasks import (
    OptimumTask,
    RegretTask,
    TaskResult,
    evaluate_optimum,
    evaluate_regrets,
)
from lodl.progress import progress_bar

OnFailure = Literal["raise", "skip"]
_LOG_EVERY = 10.0  # seconds


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
        if not 0 <= self.max_failure_rate <= 1:
            raise InvalidInputError(
                f"`max_failure_rate` must be from 0 to 1, got {self.max_failure_rate!r}."
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
        finally:
            self._table.save_log()

    def _fill_optimum(self) -> None:
        jobs = self._plan(self._table.optimum, 1)

        def make_task(number: int) -> OptimumTask:
            rows = jobs[number].chunk.rows
            return OptimumTask(self._inputs.take(rows), self._settings.stops)

        self._fill(self._table.optimum, jobs, evaluate_optimum, make_task)

    def _fill_regrets(self) -> None:
        panel = self._table.regret
        jobs = self._plan(panel, self._n_samples)
        optima = self._table.optimum.read(slice(0, panel.shape[0]), slice(0, 1))
        if optima.is_pending.any():
            raise StoreError("Optima were damaged while they were in use. Call `evaluate` again.")

        def make_task(number: int) -> RegretTask:
            chunk, wanted = jobs[number].chunk, jobs[number].wanted
            return RegretTask(
                self._inputs.take(chunk.rows),
                optimum=optima.values[chunk.rows, 0],
                columns=range(chunk.cols.start, chunk.cols.stop),
                wanted=np.ones(chunk.shape, dtype=np.bool_) if wanted is None else wanted,
                stop_at_failure=self._settings.stops,
            )

        self._check_rate()
        self._fill(panel, jobs, evaluate_regrets, make_task)

    def _plan(self, panel: Panel, n_columns: int) -> list[_Job]:
        """Returns the chunks with calls to make, and counts the failures that stay."""
        jobs: list[_Job] = []
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

    def _fill(
        self,
        panel: Panel,
        jobs: list[_Job],
        function: Callable[[Any], TaskResult],
        make_task: Callable[[int], Any],
    ) -> None:
        """Runs the jobs and saves each as it finishes."""
        bar = progress_bar(
            sum(job.n_calls for job in jobs),
            unit="calls",
            description="optima" if panel is self._table.optimum else "samples",
            enabled=self._settings.progress,
        )
        results = run_unordered(
            function,
            make_task,
            n_tasks=len(jobs),
            n_jobs=self._settings.n_jobs,
            should_stop=lambda: self._error is not None,
        )
        with bar, closing(results):
            for number, result in results:
                self._save(panel, jobs[number], result)
                self._note(panel, result)
                bar.set_postfix(failures=self._n_failures, refresh=False)
                bar.update(jobs[number].n_calls)
        if self._error is not None:
            raise self._error

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
            log.first_failures.setdefault(status.name.lower(), str(failure))
            if self._settings.stops:
                self._error = self._error or failure.error()
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
                f"max_failure_rate={self._settings.max_failure_rate:g} allows. What was done is "
                f"kept. The first of each kind: {reasons}."
            )
