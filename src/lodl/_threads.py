"""Threads: limits to one thread per task, and objects that every thread makes for itself.

With one thread per task, workers do not compete for cores and sums have one order.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Generic, TypeVar

from lodl._arrays import require

_lock = threading.Lock()
_n_inside = 0
_limits: Any = None  # threadpoolctl's, while a task is inside

T = TypeVar("T")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last task of this process has left."""
    # The limit belongs to the process, but tasks may be its threads (joblib's, a Dask worker's).
    global _n_inside, _limits
    with _lock:
        _n_inside += 1
        if _n_inside == 1:
            _limits = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limits.restore_original_limits()


@lru_cache(maxsize=1)
def _controller(_n_modules: int) -> Any:
    """Return a controller of the loaded libraries. It is slow to make, and imports may add some."""
    from threadpoolctl import ThreadpoolController  # slow to import

    return ThreadpoolController()


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


class PerThread(Generic[T]):
    """An object that every process and thread makes for itself. A pickle holds only its maker."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._local = make, threading.local()

    def get(self) -> T:
        """Return this thread's object, making it on first use."""
        made: tuple[int, T] | None = getattr(self._local, "made", None)
        if made is None or made[0] != os.getpid():  # a forked process must not use its parent's
            made = self._local.made = (os.getpid(), self._make())
        return made[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return PerThread, (self._make,)
