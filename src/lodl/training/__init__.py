"""Models trained on learned losses: `Learner`, `Predictor`, and a module per framework."""

from lodl.training._learner import Learner, Predictor, learner_for, load_predictor

__all__ = ["Learner", "Predictor", "learner_for", "load_predictor"]
