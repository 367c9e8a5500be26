"""One thread per task: workers do not compete for cores, and sums have one order."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lodl._arrays import require

_lock = threading.Lock()
_n_inside = 0
_limits: Any = None  # of threadpoolctl, while a task is inside


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last task of this process has left.

    The limit belongs to the process, but tasks may be threads of it (joblib's threading backend, a
    Dask worker with several threads): the first to enter sets it, the last to leave restores it.
    """
    from threadpoolctl import threadpool_limits  # slow to import

    global _n_inside, _limits
    with _lock:
        _n_inside += 1
        if _n_inside == 1:
            _limits = threadpool_limits(1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limits.restore_original_limits()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread."""
    torch = require("torch", "torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
