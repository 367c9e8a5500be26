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
from lodl_benchmarks.runner._learner_digest import learner_digest
from lodl_benchmarks.runner._methods import METHODS, Learned, Method, Run
from lodl_benchmarks.runner._task import Setup, Task, initialisations
from lodl_benchmarks.runner._training import Criterion, Trained, predict, squared_error, train

__all__ = [
    "METHODS",
    "Computation",
    "Criterion",
    "Experiment",
    "Learned",
    "Method",
    "RowValues",
    "RowsFile",
    "Run",
    "Setup",
    "Task",
    "Trained",
    "Trial",
    "complete_rows",
    "initialisations",
    "keep_freed_memory",
    "learner_digest",
    "loss_path",
    "predict",
    "run",
    "sample",
    "squared_error",
    "train",
    "versions",
]
