"""What each process and thread makes for itself, at first use."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerThread(Generic[T]):
    """Something that is made once per process and thread, and is left out of a pickle.

    Solvers and models that have been set up can neither be sent to another process nor be used by
    two threads at a time.

    Args:
        make: Makes it; this is what travels.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._local = threading.local()

    def get(self) -> T:
        """Return the one of this process and thread."""
        kept: tuple[int, T] | None = getattr(self._local, "kept", None)
        if kept is None or kept[0] != os.getpid():  # else a fork would use its parent's
            kept = self._local.kept = (os.getpid(), self._make())
        return kept[1]

    def __getstate__(self) -> Callable[[], T]:
        return self._make

    def __setstate__(self, make: Callable[[], T]) -> None:
        self.__init__(make)  # type: ignore[misc]
