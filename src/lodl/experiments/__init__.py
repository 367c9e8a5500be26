"""The paper's experiments: records in, rows out."""

from lodl.experiments._methods import METHODS, Learned, Method
from lodl.experiments._results import ResultsFile, Row
from lodl.experiments._run import Experiment, loss_path, run
from lodl.experiments._setup import SETUPS, Setup, with_prices
from lodl.experiments._table1 import (
    SCALES,
    Cell,
    Figure,
    ScaleOfRun,
    costs_markdown,
    table1_experiments,
    table1_info,
    table1_markdown,
)
from lodl.experiments._tune import choose, tuning_experiments

__all__ = [
    "METHODS",
    "SCALES",
    "SETUPS",
    "Cell",
    "Experiment",
    "Figure",
    "Learned",
    "Method",
    "ResultsFile",
    "Row",
    "ScaleOfRun",
    "Setup",
    "choose",
    "costs_markdown",
    "loss_path",
    "run",
    "table1_experiments",
    "table1_info",
    "table1_markdown",
    "tuning_experiments",
    "with_prices",
]
