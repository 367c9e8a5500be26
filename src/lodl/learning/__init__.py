"""From a solver and labels to a loss."""

from lodl.learning._learn_loss import learn_loss

__all__ = ["learn_loss"]
