"""The only caller of `solve` and `are_feasible`: counts, time limits, checked results; Ctrl-C."""

import copy
import faulthandler
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from lodl._typing import Array, Decision, Flags, InstanceContext
from lodl.errors import ProblemError, ShapeError
from lodl.oracle._failures import Options
from lodl.problems import LinearProblem, Problem
from lodl.problems._regret import read_only

PLAIN = (np.ndarray, list, tuple, set, Mapping)  # contexts to copy and compare; others may cache
REFUSES = (
    "`are_feasible` refuses %d of %d decisions that `solve` returned. Allow for rounding, "
    "e.g. `zs @ weights <= capacity + 1e-6`."
)
_GRACE = 2.0  # seconds between the alarm, which a solver may ignore, and the end of its process
_UNLIMITED = nullcontext()
_STOPS = (signal.SIGINT, signal.SIGTERM)
_nowhere: Any = None  # an open file that swallows the traceback of a process that ends itself
_delayed: list[tuple[int, Any]] | None = None  # signals that came during `delayed_signals`


class CtrlC(KeyboardInterrupt):
    """Ctrl-C or SIGTERM stops the program. A solver can only raise plain `KeyboardInterrupt`."""


class Guard:
    """Calls the solver of a problem.

    In the main thread of a process, an alarm interrupts calls that exceed their time limit. Other
    calls, and solvers that ignore it, end with their worker process, if that may exit.
    """

    def __init__(self, problem: Problem, options: Options, *, may_exit: bool = False) -> None:
        self.problem, self.n_calls = problem, 0  # calls made, failed calls included
        self._options, self._n_limited = options, 1
        self._is_limited = options.is_limited
        self._may_exit = may_exit and self._is_limited
        self._has_alarm = self._is_limited and _is_main() and hasattr(signal, "setitimer")

    def solve(self, y_hat: Array, context: InstanceContext) -> Decision:
        """Return the decision under one prediction, which the solver may write to."""
        self.n_calls += 1
        z = self.problem.solve(y_hat, context)
        if z is None:
            reasons = "is a `return` missing, or is there no solution?"
            raise ProblemError(f"`solve` returned None: {reasons}")
        return z

    def solve_many(self, y_hats: Array, context: InstanceContext) -> Any:
        """Return the decisions under many predictions, which the solver may write to."""
        self.n_calls += len(y_hats)
        zs = self.problem.solve_many(y_hats, context)
        if zs is None or (isinstance(zs, Sequence) and any(z is None for z in zs)):
            raise ProblemError("`solve_many` returned None: is a `return` missing?")
        if len(zs) != len(y_hats):
            wanted = f"one decision per prediction ({len(y_hats)})"
            raise ShapeError(f"`solve_many` must return {wanted}, got {len(zs)}.")
        return zs

    def neighbours(self, y_hat: Array, context: InstanceContext, n: int) -> list[Decision]:
        """Return the decision under a prediction and `n - 1` next to it, by one call.

        The decision itself is repeated if there are fewer.
        """
        self.n_calls += 1
        zs = list(self.problem.neighbours(y_hat, context))
        if not zs or any(z is None for z in zs):
            raise ProblemError("`neighbours` returned no decision: is a `return` missing?")
        return (zs + zs[:1] * n)[:n]

    @contextmanager
    def alarm(self) -> Iterator[None]:
        """Let an alarm interrupt the `limited` blocks inside."""
        if not self._has_alarm:
            yield
            return
        before = signal.signal(signal.SIGALRM, self._ring)
        try:
            yield
        finally:
            self._set_alarm(0)
            signal.signal(signal.SIGALRM, before)

    def limited(self, n_calls: int = 1) -> AbstractContextManager[None]:
        """Limit the time of the `with` block to that of `n_calls` calls."""
        self._n_limited = n_calls
        return self if self._is_limited else _UNLIMITED

    def __enter__(self) -> None:
        if self._may_exit:
            global _nowhere
            _nowhere = _nowhere or open(os.devnull, "w")  # noqa: PTH123 - never closed
            # Unlike a signal, this also ends a solver that never returns to Python.
            seconds = self._options.seconds(self._n_limited) + _GRACE
            faulthandler.dump_traceback_later(seconds, exit=True, file=_nowhere)
        self._set_alarm(self._n_limited)

    def __exit__(self, *_: object) -> None:
        self._set_alarm(0)
        if self._may_exit:
            faulthandler.cancel_dump_traceback_later()

    def forgive(self, error: BaseException) -> None:
        """Cancel the time limit. Raise the exception again if the user stopped the program."""
        self._set_alarm(0)
        if isinstance(error, CtrlC):
            raise error

    def _set_alarm(self, n_calls: int) -> None:
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, self._options.seconds(n_calls))

    def _ring(self, _number: int, _frame: object) -> None:
        raise self._options.late()


def owned(z: Decision) -> Decision:
    """Return a copy of a decision, which stays as it is when the solver reuses its buffers."""
    if isinstance(z, np.ndarray):
        return z.copy()
    if type(z) in (list, tuple):
        return type(z)(map(owned, z))
    if type(z) is dict:
        return {key: owned(value) for key, value in z.items()}
    return z


def owned_context(context: Any) -> Any:
    """Return a copy of a plain context, so that a problem cannot change the caller's."""
    with suppress(Exception):  # it may hold an object that cannot be copied
        return copy.deepcopy(context) if isinstance(context, PLAIN) else context
    return context


def feasible(problem: Problem, zs: Array, context: InstanceContext) -> Flags | None:
    """Return which decisions a context allows, shape (k,), or None if the problem cannot tell."""
    if not isinstance(problem, LinearProblem):
        return None
    try:
        allowed = problem.are_feasible(read_only(zs), owned_context(context))
    except Exception as error:
        raise ProblemError(f"`are_feasible` raised {type(error).__name__}: {error}") from error
    if allowed is None:
        return None
    row = np.asarray(allowed)
    if row.shape != (len(zs),) or row.dtype.kind != "b":
        wanted = f"an array of {len(zs)} truth values, one per decision"
        got = f"{row.dtype} of shape {row.shape}"
        raise ProblemError(f"`are_feasible` must return {wanted}, got {got}.")
    return row


@contextmanager
def marked_ctrl_c() -> Iterator[None]:
    """Distinguish Ctrl-C and SIGTERM from exceptions that a solver raises.

    In the block, an exception of a Python handler of these signals is raised as `CtrlC`, and again
    as itself at the end of the block.
    """
    handlers = {number: signal.getsignal(number) for number in _STOPS} if _is_main() else {}
    own: dict[int, Any] = {number: f for number, f in handlers.items() if callable(f)}

    def stop(number: int, frame: Any) -> None:
        if _delayed is not None:
            _delayed.append((number, frame))
            return
        try:
            own[number](number, frame)
        except BaseException as error:
            raise CtrlC from error

    for number in own:
        signal.signal(number, stop)
    try:
        yield
    except CtrlC as error:
        raise error.__cause__ or error from None
    finally:
        for number, handler in own.items():
            signal.signal(number, handler)


@contextmanager
def delayed_signals() -> Iterator[None]:
    """Delay Ctrl-C, and SIGTERM inside `marked_ctrl_c`, until a block has started its processes."""
    # The processes inherit a blocked SIGINT until they ignore it.
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
