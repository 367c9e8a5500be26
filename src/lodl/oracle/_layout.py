"""How a run is cut into chunks, from what an oracle call costs."""

import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from lodl.oracle._inputs import OracleInputs
from lodl.oracle._tasks import OptimumTask, RegretTask, evaluate_optimum, evaluate_regrets
from lodl.samplers import BLOCK_SIZE

_LONGEST = 1.0  # seconds of work a kill may cost each worker
_SHORTEST = 0.2  # shorter tasks spend a notable share of their time on being sent and saved
_MIN_CHUNKS = 64  # enough to keep workers busy until the end, and a bar moving
_MAX_CHUNKS = 20_000  # a long run has longer tasks rather than more files
_MAX_SAMPLES = 2**18  # of a chunk: 2 MB of regrets
_TIMING = 0.01  # seconds spent on measuring the cost of a call


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
    """Times the oracle at a few labels: what a single call costs, and one in a block."""
    seconds: list[float] = []
    first = time.perf_counter()
    for row in range(min(len(inputs.y), 1000)):
        task = OptimumTask(inputs.take(slice(row, row + 1)), stop_at_failure=False)
        seconds.append(evaluate_optimum(task).seconds)
        if row > 0 and time.perf_counter() - first > _TIMING:
            break
    single = median(seconds[1:] or seconds)  # the first call may compile, load or connect
    if not inputs.problem.is_vectorised:
        return single, single
    block = RegretTask(
        inputs.take(slice(0, 1)),
        optimum=np.zeros(1),
        columns=range(BLOCK_SIZE),
        wanted=np.ones((1, BLOCK_SIZE), dtype=np.bool_),
        stop_at_failure=False,
    )
    return single, min(single, evaluate_regrets(block).seconds / BLOCK_SIZE)
