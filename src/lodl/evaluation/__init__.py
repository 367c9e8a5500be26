"""Scores of predictions as decisions, and the agreement of a learned loss with true regrets."""

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
    "summarise",
]
