"""Functions that run in a worker: its tasks, and the set-up of a worker process."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lodl._threads import one_blas_thread
from lodl.errors import LodlError, OracleError
from lodl.oracle._ask import Result, ask
from lodl.oracle._guard import Guard
from lodl.oracle._signals import CtrlC
from lodl.problems import Problem
from lodl.problems._what_failed import what_failed

_WATCH = 0.5  # seconds between two checks that the parent is alive
_kept = threading.local()


class TaskError(Exception):
    """A task failed outside of its solver calls.

    Workers raise it in place of any other exception: SystemExit, say, would end the parent.

    Attributes:
        while_unpickling: Whether the problem or the task could not be unpickled.
    """

    def __init__(self, message: str, while_unpickling: bool) -> None:
        super().__init__(message, while_unpickling)
        self.while_unpickling = while_unpickling

    def __str__(self) -> str:
        return str(self.args[0])


def work(key: str, pickled: bytes | None, pickled_task: bytes) -> Result | None:
    """Run a task in a worker that keeps the problem from task to task, one per thread.

    So a solver that is set up at its first call is set up once per worker. Threads have one each:
    solvers are seldom safe to share.
    """
    if getattr(_kept, "key", None) != key:
        if pickled is None:
            return None
        _kept.problem = _unpickle(pickled)
        _kept.key = key
    task = _unpickle(pickled_task)
    with one_blas_thread(), _as_task_error():
        return ask(_kept.problem, task)


def apply(pickled: bytes) -> tuple[Any, int]:
    """Run a function of a problem in a worker."""
    function, problem, arguments, timeout, may_exit = _unpickle(pickled)
    return applied(function, problem, arguments, timeout, may_exit=may_exit)


def applied(
    function: Callable[..., Any],
    problem: Problem,
    arguments: tuple[Any, ...],
    timeout: float | None,
    *,
    may_exit: bool,
) -> tuple[Any, int]:
    """Return `function(guard, *arguments)`, and the solver calls it made.

    Args:
        function: The function.
        problem: The problem of the guard.
        arguments: Further arguments.
        timeout: Seconds that a call may take.
        may_exit: Whether this process may end itself if a call does not come back.
    """
    guard = Guard(problem, timeout, may_exit=may_exit)
    try:
        with guard.alarm:
            return function(guard, *arguments), guard.n_calls
    except (CtrlC, LodlError):
        raise
    except BaseException as error:  # SystemExit, say, would end the parent
        raise OracleError(f"The problem failed: {what_failed(error, None)}") from error


def _unpickle(pickled: bytes) -> Any:
    with _as_task_error(while_unpickling=True):
        return pickle.loads(pickled)  # noqa: S301 - from the process that started us


@contextmanager
def _as_task_error(*, while_unpickling: bool = False) -> Iterator[None]:
    try:
        yield
    except LodlError:
        raise
    except BaseException as error:
        raise TaskError(f"{type(error).__name__}: {error}", while_unpickling) from error


def prepare_process(parent: int) -> None:
    """Make a worker process ignore Ctrl-C, end with its parent, and crash without a dump."""
    if os.name == "posix":  # elsewhere an orphan keeps the number of its parent
        if os.getppid() != parent:  # killed while this process started
            os._exit(1)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    os.environ.setdefault("PYTHONFAULTHANDLER", "")  # keeps loky from turning it on
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)
