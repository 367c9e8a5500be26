"""Workers that run solver calls: in this process, in loky processes, or on any executor.

All have a `submit` that returns a future. A problem travels to a worker once: a task names it, and
a worker that does not have it returns None and gets the task again together with the problem.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from functools import cached_property
from multiprocessing.resource_tracker import ensure_running
from multiprocessing.util import Finalize
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from lodl._threads import PerThread
from lodl.errors import LodlError, OracleError
from lodl.oracle._failures import described
from lodl.oracle._signals import delayed_signals, marked_ctrl_c
from lodl.oracle._task import Result, Task, answer, applied, apply, work
from lodl.problems import Problem
from lodl.problems._problem import HOW_TO_TRAVEL

_IDLE = 60  # seconds after which a process without work ends
_WATCH = 0.5  # seconds between two checks of a process that its parent is alive
_MAX_CALLS = 60  # solver calls of a function that a worker applies
_STARTING = 60.0  # seconds that new workers may take to start

Futures = list["Future[Any]"]


class WorkersLostError(OracleError):
    """The workers of a run are gone and cannot be replaced."""


class Workers:
    """The workers of a user's executor, which can neither be watched nor replaced.

    Attributes:
        problem: The problem.
        name: The name of the workers in messages.
        may_exit: Whether a worker may end its process, because it is replaced.
    """

    may_exit = False

    def __init__(self, problem: Problem, executor: Any = None, name: str = "") -> None:
        self.problem, self._executor, self.name = problem, executor, name
        self._key = uuid4().hex

    @property
    def n_workers(self) -> int:
        """Number of tasks that run at a time."""
        return int(getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1)

    def submit(self, task: Task, *, with_problem: bool = False) -> "Future[Result | None]":
        """Start a task. Its result is None if the worker lacks the problem."""
        problem = self._pickled if with_problem else None
        try:
            return self.run(work, self._key, problem, _dumps(task, "The data of a task"))
        except BrokenExecutor as error:
            future: Future[Result | None] = Future()
            future.set_exception(error)
            return future

    def run(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Start a function in a worker."""
        with self._open():
            return self._executor.submit(function, *arguments)  # type: ignore[no-any-return]

    def apply(
        self, function: Callable[..., Any], *arguments: Any, timeout: float | None
    ) -> tuple[Any, int]:
        """Return `function(guard, *arguments)`, run by a worker, and the solver calls it made.

        Raises:
            OracleError: The function failed, ended its worker, or one of its calls took longer
                than `timeout` seconds.
        """
        call = (function, self.problem, arguments, timeout, self.may_exit)
        pickled = _dumps(call, "The check")
        seconds = None if timeout is None else _MAX_CALLS * timeout + _STARTING
        limit = "" if timeout is None else f", or took longer than {timeout:g} seconds"
        futures: Futures = []
        try:
            with marked_ctrl_c():
                futures.append(self.run(apply, pickled))
                result: tuple[Any, int] = futures[0].result(timeout=seconds)
        except TimeoutError as error:
            self.replace(futures, [])
            raise OracleError(f"The problem was tried for {seconds:g} s without end.") from error
        except LodlError:
            raise
        except Exception as error:
            if self.has_died(error):
                raise OracleError(
                    f"While the problem was tried, a call ended its worker process{limit}."
                ) from error
            raise OracleError(f"The problem could not be tried ({described(error)}).") from error
        except BaseException:  # the user wants to stop
            self.abandon(futures)
            raise
        return result

    def has_begun(self, future: "Future[Any]") -> bool:
        """Return whether a worker has begun a task, as far as is known."""
        return True

    def has_died(self, error: BaseException) -> bool:
        """Return whether an exception means that the worker of a task died."""
        if isinstance(error, BrokenExecutor):  # the executor accepts no more tasks
            raise self._hopeless("A call ended its worker process")
        with self._open():
            if isinstance(error, CancelledError):
                raise error
        return False

    def replace(self, late: Futures, others: Futures) -> Futures:
        """Kill the workers running late tasks and start new ones. Return which others survive."""
        raise self._hopeless("A call did not come back in time")

    def abandon(self, futures: Futures) -> None:
        """Stop tasks if possible. Their workers may have other users too."""

    def close(self) -> None:
        """End the workers that these workers started."""

    def wait_for_any(self, *, may_start_later: bool) -> None:
        """Wait until there is a worker, or raise. Some clusters start workers only for a task."""

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Turn the errors of a closed executor into one that says to keep it open."""
        try:
            yield
        except (BrokenExecutor, OracleError):
            raise
        except (Exception, CancelledError) as error:
            raise WorkersLostError(
                f"{self.name[:1].upper()}{self.name[1:]} no longer accepts tasks "
                f"({described(error)}). Keep it open until the run has ended."
            ) from error

    def _hopeless(self, why: str) -> OracleError:
        return WorkersLostError(
            f"{why}, and workers of {self.name} cannot be replaced. Use `n_jobs`, or a Dask "
            "cluster with nannies."
        )

    @cached_property
    def _pickled(self) -> bytes:
        return _dumps(self.problem, "The problem", HOW_TO_TRAVEL)


class ThisProcess(Workers):
    """This process: no task is pickled, and a crash of the solver is a crash of the program."""

    n_workers = 1

    def submit(self, task: Task, *, with_problem: bool = False) -> "Future[Result | None]":
        future: Future[Result | None] = Future()
        future.set_result(answer(self.problem, task))
        return future

    def apply(
        self, function: Callable[..., Any], *arguments: Any, timeout: float | None
    ) -> tuple[Any, int]:
        with marked_ctrl_c():
            return applied(function, self.problem, arguments, timeout, may_exit=False)


class Processes(Workers):
    """Processes on this machine, started by loky."""

    n_workers = 1
    may_exit = True

    def __init__(self, problem: Problem, n_workers: int) -> None:
        super().__init__(problem, name="worker processes")
        self.n_workers = n_workers
        self._futures = WeakSet[Future[Any]]()

    def run(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        ensure_running()  # a helper process, whose start would unblock SIGINT
        with delayed_signals():
            future = _pools.get().submit(self.n_workers, function, *arguments)
            self._futures.add(future)
        return future

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenExecutor)

    def replace(self, late: Futures, others: Futures) -> Futures:
        _pools.get().kill()
        return []

    def abandon(self, futures: Futures) -> None:
        if not all(future.done() for future in self._futures):
            _pools.get().kill()

    def close(self) -> None:
        _pools.get().kill()


class _Pool:
    """The worker processes of one thread, kept for its next run."""

    def __init__(self) -> None:
        self._executor: Any = None
        self._n_workers = 0
        # Before it ends, a process of `multiprocessing` waits for its children: kill them first.
        Finalize(None, _end_pool, exitpriority=20)

    def submit(
        self, n_workers: int, function: Callable[..., Any], *arguments: Any
    ) -> "Future[Any]":
        """Start a function in a worker process. A broken pool is replaced."""
        if n_workers != self._n_workers:
            self._end(kill_workers=False)
            self._n_workers = n_workers
        try:
            return self._submit(function, *arguments)
        except BrokenExecutor:
            self.kill()
            return self._submit(function, *arguments)

    def kill(self) -> None:
        """Kill all processes. The next task starts new ones."""
        self._end(kill_workers=True)

    def _end(self, *, kill_workers: bool) -> None:
        executor, self._executor = self._executor, None  # now: Ctrl-C may interrupt the wait
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=kill_workers)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        if self._executor is None:
            from loky import ProcessPoolExecutor

            start = {"initializer": _prepare_process, "initargs": (os.getpid(),)}
            self._executor = ProcessPoolExecutor(self._n_workers, timeout=_IDLE, **start)
        return self._executor.submit(function, *arguments)  # type: ignore[no-any-return]


_pools = PerThread(_Pool)  # a forked process gets its own: it cannot use its parent's


def _end_pool() -> None:
    _pools.get().kill()


def _prepare_process(parent: int) -> None:
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


def _dumps(thing: object, name: str, hint: str = "") -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        raise OracleError(
            f"{name} cannot be sent to a worker ({type(error).__name__}: {error}). {hint}".rstrip()
        ) from error
