"""Workers that run solver calls: this process, loky processes, a Dask cluster, any executor.

All have a `submit` that returns a future. A problem travels to a worker once: a task names it, and
a worker that does not have it returns None and gets the task again together with the problem.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from functools import cached_property
from multiprocessing.resource_tracker import ensure_running
from multiprocessing.util import Finalize
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from lodl._threads import PerThread
from lodl.errors import InvalidInputError, LodlError, OracleError
from lodl.oracle._failures import Options, as_text
from lodl.oracle._guard import delayed_signals, marked_ctrl_c
from lodl.oracle._task import Result, Task, answer, apply, work
from lodl.problems import Problem
from lodl.problems._problem import HOW_TO_TRAVEL

_IDLE = 60  # seconds after which a process without work ends
_WATCH = 0.5  # seconds between two checks of a process that its parent is alive
_MAX_CALLS = 60  # solver calls of a function that a worker applies
STARTING = 60.0  # seconds that new workers may take to start
_NOTICE = 5.0  # seconds that a Dask scheduler may take to notice a dead worker
_NO_WORKERS = 30.0  # seconds to wait for a cluster that has no workers
_DEAF = 60.0  # seconds after which a worker of a cluster that does not respond is killed

Futures = list["Future[Any]"]
Function = Callable[..., Any]


def choose_workers(
    problem: Problem, n_jobs: int | None, executor: Any, options: Options
) -> "Workers":
    """Return the workers for the options of an oracle."""
    distributed: Any = sys.modules.get("distributed")  # not imported: then there is no client
    if executor is None and n_jobs is None and distributed is not None:
        with suppress(ValueError):  # no client is active
            executor = distributed.Client.current()
    if type(executor).__name__ == "ClientExecutor":  # wraps a Dask client
        executor = getattr(executor, "_client", executor)
    if hasattr(executor, "get_executor") and hasattr(executor, "nthreads"):
        return Dask(problem, executor)
    if isinstance(executor, Executor):
        return Workers(problem, f"the {type(executor).__name__}", executor)
    if executor is not None:
        what = "a `concurrent.futures.Executor` or a Dask client"
        raise InvalidInputError(f"`executor` must be {what}, got {executor!r}.")
    n_workers = n_jobs or 1
    if n_workers < 0:
        from loky import cpu_count

        n_workers = max(int(cpu_count()) + 1 + n_workers, 1)
    if n_workers == 1 and not options.is_limited:  # a call in this process cannot be abandoned
        return ThisProcess(problem, "this process")
    return Processes(problem, n_workers)


class WorkersLostError(OracleError):
    """The workers of a run are gone and cannot be replaced."""


class Workers:
    """The workers of a user's executor, which can neither be watched nor replaced."""

    may_exit = False  # whether a worker may end its process, because it is replaced

    def __init__(self, problem: Problem, name: str, executor: Any = None) -> None:
        self.problem, self.name, self._executor = problem, name, executor
        self.title = self.name[:1].upper() + self.name[1:]  # at the start of a sentence
        self._key = uuid4().hex

    @property
    def n_workers(self) -> int:
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

    def run(self, function: Function, *arguments: Any) -> "Future[Any]":
        with self._open():
            return self._executor.submit(function, *arguments)  # type: ignore[no-any-return]

    def apply(self, function: Function, *arguments: Any, options: Options) -> tuple[Any, int]:
        """Return `function(guard, *arguments)`, run by a worker, and the solver calls it made."""
        pickled = _dumps((function, self.problem, arguments, options, self.may_exit), "The check")
        seconds = min(options.seconds(_MAX_CALLS) + STARTING, threading.TIMEOUT_MAX)
        limit = f", or took longer than {options.seconds():g} seconds" if options.is_limited else ""
        futures: Futures = []
        try:
            with marked_ctrl_c():
                futures.append(self.run(apply, pickled))
                return futures[0].result(timeout=seconds)  # type: ignore[no-any-return]
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
            raise OracleError(f"The problem could not be tried ({as_text(error)}).") from error
        except BaseException:  # the user wants to stop
            self.abandon(futures)
            raise

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
            what = f"{self.title} no longer accepts tasks ({as_text(error)})"
            raise WorkersLostError(f"{what}. Keep it open until the run has ended.") from error

    def _hopeless(self, why: str) -> OracleError:
        what = f"{why}, and workers of {self.name} cannot be replaced"
        return WorkersLostError(f"{what}. Use `n_jobs`, or a Dask cluster with nannies.")

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

    def apply(self, function: Function, *arguments: Any, options: Options) -> tuple[Any, int]:
        with marked_ctrl_c():
            return apply((function, self.problem, arguments, options, False))


class Processes(Workers):
    """Processes on this machine, started by loky."""

    n_workers = 1
    may_exit = True

    def __init__(self, problem: Problem, n_workers: int) -> None:
        super().__init__(problem, "worker processes")
        self.n_workers = n_workers
        self._futures = WeakSet[Future[Any]]()

    def run(self, function: Function, *arguments: Any) -> "Future[Any]":
        ensure_running()  # a helper process, whose start would unblock SIGINT
        with delayed_signals():
            future = _pools.get().submit(self.n_workers, function, *arguments)
            self._futures.add(future)
        return future

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenExecutor)

    def replace(self, late: Futures, others: Futures) -> Futures:
        _end_pool()
        return []

    def abandon(self, futures: Futures) -> None:
        if not all(future.done() for future in self._futures):
            _end_pool()

    def close(self) -> None:
        _end_pool()


