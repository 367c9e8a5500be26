"""From what a user hands over to a learner."""

import importlib
import sys
from typing import Any

from lodl.errors import InvalidInputError
from lodl.training._learner import Learner

_BOOSTING = {  # package: its regressor, and our learner
    "xgboost": ("XGBRegressor", "XGBoostLearner"),
    "lightgbm": ("LGBMRegressor", "LightGBMLearner"),
    "catboost": ("CatBoostRegressor", "CatBoostLearner"),
}


def learner_for(estimator: Any, *, seed: int = 0) -> Learner:
    """Return the learner of an estimator.

    Frameworks are imported only if they are needed.

    Args:
        estimator: None for a linear model, a PyTorch module, a regressor of XGBoost, LightGBM or
            CatBoost, a scikit-learn regressor or pipeline, or a learner, which is returned as it
            is.
        seed: Random seed of the training.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> type(lodl.training.learner_for(Ridge())).__name__
        'SklearnLearner'
    """
    if estimator is None:
        linear: Learner = importlib.import_module("lodl.training.linear").LinearLearner()
        return linear
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(estimator, torch.nn.Module):
        return _learner("torch", "TorchLearner", estimator, seed)
    if isinstance(estimator, type):
        raise InvalidInputError(
            f"`estimator` must be an instance, got the class {estimator.__name__}. "
            f"Call it: `{estimator.__name__}(...)`."
        )
    if isinstance(estimator, Learner):
        return estimator
    for package, (regressor, learner) in _BOOSTING.items():
        kind = getattr(sys.modules.get(package), regressor, None)
        if kind is not None and isinstance(estimator, kind):
            return _learner(package, learner, estimator, seed)
    # Some have `predict` only once they are fitted.
    if hasattr(estimator, "fit") and (
        hasattr(estimator, "predict") or hasattr(estimator, "get_params")
    ):
        return _learner("sklearn", "SklearnLearner", estimator, seed)
    raise InvalidInputError(
        "`estimator` must be None, a PyTorch module, a scikit-learn regressor or a "
        f"`lodl.training.Learner`, got {estimator!r}."
    )


def _learner(module: str, name: str, estimator: Any, seed: int) -> Learner:
    kind: type[Any] = getattr(importlib.import_module(f"lodl.training.{module}"), name)
    learner: Learner = kind(estimator, seed=seed)
    return learner
