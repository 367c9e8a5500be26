"""From a solver and labels to a loss, and from data to a model that decides.

`DecisionFocusedRegressor`, `load_model` and `load_result` need scikit-learn and are loaded on first
use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from lodl.learning._defaults import Schedule
from lodl.learning._learn_loss import learn_loss
from lodl.learning._rounds import Rounds, learn_in_rounds

if TYPE_CHECKING:
    from lodl.learning._regressor import DecisionFocusedRegressor, load_model
    from lodl.learning._saved_model import load_result

__all__ = [
    "DecisionFocusedRegressor",
    "Rounds",
    "Schedule",
    "learn_in_rounds",
    "learn_loss",
    "load_model",
    "load_result",
]

_LOADED_ON_USE = {
    "DecisionFocusedRegressor": "_regressor",
    "load_model": "_regressor",
    "load_result": "_saved_model",
}


def __getattr__(name: str) -> Any:
    """Load what brings scikit-learn on first use."""
    if name in _LOADED_ON_USE:
        return getattr(importlib.import_module(f"{__name__}.{_LOADED_ON_USE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
