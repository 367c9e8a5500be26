"""Scores of predictions as decisions, and the agreement of a learned loss with true regrets."""

import importlib
from typing import TYPE_CHECKING, Any

from lodl.evaluation._diagnosis import Diagnosis, diagnose
from lodl.evaluation._findings import Finding
from lodl.evaluation._loss_summary import LossSummary, Quantiles, summarise
from lodl.evaluation._scores import (
    QualityScale,
    constant_predictions,
    decision_loss,
    decision_quality,
    normalised_decision_quality,
    quality_scale,
    regret,
)

if TYPE_CHECKING:
    from lodl.evaluation._scorer import regret_scorer

__all__ = [
    "Diagnosis",
    "Finding",
    "LossSummary",
    "QualityScale",
    "Quantiles",
    "constant_predictions",
    "decision_loss",
    "decision_quality",
    "diagnose",
    "normalised_decision_quality",
    "quality_scale",
    "regret",
    "regret_scorer",
    "summarise",
]


def __getattr__(name: str) -> Any:
    """Load the scorer on first use: it brings scikit-learn."""
    if name == "regret_scorer":
        return importlib.import_module(f"{__name__}._scorer").regret_scorer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
