"""The numbers that the paper prints: mean and standard deviation over its runs.

Methods, samplers and domains have our names. Decision quality is normalised, on test data; errors
are mean absolute errors of learned losses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lodl_benchmarks.pages import MeanStd

_Column = TypeVar("_Column", str, int)


def _read(columns: Sequence[_Column], text: str) -> dict[str, dict[_Column, MeanStd]]:
    """Return a table by method and column; a line has a method, and mean and std per column."""
    table = {}
    for line in text.strip().splitlines():
        method, *numbers = line.split()
        pairs = zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True)
        table[method] = {
            column: MeanStd(*pair) for column, pair in zip(columns, pairs, strict=True)
        }
    return table


DOMAINS: Mapping[str, str] = {
    "linear": "Linear Model",
    "web": "Web Advertising",
    "portfolio": "Portfolio",
    "portfolio-prices": "Portfolio, real prices",
}
"""Titles of the paper's domains in its order; the last is its third, on the prices of a file."""

SAMPLERS: Mapping[str, str] = {
    "OnePerturbed": "1-perturbed",
    "TwoPerturbed": "2-perturbed",
    "AllPerturbed": "all-perturbed",
}
"""Titles of the paper's samplers, in its order."""

TABLE1 = _read(
    ("linear", "web", "portfolio"),
    """
    2-stage              -0.95 0.00   0.48 0.15   0.32 0.02
    DFL                   0.83 0.38   0.85 0.10   0.35 0.02
    NN                    0.96 0.00   0.81 0.14  -0.11 0.08
    WeightedMSE          -0.93 0.06   0.58 0.15   0.31 0.02
    DirectedWeightedMSE   0.96 0.00   0.53 0.14   0.32 0.02
    Quadratic            -0.75 0.38   0.93 0.04   0.27 0.02
    DirectedQuadratic     0.96 0.00   0.91 0.04   0.33 0.01
    """,
)
"""Decision quality, by method and domain."""


def published_quality(method: str, domain: str) -> MeanStd | None:
    """Return the number of table 1; real prices are compared with the paper's portfolio."""
    return TABLE1.get(method, {}).get(domain.partition("-")[0])


TABLE2A = _read(
    ("OnePerturbed", "TwoPerturbed", "AllPerturbed"),
    """
    NN                   0.86 0.12   0.89 0.09   0.80 0.16
    WeightedMSE          0.50 0.14   0.53 0.14   0.58 0.15
    DirectedWeightedMSE  0.47 0.15   0.53 0.16   0.50 0.13
    Quadratic            0.77 0.25   0.88 0.10   0.92 0.05
    DirectedQuadratic    0.77 0.19   0.84 0.11   0.85 0.08
    """,
)
"""Decision quality in Web Advertising, by method and sampler."""

TABLE2B = _read(
    (50, 500, 5000),
    """
    NN                   0.81 0.13   0.80 0.16   0.81 0.14
    WeightedMSE          0.50 0.14   0.50 0.14   0.53 0.14
    DirectedWeightedMSE  0.48 0.15   0.53 0.16   0.53 0.15
    Quadratic            0.68 0.17   0.92 0.05   0.93 0.04
    DirectedQuadratic    0.59 0.13   0.85 0.08   0.91 0.04
    """,
)
"""Decision quality in Web Advertising, by method and number of samples."""


@dataclass(frozen=True)
class ErrorUnit:
    """The unit of the errors of learned losses."""

    name: str = "the objective's unit"  # the name of the unit
    factor: float = 1.0  # the number of these units in one unit of our objective


ERROR_UNITS: Mapping[str, ErrorUnit] = {
    "web": ErrorUnit("expected clicks", 10.0),  # our objective is the share of 10 users that click
}
"""The units of the paper's table 3; other domains have `ErrorUnit()`."""

TABLE3 = _read(
    ("gaussian", "empirical", "quality"),
    """
    NN                   0.94e-2 0.06e-2   2.22e-2 1.73e-2   0.80 0.16
    WeightedMSE          1.04e-2 0.00      4.48e-2 1.71e-2   0.58 0.15
    DirectedWeightedMSE  0.92e-2 0.00      5.58e-2 1.64e-2   0.50 0.13
    Quadratic            0.96e-2 0.00      0.86e-2 0.52e-2   0.92 0.05
    DirectedQuadratic    1.06e-2 0.00      1.91e-2 0.79e-2   0.85 0.08
    """,
)
"""Errors in the two neighbourhoods and decision quality in Web Advertising, by method."""
