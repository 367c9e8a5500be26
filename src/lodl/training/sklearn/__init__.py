"""Any scikit-learn regressor or pipeline, trained on a learned loss."""

from lodl._arrays import require

require("sklearn", extra="sklearn")

from lodl.training.sklearn._learner import SklearnLearner, SklearnPredictor  # noqa: E402

__all__ = ["SklearnLearner", "SklearnPredictor"]
