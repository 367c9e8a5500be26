"""Who makes the calls: this process, processes of its own, a Dask cluster, or any executor.

Each is a `submit` that returns a future. A problem travels to a worker once: a task names it, and
a worker that does not have it says so and gets the task again with the problem beside it.
"""

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, InvalidStateError
from contextlib import suppress
from functools import cached_property
from typing import Any
from uuid import uuid4

from lodl._threads import one_blas_thread
from lodl.errors import InvalidInputError, LodlError, OracleError
from lodl.oracle._ask import Result, Task, ask
from lodl.oracle._guard import Guard
from lodl.oracle._signals import CtrlC, ctrl_c_told_apart
from lodl.problems import Problem
from lodl.problems._problem import HOW_TO_TRAVEL
from lodl.problems._what_failed import what_failed

_IDLE = 60  # seconds after which a process without work ends
_NOTICE = 5.0  # seconds that a scheduler may take to notice a dead worker
_NO_WORKERS = 30.0  # seconds to wait for a cluster that has none
_MOST_CALLS = 60  # solver calls of a function that a worker applies
_STARTING = 60.0  # seconds that new workers may take to start
_DEAF = 60.0  # seconds after which a worker that says nothing is killed, whoever uses it

Futures = list["Future[Any]"]


class Workers:
    """An executor that the user hands over, which can neither be watched nor mended.

    Attributes:
        problem: The problem.
        name: What the workers are, for a message.
        may_exit: Whether a worker may end its process, because others replace it.
    """

    may_exit = False

    def __init__(self, problem: Problem, executor: Any = None, name: str = "") -> None:
        self.problem, self._executor, self.name = problem, executor, name
        self._key = uuid4().hex

    @property
    def n_workers(self) -> int:
        """How many tasks run at a time."""
        return int(getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1)

    def submit(self, task: Task, *, with_problem: bool = False) -> "Future[Result | None]":
        """Start a task; None as its result asks for the problem."""
        problem = self._pickled if with_problem else None
        try:
            return self.run(_work, self._key, problem, _dumps(task, "What is asked"))
        except BrokenExecutor as error:
            future: Future[Result | None] = Future()
            future.set_exception(error)
            return future

    def run(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Start a function somewhere."""
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
        future = self.run(_apply, _dumps(call, "The check"))
        seconds = None if timeout is None else _MOST_CALLS * timeout + _STARTING
        limit = "" if timeout is None else f", or took longer than {timeout:g} seconds"
        try:
            result: tuple[Any, int] = future.result(timeout=seconds)
        except TimeoutError as error:
            self.replace([future], [])
            raise OracleError(
                f"A first look at the problem did not end in {seconds:g} s."
            ) from error
        except LodlError:
            raise
        except Exception as error:
            if self.has_died(error):
                raise OracleError(
                    f"While the problem was tried, a call ended its worker process{limit}."
                ) from error
            raise OracleError(f"The problem failed: {type(error).__name__}: {error}") from error
        return result

    def has_begun(self, future: "Future[Any]") -> bool:
        """Return whether a worker has begun a task, as far as is known."""
        return True

    def has_died(self, error: BaseException) -> bool:
        """Return whether an exception means that the worker of a task died."""
        if isinstance(error, BrokenExecutor):  # the executor is of no use any more
            raise self._hopeless("A call ended its worker process")
        return False

    def replace(self, late: Futures, others: Futures) -> Futures:
        """Kill the workers running late tasks and start new ones; return which others live on."""
        raise self._hopeless("A call did not come back in time")

    def abandon(self, futures: Futures) -> None:
        """Let go of some futures; their workers may belong to others too."""

    def wait_for_any(self, *, may_start_later: bool) -> None:
        """Wait until there is a worker, or raise; some start only when there is work."""

    def _hopeless(self, why: str) -> OracleError:
        return OracleError(
            f"{why}, and workers of {self.name} cannot be replaced. Use `n_jobs`, or a Dask "
            "cluster with nannies."
        )

    @cached_property
    def _pickled(self) -> bytes:
        return _dumps(self.problem, "The problem", HOW_TO_TRAVEL)


class Here(Workers):
    """This process: no task is pickled, and a crash of the solver is a crash of the program."""

    n_workers = 1

    def submit(self, task: Task, *, with_problem: bool = False) -> "Future[Result | None]":
        future: Future[Result | None] = Future()
        future.set_result(ask(self.problem, task))
        return future

    def apply(
        self, function: Callable[..., Any], *arguments: Any, timeout: float | None
    ) -> tuple[Any, int]:
        try:
            with ctrl_c_told_apart():
                return _applied(function, self.problem, arguments, timeout, may_exit=False)
        except CtrlC:
            raise KeyboardInterrupt from None


class Processes(Workers):
    """Processes of this machine, kept by loky for the next run."""

    n_workers = 1
    may_exit = True

    def __init__(self, problem: Problem, n_workers: int) -> None:
        super().__init__(problem, name="worker processes")
        self.n_workers = n_workers

    def run(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        return self._loky().submit(function, *arguments)  # type: ignore[no-any-return]

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenExecutor)

    def replace(self, late: Futures, others: Futures) -> Futures:
        self._loky().shutdown(wait=True, kill_workers=True)
        return []

    def abandon(self, futures: Futures) -> None:
        if futures:
            self.replace(futures, [])

    def _loky(self) -> Any:
        from loky import get_reusable_executor

        return get_reusable_executor(
            max_workers=self.n_workers, timeout=_IDLE, initializer=_prepare_process
        )


class Dask(Workers):
    """The workers of a Dask cluster."""

    may_exit = True

    def __init__(self, problem: Problem, client: Any) -> None:
        super().__init__(problem, name="the Dask cluster")
        self._client = client
        self._deaf_since: dict[str, float] = {}
        self.wait_for_any(may_start_later=True)

    @property
    def n_workers(self) -> int:
        return max(int(sum(self._client.nthreads().values())), 1)

    def run(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        inner = self._client.submit(function, *arguments, pure=False)
        outer: Future[Any] = Future()
        outer.inner = inner  # type: ignore[attr-defined]
        inner.add_done_callback(lambda done: _hand_over(done, outer))
        return outer

    def has_begun(self, future: "Future[Any]") -> bool:
        key = _key_of(future)
        beside = next((tasks for tasks in self._held().values() if key in tasks), set())
        if len(beside) < 2:
            return bool(beside)
        stacks = self._client.scheduler.call_stack  # it may wait behind the work of others
        try:
            running = self._client.sync(stacks, keys=[key], callback_timeout=_NOTICE)
        except TimeoutError:  # the worker hangs: it is not known on whose task
            since = self._deaf_since.setdefault(key, time.monotonic())
            return time.monotonic() - since > _DEAF
        return any(key in map(str, tasks) for tasks in running.values())

    def has_died(self, error: BaseException) -> bool:
        return type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError")

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
        _wait_while(lambda: set(busy) & set(self._client.nthreads()), _NOTICE)
        return others

    def abandon(self, futures: Futures) -> None:
        inner = [future.inner for future in futures]  # type: ignore[attr-defined]
        self._client.cancel(inner, force=True)

    def wait_for_any(self, *, may_start_later: bool) -> None:
        # A nanny whose worker gets a task while it starts, and dies of it, gives up for good. An
        # adaptive cluster, on the other hand, starts no worker before there is a task.
        if may_start_later and getattr(getattr(self._client, "cluster", None), "_adaptive", None):
            return
        if not _wait_while(lambda: not self._client.nthreads(), _NO_WORKERS):
            raise OracleError(
                f"The Dask cluster has had no worker for {_NO_WORKERS:g} seconds. If workers "
                "died, the solver crashed or memory ran out."
            )

    def _held(self) -> dict[str, set[str]]:
        """Return the tasks that each worker runs, or has in its queue."""
        return {one: set(map(str, tasks)) for one, tasks in self._client.processing().items()}


def choose_workers(
    problem: Problem, n_jobs: int | None, executor: Any, timeout: float | None
) -> Workers:
    """Return who makes the calls, given arguments of `sample`."""
    if executor is None and n_jobs is None:
        executor = _dask_client()
    if type(executor).__name__ == "ClientExecutor":  # a Dask client in disguise
        executor = getattr(executor, "_client", executor)
    if hasattr(executor, "get_executor") and hasattr(executor, "nthreads"):
        return Dask(problem, executor)
    if isinstance(executor, Executor):
        return Workers(problem, executor, f"the {type(executor).__name__}")
    if executor is not None:
        what = "a `concurrent.futures.Executor` or a Dask client"
        raise InvalidInputError(f"`executor` must be {what}, got {executor!r}.")
    n_workers = _count_workers(n_jobs)
    if n_workers == 1 and timeout is None:  # a call in this process cannot be given up
        return Here(problem, name="this process")
    return Processes(problem, n_workers)


def _count_workers(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        what = "None or a whole number other than 0 (-1 for all cores)"
        raise InvalidInputError(f"`n_jobs` must be {what}, got {n_jobs!r}.")
    if n_jobs > 0:
        return n_jobs
    from loky import cpu_count

    return max(int(cpu_count()) + 1 + n_jobs, 1)


def _dask_client() -> Any:
    """Return the Dask client that is in scope, None if there is none."""
    distributed: Any = sys.modules.get("distributed")  # not imported: then there is no client
    with suppress(ValueError):
        return None if distributed is None else distributed.Client.current()
    return None


def _hand_over(done: Any, outer: "Future[Any]") -> None:
    """Give the outcome of a Dask future to a future that can be waited for."""
    with suppress(InvalidStateError):  # nobody waits for it any more
        try:
            result = done.result()
        except BaseException as error:  # noqa: BLE001 - whatever became of it
            outer.set_exception(error)
        else:
            outer.set_result(result)


def _wait_while(condition: Callable[[], Any], seconds: float) -> bool:
    """Wait until a condition no longer holds, but not for ever; return whether it ended."""
    until = time.monotonic() + seconds
    while condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _key_of(future: "Future[Any]") -> str:
    return str(future.inner.key)  # type: ignore[attr-defined]


def _kill_worker(dask_worker: Any) -> None:
    """End the worker process of a nanny, which starts another: asking it may hang as its call."""
    os.kill(dask_worker.pid, signal.SIGKILL)


def _dumps(thing: object, name: str, hint: str = "") -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        raise OracleError(
            f"{name} cannot be sent to a worker ({type(error).__name__}: {error}). {hint}".rstrip()
        ) from error


_kept = threading.local()


def _work(key: str, pickled: bytes | None, pickled_task: bytes) -> Result | None:
    """Run a task in a worker that keeps the problem from task to task, one per thread.

    So a solver that is set up at its first call is set up once per worker. Threads have one each:
    solvers are seldom safe to share.
    """
    if getattr(_kept, "key", None) != key:
        if pickled is None:
            return None
        _kept.problem = pickle.loads(pickled)  # noqa: S301 - from the process that started us
        _kept.key = key
    task = pickle.loads(pickled_task)  # noqa: S301 - here, so that what fails is not the executor
    with one_blas_thread():
        return ask(_kept.problem, task)


def _apply(pickled: bytes) -> tuple[Any, int]:
    function, problem, arguments, timeout, may_exit = pickle.loads(  # noqa: S301 - from our parent
        pickled
    )
    return _applied(function, problem, arguments, timeout, may_exit=may_exit)


def _applied(
    function: Callable[..., Any],
    problem: Problem,
    arguments: tuple[Any, ...],
    timeout: float | None,
    *,
    may_exit: bool,
) -> tuple[Any, int]:
    """Run a function with a guard. No exception of the solver's may end this process."""
    guard = Guard(problem, timeout, may_exit=may_exit)
    try:
        with guard.alarm:
            return function(guard, *arguments), guard.n_calls
    except (CtrlC, LodlError):
        raise
    except BaseException as error:
        raise OracleError(f"The problem failed: {what_failed(error, None)}") from error


def _prepare_process() -> None:
    """Let a worker process leave Ctrl-C to its parent, end with it, and die without a dump."""
    os.environ.setdefault("PYTHONFAULTHANDLER", "")  # keeps loky from turning it on
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
