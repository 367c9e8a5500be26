"""What trains a model on a learned loss, whatever the framework."""

from typing import Any, Protocol, runtime_checkable

from lodl._typing import Array
from lodl.losses import LearnedLoss


@runtime_checkable
class Predictor(Protocol):
    """A trained model.

    Attributes:
        n_steps: How long it was trained: steps, trees or rounds, whatever its learner counts.
    """

    n_steps: int

    def predict(self, x: Any) -> Array:
        """Return predictions of shape (n, *label_shape)."""
        ...


@runtime_checkable
class Learner(Protocol):
    """Trains a model on a learned loss.

    Features have shape (n, p), from which the whole label is predicted, or (n, items, p), where one
    model predicts each item's part of the label. `lodl.losses.squared_error_loss(y)` is the loss of
    2-stage training. A learner that uses validation instances to stop early may say so by an
    attribute `stops_early = True`: then 2-stage is also tried without them. One that takes pandas
    and polars frames says `takes_frames = True`; others get arrays.
    `lodl.testing.check_learner` checks a learner of your own.
    """

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        *,
        x_validation: Any = None,
        loss_validation: LearnedLoss | None = None,
        n_steps: int | None = None,
    ) -> Predictor:
        """Return a model trained on the loss; the same arguments give the same model.

        Args:
            x: Features of the training instances.
            loss: The loss of the training instances, in the same order.
            x_validation: Features of validation instances.
            loss_validation: Their loss: training stops where its mean is least.
            n_steps: Without validation instances, how long to train: the `n_steps` of a model that
                had some. None leaves it to the learner.
        """
        ...
