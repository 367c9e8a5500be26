"""How a run is cut into chunks, from what an oracle call costs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from lodl._typing import Array
from lodl.oracle._failure import Failure
from lodl.oracle._inputs import OracleInputs
from lodl.oracle._tasks import BATCH_EDGES, RegretTask, decision_loss, evaluate_regrets
from lodl.samplers._sampler import BLOCK_SIZE

_LONGEST = 1.0  # seconds of work a kill may cost each worker
_SHORTEST = 0.2  # shorter tasks spend a notable share of their time on being sent and saved
_MIN_CHUNKS = 64  # enough to keep workers busy until the end, and a bar moving
_MAX_CHUNKS = 20_000  # a long run has longer tasks rather than more files
_MAX_SAMPLES = 2**18  # of a chunk: 2 MB of regrets
_TIMING = 0.01  # seconds spent on measuring the cost of a call
_MAX_TIMED = 1000  # calls
_MAX_FAILED = 5  # calls that are waited for when the first ones fail
_SLOW = 1e-3  # seconds of a call: what calls in a batch save does not matter then


@dataclass(frozen=True)
class Layout:
    """Shapes of the chunks of a run.

    Attributes:
        optimum: Rows and columns of a chunk of optima; it has one column.
        regret: Rows and columns of a chunk of regrets.
    """

    optimum: tuple[int, int]
    regret: tuple[int, int]


def measure_layout(inputs: OracleInputs, n_samples: int) -> Layout:
    """Returns chunks of about a second of work, shorter where a run is short."""
    single, many = _seconds_per_call(inputs)
    n_instances = len(inputs.y)
    regret = _chunk_size(n_instances * n_samples, many)
    return Layout(
        optimum=(min(_chunk_size(n_instances, single), n_instances), 1),
        regret=_chunk_shape(regret, n_instances, n_samples, inputs.problem.is_vectorised),
    )


def _chunk_size(n_calls: int, seconds_per_call: float) -> int:
    total = n_calls * seconds_per_call
    seconds = max(min(max(total / _MIN_CHUNKS, _SHORTEST), _LONGEST), total / _MAX_CHUNKS)
    return int(min(max(seconds / seconds_per_call, 1), _MAX_SAMPLES))


def _chunk_shape(
    size: int, n_instances: int, n_samples: int, is_vectorised: bool
) -> tuple[int, int]:
    """Returns rows and columns: whole blocks where possible, all samples of a row before more rows.

    A block cut in two is drawn twice, and, for a vectorised problem, evaluated twice.
    """
    whole = -(-n_samples // BLOCK_SIZE) * BLOCK_SIZE
    if size >= whole:
        return min(size // whole, n_instances), whole
    if size >= BLOCK_SIZE or is_vectorised:
        return 1, max(size // BLOCK_SIZE, 1) * BLOCK_SIZE
    return 1, size


def _seconds_per_call(inputs: OracleInputs) -> tuple[float, float]:
    """Times the oracle: what a call costs at a label, and what at a candidate."""
    at_label = _time_calls(inputs, lambda row: inputs.y[row], at_least=2)
    at_candidate = _time_calls(inputs, lambda row: inputs.candidates(row, 0)[0], at_least=1)
    if not inputs.problem.is_vectorised or at_candidate > _SLOW:
        return at_label, at_candidate
    columns = range(*BATCH_EDGES[-2:])  # the largest batch of the first block
    batch = RegretTask(
        inputs.take(slice(0, 1)),
        optimum=np.zeros(1),
        columns=columns,
        wanted=np.ones((1, len(columns)), dtype=np.bool_),
        stop_at_failure=True,
    )
    return at_label, min(at_candidate, evaluate_regrets(batch).seconds / len(columns))


def _time_calls(inputs: OracleInputs, y_hat_of: Callable[[int], Array], *, at_least: int) -> float:
    """Returns the seconds of a typical call; calls that fail count only if all do."""
    succeeded: list[float] = []
    failed: list[float] = []
    began = time.perf_counter()
    for row in range(min(len(inputs.y), _MAX_TIMED)):
        try:
            y_hat = y_hat_of(row)
        except Exception:  # noqa: BLE001 - `project` is the user's; its failure is told by a task
            continue
        started = time.perf_counter()
        outcome = decision_loss(inputs, row, y_hat, sample=None)
        kind = failed if isinstance(outcome, Failure) else succeeded
        kind.append(time.perf_counter() - started)
        is_known = len(succeeded) >= at_least or row + 1 >= _MAX_FAILED
        if is_known and time.perf_counter() - began > _TIMING:
            break
    # The first call may compile, load or connect.
    return median(succeeded[1:] or succeeded or failed or [_LONGEST])
