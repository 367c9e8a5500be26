"""Runs methods on tasks and keeps a row for each."""

from lodl_benchmarks.runner._complete_rows import (
    Computation,
    RowsFile,
    RowValues,
    Trial,
    complete_rows,
    keep_freed_memory,
    versions,
)
from lodl_benchmarks.runner._experiment import Experiment, loss_path, run, sample
from lodl_benchmarks.runner._methods import METHODS, Learned, Method, Run
from lodl_benchmarks.runner._task import Setup, Task, initialisations

__all__ = [
    "METHODS",
    "Computation",
    "Experiment",
    "Learned",
    "Method",
    "RowValues",
    "RowsFile",
    "Run",
    "Setup",
    "Task",
    "Trial",
    "complete_rows",
    "initialisations",
    "keep_freed_memory",
    "loss_path",
    "run",
    "sample",
    "versions",
]
