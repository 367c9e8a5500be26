"""Experiments behind the paper's tables and figures; needs torch."""

from lodl_benchmarks.experiments._cost import COST_SCALES, cost_figure, cost_settings
from lodl_benchmarks.experiments._linear import linear_figure, linear_settings
from lodl_benchmarks.experiments._losses import losses_figure
from lodl_benchmarks.experiments._plans import (
    SCALES,
    TABLE3_SCALES,
    RunSize,
    learned_experiments,
    linear_figure_experiments,
    table1_experiments,
    table2a_experiments,
    table2b_experiments,
    table3_experiments,
)
from lodl_benchmarks.experiments._setups import SETUPS, setups_with_prices
from lodl_benchmarks.experiments._slices import slices_of_losses
from lodl_benchmarks.experiments._tune import choose, tuning_experiments

__all__ = [
    "COST_SCALES",
    "SCALES",
    "SETUPS",
    "TABLE3_SCALES",
    "RunSize",
    "choose",
    "cost_figure",
    "cost_settings",
    "learned_experiments",
    "linear_figure",
    "linear_figure_experiments",
    "linear_settings",
    "losses_figure",
    "setups_with_prices",
    "slices_of_losses",
    "table1_experiments",
    "table2a_experiments",
    "table2b_experiments",
    "table3_experiments",
    "tuning_experiments",
]
