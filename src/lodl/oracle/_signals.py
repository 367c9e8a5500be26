"""Signals: the alarm that ends a call, and Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class CallTimeoutError(BaseException):
    """The call took longer than `timeout`."""


@dataclass(eq=False)
class Alarm:
    """Interrupts a call that takes too long, where it can be interrupted.

    Python code and solvers that look for signals can; a parent ends the worker of others.
    """

    timeout: float | None
    is_armed: bool = False

    def set(self, n_calls: int) -> None:
        if self.is_armed and self.timeout is not None:
            signal.setitimer(signal.ITIMER_REAL, n_calls * self.timeout)

    def clear(self) -> None:
        if self.is_armed:
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def forgive(self, error: BaseException) -> None:
        """Take an exception for the call's own failure, unless the user wants to stop."""
        self.clear()
        is_main = threading.current_thread() is threading.main_thread()
        if isinstance(error, KeyboardInterrupt) and is_main and interrupts.by_user:
            raise error


@contextmanager
def alarm_after(timeout: float | None) -> Iterator[Alarm]:
    """Give the alarm of a task; only the main thread of a process can have one that rings."""
    is_main = threading.current_thread() is threading.main_thread()
    if timeout is None or not is_main or not hasattr(signal, "setitimer"):
        yield Alarm(timeout)
        return

    def ring(_number: int, _frame: object) -> None:
        raise CallTimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    alarm = Alarm(timeout, is_armed=True)
    try:
        yield alarm
    finally:
        alarm.clear()
        signal.signal(signal.SIGALRM, before)


class Interrupts:
    """Which KeyboardInterrupt is the user's Ctrl-C, and which one a solver raised.

    Attributes:
        by_user: Whether a KeyboardInterrupt is to be taken for the user's.
    """

    def __init__(self) -> None:
        self.by_user = True

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note when the signal comes, if this is the thread that gets it."""
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT)
        if not is_main or before not in (signal.default_int_handler, signal.SIG_IGN):
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
