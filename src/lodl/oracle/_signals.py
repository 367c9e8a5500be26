"""Signals: the alarm that ends a call, and Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lodl.oracle._failure import FailedCall, Status


def late(timeout: float) -> FailedCall:
    """Return what became of a call that took too long."""
    unit = "second" if timeout == 1 else "seconds"
    return FailedCall(Status.TIMED_OUT, f"the call took longer than {timeout:g} {unit}")


class CtrlC(KeyboardInterrupt):
    """The user wants to stop; a plain `KeyboardInterrupt` is one that a solver raised."""


class Alarm:
    """Interrupts calls that take too long, where they can be interrupted.

    Python code and solvers that look for signals can, in the main thread of a process; the parent
    ends the worker of others.
    """

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout if _is_main() and hasattr(signal, "setitimer") else None

    def __call__(self, n_calls: int) -> None:
        """Give so many calls their time from now on; 0 calls the alarm off."""
        if self._timeout is not None:
            signal.setitimer(signal.ITIMER_REAL, n_calls * self._timeout)

    def forgive(self, error: BaseException) -> None:
        """Take an exception for the call's own failure, unless the user wants to stop."""
        self(0)
        if isinstance(error, CtrlC):
            raise error

    def __enter__(self) -> None:
        if self._timeout is not None:
            self._before = signal.signal(signal.SIGALRM, self._ring)

    def __exit__(self, *_: object) -> None:
        self(0)
        if self._timeout is not None:
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, _number: int, _frame: object) -> None:
        assert self._timeout is not None
        raise late(self._timeout)


@contextmanager
def ctrl_c_told_apart() -> Iterator[None]:
    """Make Ctrl-C raise `CtrlC`, if this is the thread that gets it."""
    before = signal.getsignal(signal.SIGINT)
    if not _is_main() or not callable(before):  # it is ignored, as in the background of a shell
        yield
        return

    def stop(number: int, frame: Any) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            raise CtrlC from None

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
