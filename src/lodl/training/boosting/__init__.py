"""Gradient boosting on learned losses: a module each for XGBoost, LightGBM and CatBoost.

In your own training call you only need `objective`.
"""

from lodl.training.boosting._trees import objective

__all__ = ["objective"]
