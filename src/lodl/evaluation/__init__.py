"""Scores of predictions as decisions, and the agreement of a learned loss with true regrets."""

from lodl.evaluation._diagnosis import Diagnosis, diagnose
from lodl.evaluation._loss_summary import Finding, LossSummary, Quantiles, summarise
from lodl.evaluation._scores import (
    QualityScale,
    decision_loss,
    decision_quality,
    normalised_decision_quality,
    quality_scale,
    regret,
    regret_scorer,
)

__all__ = [
    "Diagnosis",
    "Finding",
    "LossSummary",
    "QualityScale",
    "Quantiles",
    "decision_loss",
    "decision_quality",
    "diagnose",
    "normalised_decision_quality",
    "quality_scale",
    "regret",
    "regret_scorer",
    "summarise",
]
