"""PyTorch: a learned loss as a module, a learner, a multilayer perceptron, and a small trainer.

In your own training loop you only need `LearnedLossModule`:

    criterion = LearnedLossModule(loss)
    for x, index in loader:
        criterion(model(x), index).backward()
"""

from lodl._arrays import require

require("torch", extra="torch")

from lodl.training.torch._criterion import (  # noqa: E402
    Criterion,
    LearnedLossModule,
    Score,
    SquaredError,
    validation_cost,
    validation_loss,
)
from lodl.training.torch._learner import TorchLearner  # noqa: E402
from lodl.training.torch._loop import Trained, TrainingSettings, predict, train  # noqa: E402
from lodl.training.torch._mlp import mlp  # noqa: E402
from lodl.training.torch._predictor import TorchPredictor  # noqa: E402

__all__ = [
    "Criterion",
    "LearnedLossModule",
    "Score",
    "SquaredError",
    "TorchLearner",
    "TorchPredictor",
    "Trained",
    "TrainingSettings",
    "mlp",
    "predict",
    "train",
    "validation_cost",
    "validation_loss",
]
