"""Training on learned losses: one module per framework, behind one protocol."""

from lodl.training._choose import learner_for
from lodl.training._learner import Learner, Predictor
from lodl.training._saving import load_predictor

__all__ = ["Learner", "Predictor", "learner_for", "load_predictor"]
