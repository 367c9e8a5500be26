"""Whether an objective is affine in the label, found out where the oracle calls are made."""

from functools import partial
from typing import Any

from lodl._typing import Array, Context
from lodl.errors import OracleError
from lodl.oracle._run import RunSettings
from lodl.oracle._workers import choose_workers
from lodl.problems import Problem

_N_INSTANCES = 3  # that are looked at
_N_CALLS = 20  # at most, of the solver
_START = 60.0  # seconds that new workers may take to start


def has_affine_objective(
    problem: Problem,
    y: Array,
    context: Context,
    *,
    n_jobs: int | None = None,
    executor: Any = None,
    timeout: float | None = None,
) -> bool:
    """Return whether the objective is affine in the label; the options are those of `sample`.

    A solver that crashes or hangs does so in a worker. The answer is then no, and whoever asks for
    samples next says where and why.
    """
    from lodl.testing import is_affine  # slow to import

    timeout = RunSettings("raise", 0.0, timeout, progress=False).timeout  # checked
    workers = choose_workers(problem, n_jobs, executor, timeout)
    few = None
    if context is not None:
        y = y[:_N_INSTANCES]
        few = [context[i] for i in range(len(y))]
    seconds = None if timeout is None else _N_CALLS * timeout + _START
    try:
        return bool(workers.apply(partial(is_affine, context=few), y, seconds=seconds))
    except OracleError:
        return False
