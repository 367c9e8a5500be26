"""The numbers that the paper prints: mean and standard deviation over its runs.

Methods, samplers and domains have our names. Decision quality is normalised, on test data; errors
are mean absolute errors of learned losses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from lodl.report import MeanStd

_Key = TypeVar("_Key", str, int)
_Means: TypeAlias = Mapping[str, Mapping[_Key, MeanStd]]


def _means(table: Mapping[str, Mapping[_Key, tuple[float, float]]]) -> _Means[_Key]:
    return {
        method: {column: MeanStd(*numbers) for column, numbers in row.items()}
        for method, row in table.items()
    }


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

TABLE1 = _means(
    {
        "2-stage": {"linear": (-0.95, 0.00), "web": (0.48, 0.15), "portfolio": (0.32, 0.02)},
        "DFL": {"linear": (0.83, 0.38), "web": (0.85, 0.10), "portfolio": (0.35, 0.02)},
        "NN": {"linear": (0.96, 0.00), "web": (0.81, 0.14), "portfolio": (-0.11, 0.08)},
        "WeightedMSE": {"linear": (-0.93, 0.06), "web": (0.58, 0.15), "portfolio": (0.31, 0.02)},
        "DirectedWeightedMSE": {
            "linear": (0.96, 0.00),
            "web": (0.53, 0.14),
            "portfolio": (0.32, 0.02),
        },
        "Quadratic": {"linear": (-0.75, 0.38), "web": (0.93, 0.04), "portfolio": (0.27, 0.02)},
        "DirectedQuadratic": {
            "linear": (0.96, 0.00),
            "web": (0.91, 0.04),
            "portfolio": (0.33, 0.01),
        },
    }
)
"""Decision quality, by method and domain."""


def published_quality(method: str, domain: str) -> MeanStd | None:
    """Return the number of table 1; real prices are compared with the paper's portfolio."""
    return TABLE1.get(method, {}).get(domain.partition("-")[0])


TABLE2A = _means(
    {
        "NN": {
            "OnePerturbed": (0.86, 0.12),
            "TwoPerturbed": (0.89, 0.09),
            "AllPerturbed": (0.80, 0.16),
        },
        "WeightedMSE": {
            "OnePerturbed": (0.50, 0.14),
            "TwoPerturbed": (0.53, 0.14),
            "AllPerturbed": (0.58, 0.15),
        },
        "DirectedWeightedMSE": {
            "OnePerturbed": (0.47, 0.15),
            "TwoPerturbed": (0.53, 0.16),
            "AllPerturbed": (0.50, 0.13),
        },
        "Quadratic": {
            "OnePerturbed": (0.77, 0.25),
            "TwoPerturbed": (0.88, 0.10),
            "AllPerturbed": (0.92, 0.05),
        },
        "DirectedQuadratic": {
            "OnePerturbed": (0.77, 0.19),
            "TwoPerturbed": (0.84, 0.11),
            "AllPerturbed": (0.85, 0.08),
        },
    }
)
"""Decision quality in Web Advertising, by method and sampler."""

TABLE2B = _means(
    {
        "NN": {50: (0.81, 0.13), 500: (0.80, 0.16), 5000: (0.81, 0.14)},
        "WeightedMSE": {50: (0.50, 0.14), 500: (0.50, 0.14), 5000: (0.53, 0.14)},
        "DirectedWeightedMSE": {50: (0.48, 0.15), 500: (0.53, 0.16), 5000: (0.53, 0.15)},
        "Quadratic": {50: (0.68, 0.17), 500: (0.92, 0.05), 5000: (0.93, 0.04)},
        "DirectedQuadratic": {50: (0.59, 0.13), 500: (0.85, 0.08), 5000: (0.91, 0.04)},
    }
)
"""Decision quality in Web Advertising, by method and number of samples."""


@dataclass(frozen=True)
class ErrorUnit:
    """The unit of the errors of learned losses.

    Attributes:
        name: The name of the unit.
        factor: The number of these units in one unit of our objective.
    """

    name: str = "the objective's unit"
    factor: float = 1.0


ERROR_UNITS: Mapping[str, ErrorUnit] = {
    "web": ErrorUnit("expected clicks", 10.0),  # our objective is the share of 10 users that click
}
"""The units of the paper's table 3; other domains have `ErrorUnit()`."""

TABLE3 = _means(
    {
        "NN": {
            "gaussian": (0.94e-2, 0.06e-2),
            "empirical": (2.22e-2, 1.73e-2),
            "quality": (0.80, 0.16),
        },
        "WeightedMSE": {
            "gaussian": (1.04e-2, 0.00),
            "empirical": (4.48e-2, 1.71e-2),
            "quality": (0.58, 0.15),
        },
        "DirectedWeightedMSE": {
            "gaussian": (0.92e-2, 0.00),
            "empirical": (5.58e-2, 1.64e-2),
            "quality": (0.50, 0.13),
        },
        "Quadratic": {
            "gaussian": (0.96e-2, 0.00),
            "empirical": (0.86e-2, 0.52e-2),
            "quality": (0.92, 0.05),
        },
        "DirectedQuadratic": {
            "gaussian": (1.06e-2, 0.00),
            "empirical": (1.91e-2, 0.79e-2),
            "quality": (0.85, 0.08),
        },
    }
)
"""Errors in the two neighbourhoods and decision quality in Web Advertising, by method."""
