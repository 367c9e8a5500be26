"""PyTorch: a learned loss as a module, a learner, a multilayer perceptron, and a small trainer.

In a training loop of your own you only need `LearnedLossModule`:

    criterion = LearnedLossModule(loss)
    for x, index in loader:
        criterion(model(x), index).backward()
"""

from lodl._arrays import require

require("torch", extra="torch")

from lodl.training._criteria import Criterion, SquaredError  # noqa: E402
from lodl.training._learned_loss_module import LearnedLossModule  # noqa: E402
from lodl.training._models import mlp  # noqa: E402
from lodl.training._scores import Score, validation_cost, validation_loss  # noqa: E402
from lodl.training._torch_learner import TorchLearner  # noqa: E402
from lodl.training._torch_predictor import TorchPredictor  # noqa: E402
from lodl.training._trainer import Trained, TrainingSettings, predict, train  # noqa: E402

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
