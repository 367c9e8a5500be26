"""From a solver and labels to a loss, and from data to a model that decides."""

from lodl.learning._gain import Gain
from lodl.learning._learn_loss import learn_loss
from lodl.learning._load_model import load_model
from lodl.learning._model_folder import load_record
from lodl.learning._regressor import DecisionFocusedRegressor
from lodl.learning._rounds import Round, Rounds, learn_in_rounds
from lodl.learning._search import HistoryRow

__all__ = [
    "DecisionFocusedRegressor",
    "Gain",
    "HistoryRow",
    "Round",
    "Rounds",
    "learn_in_rounds",
    "learn_loss",
    "load_model",
    "load_record",
]
