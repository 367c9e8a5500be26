"""Many tasks through joblib, results as they finish, and a second chance when a worker dies."""

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import takewhile
from typing import TypeVar

from joblib import Parallel, delayed

_MAX_DEATHS = 3  # of workers that held the same task


class WorkersError(Exception):
    """Workers could not do their tasks.

    Attributes:
        tasks: Numbers of the tasks that were out each time a worker died; empty if none died.
    """

    def __init__(self, cause: Exception, tasks: list[int]) -> None:
        super().__init__(
            f"Workers could not do their tasks ({type(cause).__name__}: {cause}). "
            "If worker processes died, the solver crashed or memory ran out: try fewer `n_jobs`. "
            "If something cannot be pickled, leave it out of the problem's `__getstate__`. "
            "With n_jobs=1 you see it happen."
        )
        self.tasks = tasks


T = TypeVar("T")
R = TypeVar("R")


def run_unordered(
    function: Callable[[T], R],
    make_task: Callable[[int], T],
    *,
    n_tasks: int,
    n_jobs: int | None,
    should_stop: Callable[[], bool],
) -> Generator[tuple[int, R], None, None]:
    """Gives (number of the task, result) as tasks finish, on joblib's current backend.

    When a worker process dies, loky gives up its whole pool. Tasks that were out are then given to
    a new pool, after all others: one that kills its worker does not hold up the rest.

    Args:
        function: Runs a task, in a worker.
        make_task: Makes the task of a number, here, when it is about to be sent.
        n_tasks: Number of tasks.
        n_jobs: As in joblib.
        should_stop: Asked before each task is sent; once true, only those that are out finish.

    Raises:
        WorkersError: The backend failed, or workers died again and again with the same task.
    """
    left = set(range(n_tasks))
    deaths: Counter[int] = Counter()
    while left and not should_stop():
        out: set[int] = set()
        order = sorted(left, key=lambda number: (deaths[number], number))
        calls = (
            _call(function, make_task, number, out)
            for number in takewhile(lambda _: not should_stop(), order)
        )
        parallel = Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
        )
        try:
            with _cancelled_in_the_end(parallel(calls)) as results:
                for number, result in results:
                    left.discard(number)
                    yield number, result
        except BrokenProcessPool as error:
            deaths.update(out & left)
            deadly = [number for number in deaths if deaths[number] >= _MAX_DEATHS]
            if deadly or not deaths:
                raise WorkersError(error, deadly) from error
        except Exception as error:  # of the backend: a task reports its own failures
            raise WorkersError(error, []) from error


@contextmanager
def _cancelled_in_the_end(results: Generator[R, None, None]) -> Iterator[Generator[R, None, None]]:
    """Ends the tasks that are still out when a run is broken off."""
    try:
        yield results
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*tasks.*(but not used|cancelled)")
            results.close()


def _call(
    function: Callable[[T], R], make_task: Callable[[int], T], number: int, out: set[int]
) -> object:
    out.add(number)
    return delayed(_numbered)(number, function, make_task(number))


def _numbered(number: int, function: Callable[[T], R], task: T) -> tuple[int, R]:
    return number, function(task)
