"""One budget over millions of customers: labels of a trial, models, and decisions in blocks."""

from lodl_benchmarks.budget._labels import (
    TLearner,
    doubly_robust,
    drawn_together,
    inverse_propensity,
)
from lodl_benchmarks.budget._methods import METHODS, Data, fit_batches, predict_customers
from lodl_benchmarks.budget._run import BUDGETS, plan, run, tables
from lodl_benchmarks.budget._stream import (
    ParquetBlock,
    choose,
    find_cut,
    parquet_blocks,
    write_parquet,
)
from lodl_benchmarks.budget._trial import COSTS, SETTINGS, Setting, Trial

__all__ = [
    "BUDGETS",
    "COSTS",
    "METHODS",
    "SETTINGS",
    "Data",
    "ParquetBlock",
    "Setting",
    "TLearner",
    "Trial",
    "choose",
    "doubly_robust",
    "drawn_together",
    "find_cut",
    "fit_batches",
    "inverse_propensity",
    "parquet_blocks",
    "plan",
    "predict_customers",
    "run",
    "tables",
    "write_parquet",
]
