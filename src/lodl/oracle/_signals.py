"""Signals: the alarm that interrupts a late call, and Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lodl.oracle._failures import late

_STOPS = (signal.SIGINT, signal.SIGTERM)
_delayed: list[tuple[int, Any]] | None = None  # signals that came during `delayed_signals`


class CtrlC(KeyboardInterrupt):
    """Ctrl-C or SIGTERM stops the program. A solver can only raise plain `KeyboardInterrupt`."""


class Alarm:
    """Interrupts calls that take too long, by a signal in the main thread of a process.

    Solvers that ignore signals, and calls in other threads, end with their worker process.
    """

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout if _is_main() and hasattr(signal, "setitimer") else None

    def __call__(self, n_calls: int) -> None:
        """Start the time limit of `n_calls` calls. 0 cancels it."""
        if self._timeout is not None:
            signal.setitimer(signal.ITIMER_REAL, n_calls * self._timeout)

    def forgive(self, error: BaseException) -> None:
        """Cancel the time limit. Raise the exception again if the user stopped the program."""
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
def marked_ctrl_c() -> Iterator[None]:
    """Distinguish Ctrl-C and SIGTERM from exceptions that a solver raises.

    In the block, an exception raised by a handler of these signals is raised as `CtrlC`. The end of
    the block raises the handler's exception again. Signals without a Python handler stay as is.
    """
    handlers = {number: signal.getsignal(number) for number in _STOPS} if _is_main() else {}

    def stop(number: int, frame: Any) -> None:
        if _delayed is not None:
            _delayed.append((number, frame))
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
def delayed_signals() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until a block has started its processes completely.

    The processes inherit a blocked SIGINT until they ignore it. SIGTERM is delayed only inside
    `marked_ctrl_c`.
    """
    global _delayed
    has_mask, held = hasattr(signal, "pthread_sigmask"), list[tuple[int, Any]]()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if has_mask else set()
    if _is_main():
        _delayed = held
    try:
        yield
    finally:
        if _is_main():
            _delayed = None
        if has_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, frame in held:
            handler: Any = signal.getsignal(number)
            handler(number, frame)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
