"""The work of one task: oracle calls for a chunk, nothing else. Runs in worker processes."""

import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lodl.blas import one_blas_thread
from lodl.oracle._failure import Failure
from lodl.oracle._inputs import OracleInputs
from lodl.oracle._panel import Outcomes, SampleStatus
from lodl.problems import decision_losses
from lodl.samplers import BLOCK_SIZE
from lodl.typing import Array


@dataclass(frozen=True, eq=False)
class OptimumTask:
    """The decision losses of some instances at their own labels."""

    inputs: OracleInputs
    stop_at_failure: bool


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

    def record(self, row: int, column: int, outcome: float | Failure) -> None:
        """Notes what became of one call."""
        if isinstance(outcome, Failure):
            self.outcomes.status[row, column] = outcome.status
            self.failures.setdefault(outcome.status, outcome)
        else:
            self.outcomes.status[row, column] = SampleStatus.OK
            self.outcomes.values[row, column] = outcome


def evaluate_optimum(task: OptimumTask) -> TaskResult:
    """Calls the oracle at the label of each instance."""
    inputs = task.inputs
    result = TaskResult(Outcomes.pending((len(inputs.y), 1)))
    with one_blas_thread():
        started = time.perf_counter()
        for row, label in enumerate(inputs.y):
            result.record(row, 0, _decision_loss(inputs, row, label, sample=None))
            if result.failures and task.stop_at_failure:
                break
        result.seconds = time.perf_counter() - started
    return result


def evaluate_regrets(task: RegretTask) -> TaskResult:
    """Calls the oracle at the wanted candidates of each instance."""
    result = TaskResult(Outcomes.pending((len(task.inputs.y), len(task.columns))))
    with one_blas_thread():
        started = time.perf_counter()
        for row in range(len(task.inputs.y)):
            if np.isnan(task.optimum[row]):
                result.outcomes.status[row, task.wanted[row]] = SampleStatus.NO_OPTIMUM
            else:
                _evaluate_row(task, row, result)
            if result.failures and task.stop_at_failure:
                break
        result.seconds = time.perf_counter() - started
    return result


def _evaluate_row(task: RegretTask, row: int, result: TaskResult) -> None:
    start, stop = task.columns.start, task.columns.stop
    for block in range(start // BLOCK_SIZE, -(-stop // BLOCK_SIZE)):
        first = max(block * BLOCK_SIZE, start)
        last = min((block + 1) * BLOCK_SIZE, stop)
        samples = first + np.flatnonzero(task.wanted[row, first - start : last - start])
        if samples.size:
            _evaluate_block(task, row, samples, result)
        if result.failures and task.stop_at_failure:
            return


def _evaluate_block(
    task: RegretTask, row: int, samples: npt.NDArray[np.intp], result: TaskResult
) -> None:
    """Evaluates some samples of one block."""
    if task.inputs.problem.is_vectorised and _evaluate_at_once(task, row, samples, result):
        return
    inputs, start = task.inputs, task.columns.start
    try:
        candidates = inputs.candidates(row, samples[0] // BLOCK_SIZE)
    except Exception as error:  # noqa: BLE001 - `project` is the user's; without it all fail
        for sample in samples.tolist():
            failure = Failure.of(error, int(inputs.numbers[row]), sample)
            result.record(row, sample - start, failure)
        return
    for sample in samples.tolist():
        loss = _decision_loss(inputs, row, candidates[sample % BLOCK_SIZE], sample=sample)
        regret = loss if isinstance(loss, Failure) else loss - task.optimum[row]
        result.record(row, sample - start, regret)
        if result.failures and task.stop_at_failure:
            return


def _evaluate_at_once(
    task: RegretTask, row: int, samples: npt.NDArray[np.intp], result: TaskResult
) -> bool:
    """Evaluates samples of one block in one call; tells whether that worked.

    The call gets the whole block, whatever is wanted of it: the last bits of an answer may depend
    on the size of the batch, and must not depend on how the work was divided.
    """
    inputs = task.inputs
    try:
        losses = decision_losses(
            inputs.problem,
            inputs.candidates(row, samples[0] // BLOCK_SIZE),
            inputs.y[row],
            inputs.context_of(row),
        )[samples % BLOCK_SIZE]
    except Exception:  # noqa: BLE001 - asked again sample by sample, to learn which one raises
        return False
    columns = samples - task.columns.start
    finite = np.isfinite(losses)
    result.outcomes.status[row, columns[finite]] = SampleStatus.OK
    result.outcomes.values[row, columns[finite]] = losses[finite] - task.optimum[row]
    for i in np.flatnonzero(~finite):
        failure = _non_finite(losses[i], int(inputs.numbers[row]), int(samples[i]))
        result.record(row, columns[i], failure)
    return True


def _decision_loss(
    inputs: OracleInputs, row: int, y_hat: Array, *, sample: int | None
) -> float | Failure:
    """Returns the decision loss of one prediction, or why there is none."""
    instance = int(inputs.numbers[row])
    try:
        # A copy: a solver that writes into its argument must not change the label.
        loss = decision_losses(
            inputs.problem, y_hat[np.newaxis].copy(), inputs.y[row], inputs.context_of(row)
        )[0]
    except Exception as error:  # noqa: BLE001 - whatever a solver raises is a failed call
        return Failure.of(error, instance, sample)
    return float(loss) if np.isfinite(loss) else _non_finite(loss, instance, sample)


def _non_finite(loss: float, instance: int, sample: int | None) -> Failure:
    message = f"the objective is {loss}, expected a finite number"
    return Failure(SampleStatus.NON_FINITE, instance, sample, message)
