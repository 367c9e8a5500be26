"""What predictions are worth as decisions, and how faithful a learned loss is to their cost."""

from lodl.evaluation._baselines import constant_predictions, random_predictions
from lodl.evaluation._decision_loss import decision_loss, decision_quality, regret
from lodl.evaluation._diagnosis import Diagnosis, diagnose
from lodl.evaluation._fidelity import Fidelity, WorstInstance
from lodl.evaluation._quality import (
    QualityScale,
    normalised_decision_quality,
    quality_scale,
)
from lodl.evaluation._region import Region

__all__ = [
    "Diagnosis",
    "Fidelity",
    "QualityScale",
    "Region",
    "WorstInstance",
    "constant_predictions",
    "decision_loss",
    "decision_quality",
    "diagnose",
    "normalised_decision_quality",
    "quality_scale",
    "random_predictions",
    "regret",
]
