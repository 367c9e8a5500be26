"""From a solver and labels to a loss, and from data to a model that decides.

`DecisionFocusedRegressor` and `load_model` need scikit-learn and are loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from lodl.learning._defaults import Schedule
from lodl.learning._learn_loss import Rounds, learn_in_rounds, learn_loss
from lodl.learning._saved_model import load_result

if TYPE_CHECKING:
    from lodl.learning._regressor import DecisionFocusedRegressor, load_model

__all__ = [
    "DecisionFocusedRegressor",
    "Rounds",
    "Schedule",
    "learn_in_rounds",
    "learn_loss",
    "load_model",
    "load_result",
]


def __getattr__(name: str) -> Any:
    """Load what brings scikit-learn on first use."""
    if name in ("DecisionFocusedRegressor", "load_model"):
        module = importlib.import_module("lodl.learning._regressor")
        return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
