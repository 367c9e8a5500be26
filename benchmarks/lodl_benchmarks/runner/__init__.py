"""Runs methods on domains and keeps a row for each."""

from lodl_benchmarks.runner._initialisations import initialisations
from lodl_benchmarks.runner._methods import METHODS, Learned, Method, Task
from lodl_benchmarks.runner._missing_rows import RowValues, complete_rows
from lodl_benchmarks.runner._rows_file import RowsFile
from lodl_benchmarks.runner._run import (
    Experiment,
    fingerprint,
    keep_freed_memory,
    loss_path,
    run,
    sample,
    versions,
)
from lodl_benchmarks.runner._setup import Setup

__all__ = [
    "METHODS",
    "Experiment",
    "Learned",
    "Method",
    "RowValues",
    "RowsFile",
    "Setup",
    "Task",
    "complete_rows",
    "fingerprint",
    "initialisations",
    "keep_freed_memory",
    "loss_path",
    "run",
    "sample",
    "versions",
]
