"""Signals: the alarm that ends a call, and Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lodl.oracle._failure import FailedCall, Status


@dataclass(eq=False)
class Alarm:
    """Interrupts a call that takes too long, where it can be interrupted.

    Python code and solvers that look for signals can; a parent ends the worker of others.
    """

    timeout: float
    is_armed: bool

    def set(self, n_calls: int) -> None:
        if self.is_armed:
            signal.setitimer(signal.ITIMER_REAL, n_calls * self.timeout)

    def clear(self) -> None:
        if self.is_armed:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def forgive(self, error: BaseException) -> None:
        """Take an exception for the call's own failure, unless the user wants to stop."""
        self.clear()
        if isinstance(error, KeyboardInterrupt) and _is_main() and interrupts.by_user:
            raise error


@contextmanager
def alarm_after(timeout: float | None) -> Iterator[Alarm]:
    """Give the alarm of a task; only the main thread of a process can have one that rings."""
    if timeout is None or not _is_main() or not hasattr(signal, "setitimer"):
        yield Alarm(0.0, is_armed=False)
        return

    def ring(_number: int, _frame: object) -> None:
        raise late(timeout)

    before = signal.signal(signal.SIGALRM, ring)
    alarm = Alarm(timeout, is_armed=True)
    try:
        yield alarm
    finally:
        alarm.clear()
        signal.signal(signal.SIGALRM, before)


def late(timeout: float) -> FailedCall:
    """Return what became of a call that took too long."""
    unit = "second" if timeout == 1 else "seconds"
    return FailedCall(Status.TIMED_OUT, f"the call took longer than {timeout:g} {unit}")


class Interrupts:
    """Which KeyboardInterrupt is the user's Ctrl-C, and which one a solver raised."""

    by_user = True  # whether a KeyboardInterrupt is to be taken for the user's

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note when the signal comes, if this is the thread that gets it."""
        before = signal.getsignal(signal.SIGINT)
        if not _is_main() or before not in (signal.default_int_handler, signal.SIG_IGN):
            yield
            return

        def note(number: int, frame: Any) -> None:
            self.by_user = True
            signal.default_int_handler(number, frame)

        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, note)
        self.by_user = False
        try:
            yield
        finally:
            self.by_user = True
            signal.signal(signal.SIGINT, before)


interrupts = Interrupts()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
