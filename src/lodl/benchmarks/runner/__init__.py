"""Runs methods on domains and keeps a row for each; needs torch."""

from lodl._validation import require

require("torch", extra="torch")

from lodl.benchmarks.runner._initialisations import initialisations  # noqa: E402
from lodl.benchmarks.runner._methods import METHODS, Learned, Method, Task  # noqa: E402
from lodl.benchmarks.runner._missing_rows import RowValues, complete_rows  # noqa: E402
from lodl.benchmarks.runner._rows_file import RowsFile  # noqa: E402
from lodl.benchmarks.runner._run import (  # noqa: E402
    Experiment,
    fingerprint,
    keep_freed_memory,
    loss_path,
    run,
    sample,
    versions,
)
from lodl.benchmarks.runner._setup import Setup  # noqa: E402

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
