"""From a solver and labels to a loss."""

from lodl.learning._learn_loss import learn_loss
from lodl.learning._rounds import Round, Rounds, learn_in_rounds

__all__ = ["Round", "Rounds", "learn_in_rounds", "learn_loss"]
