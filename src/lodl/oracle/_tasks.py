"""The work of one task: oracle calls for a chunk, nothing else. Runs in worker processes."""

import itertools
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.oracle._failure import Failure
from lodl.oracle._inputs import OracleInputs
from lodl.oracle._panel import Outcomes, SampleStatus
from lodl.problems._regret import decision_losses, regret_of
from lodl.samplers._sampler import BLOCK_SIZE

BATCH_EDGES = (0, 50, 100, 250, BLOCK_SIZE)
"""Where the batches of a vectorised problem begin and end in the first block of an instance; later
blocks are one batch each. Small ones first: few samples cost few calls, many go in large batches.
"""

SOFT_LIMIT = 10.0  # seconds after which a task returns what it has: a kill loses no more


@dataclass(frozen=True, eq=False)
class OptimumTask:
    """The decision losses of some instances at their own labels.

    Attributes:
        inputs: The instances.
        stop_at_failure: Whether to return at the first failure.
        wanted: Which calls are pending, shape (instances, 1); None stands for all.
    """

    inputs: OracleInputs
    stop_at_failure: bool
    wanted: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class RegretTask:
    """The regrets of some instances at some of their candidates.

    Attributes:
        inputs: The instances.
        optimum: Their decision losses at the label, NaN where the oracle failed.
        columns: Numbers of the samples.
        wanted: Which calls are pending, shape (instances, samples).
        stop_at_failure: Whether to return at the first failure.
    """

    inputs: OracleInputs
    optimum: Array
    columns: range
    wanted: npt.NDArray[np.bool_]
    stop_at_failure: bool


@dataclass(eq=False)
class TaskResult:
    """What a task found out; outcomes not reached are pending."""

    outcomes: Outcomes
    failures: dict[SampleStatus, Failure] = field(default_factory=dict)  # the first of each kind
    seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def record(self, row: int, column: int, outcome: float | Failure) -> None:
        """Notes what became of one call."""
        if isinstance(outcome, Failure):
            self.outcomes.status[row, column] = outcome.status
            self.failures.setdefault(outcome.status, outcome)
        else:
            self.outcomes.status[row, column] = SampleStatus.OK
            self.outcomes.values[row, column] = outcome

    def must_end(self, task: OptimumTask | RegretTask) -> bool:
        """Tells, after a call, whether to return what there is and leave the rest pending."""
        if self.failures and task.stop_at_failure:
            return True
        return time.perf_counter() - self.started > SOFT_LIMIT

    def timed(self) -> "TaskResult":
        """Returns this result with its time."""
        self.seconds = time.perf_counter() - self.started
        return self


def evaluate_optimum(task: OptimumTask) -> TaskResult:
    """Calls the oracle at the label of each instance."""
    inputs = task.inputs
    result = TaskResult(Outcomes.pending((len(inputs.y), 1)))
    with one_blas_thread():
        for row, label in enumerate(inputs.y):
            if task.wanted is not None and not task.wanted[row, 0]:
                continue
            result.record(row, 0, decision_loss(inputs, row, label, sample=None))
            if result.must_end(task):
                break
    return result.timed()


def evaluate_regrets(task: RegretTask) -> TaskResult:
    """Calls the oracle at the wanted candidates of each instance."""
    result = TaskResult(Outcomes.pending((len(task.inputs.y), len(task.columns))))
    with one_blas_thread():
        for row in np.flatnonzero(task.wanted.any(axis=1)).tolist():
            if np.isnan(task.optimum[row]):
                result.outcomes.status[row, task.wanted[row]] = SampleStatus.NO_OPTIMUM
            else:
                _evaluate_row(task, row, result)
            if result.must_end(task):
                break
    values = result.outcomes.values  # so far decision losses
    values[:] = regret_of(values, task.optimum[:, np.newaxis])
    return result.timed()