class _Pool:
    """The worker processes of one thread, kept for its next run."""

    def __init__(self) -> None:
        self._executor: Any = None
        self._n_workers = 0
        # Before it ends, a process of `multiprocessing` waits for its children: kill them first.
        Finalize(None, _end_pool, exitpriority=20)

    def submit(self, n_workers: int, function: Function, *arguments: Any) -> "Future[Any]":
        """Start a function in a worker process. A broken pool is replaced."""
        if n_workers != self._n_workers:
            self.end(kill_workers=False)
            self._n_workers = n_workers
        try:
            return self._submit(function, *arguments)
        except BrokenExecutor:
            self.end()
            return self._submit(function, *arguments)

    def end(self, *, kill_workers: bool = True) -> None:
        """End all processes. The next task starts new ones."""
        executor, self._executor = self._executor, None  # now: Ctrl-C may interrupt the wait
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=kill_workers)

    def _submit(self, function: Function, *arguments: Any) -> "Future[Any]":
        if self._executor is None:
            from loky import ProcessPoolExecutor

            start = {"initializer": _prepare_process, "initargs": (os.getpid(),)}
            self._executor = ProcessPoolExecutor(self._n_workers, timeout=_IDLE, **start)
        return self._executor.submit(function, *arguments)  # type: ignore[no-any-return]


_pools = PerThread(_Pool)  # a forked process gets its own: it cannot use its parent's


def _end_pool() -> None:
    _pools.get().end()


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
        text = f"{name} cannot be sent to a worker ({type(error).__name__}: {error}). {hint}"
        raise OracleError(text.rstrip()) from error


class Dask(Workers):
    """The workers of a Dask cluster. Nannies restart workers that died, or were killed as late."""

    may_exit = True

    def __init__(self, problem: Problem, client: Any) -> None:
        super().__init__(problem, "the Dask cluster")
        self._client = client
        self._deaf_since: dict[str, float] = {}
        self.wait_for_any(may_start_later=True)

    @property
    def n_workers(self) -> int:
        with self._open():
            return max(int(sum(self._client.nthreads().values())), 1)

    def run(self, function: Function, *arguments: Any) -> "Future[Any]":
        with self._open():
            inner = self._client.submit(function, *arguments, pure=False)
        outer: Future[Any] = Future()
        outer.inner = inner  # type: ignore[attr-defined]
        inner.add_done_callback(lambda done: _hand_over(done, outer))
        return outer

    def has_begun(self, future: "Future[Any]") -> bool:
        key = _key_of(future)
        queued = next((tasks for tasks in self._held().values() if key in tasks), set())
        if len(queued) < 2:
            return bool(queued)
        stacks = self._client.scheduler.call_stack  # another user's task may run before ours
        try:
            running = self._client.sync(stacks, keys=[key], callback_timeout=_NOTICE)
        except TimeoutError:  # the worker hangs, in which task is not known
            since = self._deaf_since.setdefault(key, time.monotonic())
            return time.monotonic() - since > _DEAF
        return any(key in map(str, tasks) for tasks in running.values())

    def has_died(self, error: BaseException) -> bool:
        with self._open():  # tasks of a client that was closed are cancelled, too
            lost = ("KilledWorker", "CancelledError", "FutureCancelledError")
            return type(error).__name__ in lost

    def replace(self, late: Futures, others: Futures) -> Futures:
        keys = {_key_of(future) for future in late}
        busy = [worker for worker, tasks in self._held().items() if keys & tasks]
        self.abandon(late)
        try:
            if busy:
                self._client.run(_kill_worker, workers=busy, nanny=True)
        except Exception:  # noqa: BLE001 - without a nanny nobody can restart a worker
            super().replace(late, others)
        # The scheduler must notice before the next task goes out.
        with self._open():
            _wait_while(lambda: set(busy) & set(self._client.nthreads()), _NOTICE)
        return others

    def abandon(self, futures: Futures) -> None:
        inner = [future.inner for future in futures]  # type: ignore[attr-defined]
        with suppress(Exception):  # the client was closed
            self._client.cancel(inner, force=True)

    def wait_for_any(self, *, may_start_later: bool) -> None:
        # A nanny whose worker gets a task while it starts, and dies of it, gives up for good. An
        # adaptive cluster, on the other hand, starts no worker before there is a task.
        if may_start_later and getattr(getattr(self._client, "cluster", None), "_adaptive", None):
            return
        with self._open():
            has_workers = _wait_while(lambda: not self._client.nthreads(), _NO_WORKERS)
        if not has_workers:
            raise WorkersLostError(
                f"The Dask cluster has had no worker for {_NO_WORKERS:g} seconds. If workers "
                "died, the solver crashed or memory ran out."
            )

    @contextmanager
    def _open(self) -> Iterator[None]:
        with super()._open():
            if self._client.status != "running":
                raise ConnectionError(f"the client is {self._client.status}")
            yield

    def _held(self) -> dict[str, set[str]]:
        """Return the tasks that each worker runs, or has in its queue."""
        with self._open():
            held = self._client.processing().items()
            return {worker: set(map(str, tasks)) for worker, tasks in held}


def _hand_over(done: Any, outer: "Future[Any]") -> None:
    """Copy the outcome of a Dask future to a standard future."""
    with suppress(InvalidStateError):  # it was cancelled
        try:
            result = done.result()
        except BaseException as error:  # noqa: BLE001 - whatever became of it
            outer.set_exception(error)
        else:
            outer.set_result(result)


def _wait_while(condition: Callable[[], Any], seconds: float) -> bool:
    """Wait until a condition no longer holds, at most some seconds. Return whether it ended."""
    until = time.monotonic() + seconds
    while condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _key_of(future: "Future[Any]") -> str:
    return str(future.inner.key)  # type: ignore[attr-defined]


def _kill_worker(dask_worker: Any) -> None:
    """Kill the worker process of a nanny, which starts another."""
    os.kill(dask_worker.pid, signal.SIGKILL)
