"""Evaluation: decision loss, decision quality, regret."""

from lodl.evaluation._decision_loss import decision_loss, decision_quality, regret
from lodl.evaluation._quality import (
    QualityScale,
    normalised_decision_quality,
    quality_scale,
    random_predictions,
)

__all__ = [
    "QualityScale",
    "decision_loss",
    "decision_quality",
    "normalised_decision_quality",
    "quality_scale",
    "random_predictions",
    "regret",
]