def _evaluate_row(task: RegretTask, row: int, result: TaskResult) -> None:
    start, stop = task.columns.start, task.columns.stop
    for block in range(start // BLOCK_SIZE, -(-stop // BLOCK_SIZE)):
        first = max(block * BLOCK_SIZE, start)
        last = min((block + 1) * BLOCK_SIZE, stop)
        samples = first + np.flatnonzero(task.wanted[row, first - start : last - start])
        if samples.size == 0:
            continue
        _evaluate_block(task, row, samples, result)
        if result.must_end(task):
            return


def _evaluate_block(
    task: RegretTask, row: int, samples: npt.NDArray[np.intp], result: TaskResult
) -> None:
    """Evaluates some samples of one block."""
    inputs, start = task.inputs, task.columns.start
    try:
        candidates = inputs.candidates(row, samples[0] // BLOCK_SIZE)
    except Exception as error:  # noqa: BLE001 - `project` is the user's; without it all fail
        for sample in samples.tolist():
            failure = Failure.of(error, int(inputs.numbers[row]), sample)
            result.record(row, sample - start, failure)
        return
    if not inputs.problem.is_vectorised:
        _evaluate_one_by_one(task, row, samples, candidates, result)
        return
    edges = BATCH_EDGES if samples[0] < BLOCK_SIZE else (0, BLOCK_SIZE)
    places = samples % BLOCK_SIZE
    for span in itertools.starmap(slice, itertools.pairwise(edges)):
        batch = samples[(places >= span.start) & (places < span.stop)]
        if batch.size == 0:
            continue
        if not _evaluate_at_once(task, row, batch, candidates, span, result):
            _evaluate_one_by_one(task, row, batch, candidates, result)
        if result.must_end(task):
            return


def _evaluate_one_by_one(
    task: RegretTask,
    row: int,
    samples: npt.NDArray[np.intp],
    candidates: Array,
    result: TaskResult,
) -> None:
    for sample in samples.tolist():
        y_hat = candidates[sample % BLOCK_SIZE]
        outcome = decision_loss(task.inputs, row, y_hat, sample=sample)
        result.record(row, sample - task.columns.start, outcome)
        if result.must_end(task):
            return


def _evaluate_at_once(
    task: RegretTask,
    row: int,
    samples: npt.NDArray[np.intp],
    candidates: Array,
    span: slice,
    result: TaskResult,
) -> bool:
    """Evaluates samples of one batch in one call; tells whether that worked.

    The call gets the whole batch, whatever is wanted of it: the last bits of an answer may depend
    on the size of a batch, and must not depend on how the work was divided.
    """
    inputs = task.inputs
    batch = candidates[span]
    if not np.isfinite(batch).all():
        return False
    try:
        losses = decision_losses(inputs.problem, batch, inputs.y[row], inputs.context_of(row))
    except Exception:  # noqa: BLE001 - asked again sample by sample, to learn which one raises
        return False
    losses = losses[samples % BLOCK_SIZE - span.start]
    columns = samples - task.columns.start
    finite = np.isfinite(losses)
    result.outcomes.status[row, columns[finite]] = SampleStatus.OK
    result.outcomes.values[row, columns[finite]] = losses[finite]
    for i in np.flatnonzero(~finite):
        failure = _non_finite(losses[i], int(inputs.numbers[row]), int(samples[i]))
        result.record(row, columns[i], failure)
    return True


def decision_loss(
    inputs: OracleInputs, row: int, y_hat: Array, *, sample: int | None
) -> float | Failure:
    """Returns the decision loss of one prediction, or why there is none."""
    instance = int(inputs.numbers[row])
    if not np.isfinite(y_hat).all():
        message = "the candidate is not finite: see the problem's `project`, or the sampler"
        return Failure(SampleStatus.BAD_CANDIDATE, instance, sample, message)
    try:
        loss = decision_losses(
            inputs.problem, y_hat[np.newaxis], inputs.y[row], inputs.context_of(row)
        )[0]
    except Exception as error:  # noqa: BLE001 - whatever a solver raises is a failed call
        return Failure.of(error, instance, sample)
    return float(loss) if np.isfinite(loss) else _non_finite(loss, instance, sample)


def _non_finite(loss: float, instance: int, sample: int | None) -> Failure:
    message = f"the objective is {loss}, expected a finite number"
    return Failure(SampleStatus.NON_FINITE, instance, sample, message)
