"""One thread per task: workers do not fight for cores, and sums have one order."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from lodl._validation import require

_lock = threading.Lock()
_n_inside = 0
_limits: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limits BLAS to one thread until the last task of this process has left.

    The limit belongs to the process, while tasks may be threads of it (joblib's threading backend,
    a Dask worker with several threads): the first to enter sets it, the last to leave restores it.
    """
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
            if _n_inside == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limits torch to one thread."""
    torch = require("torch", "torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
