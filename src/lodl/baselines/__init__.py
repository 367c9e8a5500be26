"""What a learned loss is compared with.

Here is what needs NumPy only: random predictions, the constant prediction, and the two-stage loss.
(Optimal predictions are the labels.) Decision-focused learning through handcrafted surrogates needs
torch and lives in `lodl.baselines.dfl`.
"""

from lodl.baselines._simple import constant_predictions
from lodl.evaluation import random_predictions
from lodl.losses import mean_squared_error

__all__ = ["constant_predictions", "mean_squared_error", "random_predictions"]
