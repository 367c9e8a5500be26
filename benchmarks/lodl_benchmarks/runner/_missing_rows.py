"""Computes the rows that a file lacks."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from joblib import Parallel, delayed

from lodl._progress import progress_bar
from lodl_benchmarks.pages import read_json_rows
from lodl_benchmarks.runner._rows_file import RowsFile

RowValues: TypeAlias = Mapping[str, Any]
"""A row as JSON values."""


def complete_rows(
    path: Path,
    computations: Sequence[tuple[RowValues, Callable[[], RowValues]]],
    *,
    key: Callable[[RowValues], Hashable],
    description: str,
    n_jobs: int | None = 1,
    progress: bool = True,
) -> list[RowValues]:
    """Compute what has no row yet and return the rows of all, in order.

    Args:
        path: The file of rows; a row is on disk before the next one is waited for.
        computations: For each row, the values that name it, and what computes all of it.
        key: Returns what distinguishes a row from others, given its values or those that name it.
        description: What the bar is called.
        n_jobs: Workers, as in joblib.
        progress: Whether to show a bar on a terminal.
    """
    file = RowsFile(path)
    done = {key(values) for _, values in read_json_rows(file.path)}
    pending = [compute for named, compute in computations if key(named) not in done]
    workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    calls = (delayed(compute)() for compute in pending)
    with progress_bar(len(pending), unit="runs", description=description, enabled=progress) as bar:
        for values in workers(calls):
            file.append(values)
            bar.update()
    rows = {key(values): values for _, values in read_json_rows(file.path)}
    return [rows[key(named)] for named, _ in computations]
