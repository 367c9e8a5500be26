"""Workers of a Dask cluster, and the choice of workers for the options of an oracle."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import Any

from lodl.errors import InvalidInputError
from lodl.oracle._workers import Futures, Processes, ThisProcess, Workers, WorkersLostError
from lodl.problems import Problem

_NOTICE = 5.0  # seconds that a scheduler may take to notice a dead worker
_NO_WORKERS = 30.0  # seconds to wait for a cluster that has no workers
_DEAF = 60.0  # seconds after which a worker that does not respond is killed


class Dask(Workers):
    """The workers of a Dask cluster. Nannies restart workers that died, or were killed as late."""

    may_exit = True

    def __init__(self, problem: Problem, client: Any) -> None:
        super().__init__(problem, name="the Dask cluster")
        self._client = client
        self._deaf_since: dict[str, float] = {}
        self.wait_for_any(may_start_later=True)

    @property
    def n_workers(self) -> int:
        with self._open():
            return max(int(sum(self._client.nthreads().values())), 1)

    def run(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
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
            return type(error).__name__ in (
                "KilledWorker",
                "CancelledError",
                "FutureCancelledError",
            )

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
            held = self._client.processing()
        return {worker: set(map(str, tasks)) for worker, tasks in held.items()}


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
    """Kill the worker process of a nanny, which starts another. A busy worker would not obey."""
    os.kill(dask_worker.pid, signal.SIGKILL)


def choose_workers(
    problem: Problem, n_jobs: int | None, executor: Any, timeout: float | None
) -> Workers:
    """Return the workers for the options of an oracle."""
    if executor is None and n_jobs is None:
        executor = _dask_client()
    if type(executor).__name__ == "ClientExecutor":  # wraps a Dask client
        executor = getattr(executor, "_client", executor)
    if hasattr(executor, "get_executor") and hasattr(executor, "nthreads"):
        return Dask(problem, executor)
    if isinstance(executor, Executor):
        return Workers(problem, executor, f"the {type(executor).__name__}")
    if executor is not None:
        what = "a `concurrent.futures.Executor` or a Dask client"
        raise InvalidInputError(f"`executor` must be {what}, got {executor!r}.")
    n_workers = _count_workers(n_jobs)
    if n_workers == 1 and timeout is None:  # a call in this process cannot be abandoned
        return ThisProcess(problem, name="this process")
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
    """Return the active Dask client, or None."""
    distributed: Any = sys.modules.get("distributed")  # not imported: then there is no client
    with suppress(ValueError):
        return None if distributed is None else distributed.Client.current()
    return None
