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
    """A signal asked the program to stop. A solver can raise only a plain `KeyboardInterrupt`."""


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


_STOPS = (signal.SIGINT, signal.SIGTERM)
_held_back: list[tuple[int, Any]] | None = None  # signals that came during `hold_back`


@contextmanager
def ctrl_c_told_apart() -> Iterator[None]:
    """Distinguish Ctrl-C and SIGTERM from exceptions that a solver raises.

    In the block, whatever a handler of these signals raises is raised as `CtrlC`; the end of the
    block raises the handler's own exception again. Signals without a Python handler are left alone.
    """
    handlers = {number: signal.getsignal(number) for number in _STOPS} if _is_main() else {}

    def stop(number: int, frame: Any) -> None:
        if _held_back is not None:
            _held_back.append((number, frame))
            return
        handler: Any = handlers[signal.Signals(number)]
        try:
            handler(number, frame)
        except BaseException as error:
            raise CtrlC from error

    own = [number for number, handler in handlers.items() if callable(handler)]
    for number in own:
        signal.signal(number, stop)
    try:
        yield
    except CtrlC as error:
        raise error.__cause__ or error from None
    finally:
        for number in own:
            signal.signal(number, handlers[number])


@contextmanager
def hold_back() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM while a block starts processes, so that none is half started.

    The processes inherit a blocked SIGINT, which gives them time to ignore it. SIGTERM is delayed
    only inside `ctrl_c_told_apart`.
    """
    global _held_back
    has_mask, held = hasattr(signal, "pthread_sigmask"), list[tuple[int, Any]]()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if has_mask else set()
    if _is_main():
        _held_back = held
    try:
        yield
    finally:
        if _is_main():
            _held_back = None
        if has_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, frame in held:
            handler: Any = signal.getsignal(number)
            handler(number, frame)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
