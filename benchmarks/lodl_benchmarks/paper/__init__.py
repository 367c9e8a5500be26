"""The paper's tables and figures next to ours, and their page, from plain data."""

from lodl_benchmarks.paper._cost_figure import (
    LODL,
    TRAINED,
    CostFigure,
    CostSettings,
    Measured,
    UnitCosts,
    costs_of_domain,
)
from lodl_benchmarks.paper._draw_cost import draw_cost
from lodl_benchmarks.paper._draw_table3 import draw_table3
from lodl_benchmarks.paper._linear_figure import (
    LinearFigure,
    LinearSettings,
    MethodLines,
    draw_linear,
)
from lodl_benchmarks.paper._losses_figure import (
    LossesFigure,
    LossesSettings,
    LossShape,
    draw_losses,
)
from lodl_benchmarks.paper._page import write_report
from lodl_benchmarks.paper._published import DOMAINS
from lodl_benchmarks.paper._quality_table import (
    QUALITY_TEXT,
    QualityTable,
    table1,
    table2a,
    table2b,
)
from lodl_benchmarks.paper._table3 import Table3

__all__ = [
    "DOMAINS",
    "LODL",
    "QUALITY_TEXT",
    "TRAINED",
    "CostFigure",
    "CostSettings",
    "LinearFigure",
    "LinearSettings",
    "LossShape",
    "LossesFigure",
    "LossesSettings",
    "Measured",
    "MethodLines",
    "QualityTable",
    "Table3",
    "UnitCosts",
    "costs_of_domain",
    "draw_cost",
    "draw_linear",
    "draw_losses",
    "draw_table3",
    "table1",
    "table2a",
    "table2b",
    "write_report",
]
