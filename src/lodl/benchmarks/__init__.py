"""The paper's experiments: records in, rows out."""

# ruff: noqa: E402
from lodl._validation import require

require("torch", extra="torch")

from lodl.benchmarks._figure_cost import (
    COST_SCALES,
    CostSettings,
    figure_cost_info,
    measured_cores,
)
from lodl.benchmarks._figure_cost_markdown import figure_cost_markdown
from lodl.benchmarks._figure_linear import (
    figure_linear_experiments,
    figure_linear_info,
    figure_linear_settings,
)
from lodl.benchmarks._figure_losses import LossesSettings, figure_losses_info
from lodl.benchmarks._memory import keep_freed_memory
from lodl.benchmarks._methods import METHODS, Learned, Method, Outcome, Task
from lodl.benchmarks._quality_table import Cell, quality_json
from lodl.benchmarks._results import ResultsFile, Row
from lodl.benchmarks._run import Experiment, loss_path, run
from lodl.benchmarks._setup import SETUPS, Setup, with_prices
from lodl.benchmarks._slices import slices_info
from lodl.benchmarks._table1 import (
    SCALES,
    ScaleOfRun,
    costs_markdown,
    learned_experiments,
    table1_experiments,
    table1_info,
    table1_markdown,
)
from lodl.benchmarks._table2 import (
    table2a_experiments,
    table2a_info,
    table2a_markdown,
    table2b_experiments,
    table2b_info,
    table2b_markdown,
)
from lodl.benchmarks._table3 import TABLE3_SCALES, table3_info
from lodl.benchmarks._table3_markdown import table3_markdown
from lodl.benchmarks._tune import choose, tuning_experiments

__all__ = [
    "COST_SCALES",
    "METHODS",
    "SCALES",
    "SETUPS",
    "TABLE3_SCALES",
    "Cell",
    "CostSettings",
    "Experiment",
    "Learned",
    "LossesSettings",
    "Method",
    "Outcome",
    "ResultsFile",
    "Row",
    "ScaleOfRun",
    "Setup",
    "Task",
    "choose",
    "costs_markdown",
    "figure_cost_info",
    "figure_cost_markdown",
    "figure_linear_experiments",
    "figure_linear_info",
    "figure_linear_settings",
    "figure_losses_info",
    "keep_freed_memory",
    "learned_experiments",
    "loss_path",
    "measured_cores",
    "quality_json",
    "run",
    "slices_info",
    "table1_experiments",
    "table1_info",
    "table1_markdown",
    "table2a_experiments",
    "table2a_info",
    "table2a_markdown",
    "table2b_experiments",
    "table2b_info",
    "table2b_markdown",
    "table3_info",
    "table3_markdown",
    "tuning_experiments",
    "with_prices",
]
