"""Scores of predictions as decisions, and the agreement of a learned loss with true regrets."""

from lodl.evaluation._diagnosis import Diagnosis, diagnose
from lodl.evaluation._loss_summary import Finding, LossSummary, Quantiles, summarise
from lodl.evaluation._scores import decision_loss, regret, regret_scorer

__all__ = [
    "Diagnosis",
    "Finding",
    "LossSummary",
    "Quantiles",
    "decision_loss",
    "diagnose",
    "regret",
    "regret_scorer",
    "summarise",
]
