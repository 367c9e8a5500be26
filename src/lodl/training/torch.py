"""PyTorch: a learned loss as a module, the paper's models, and a small trainer.

With a training loop of your own, `LearnedLossModule` is all you need:

    criterion = LearnedLossModule(loss)
    for x, index in loader:
        criterion(model(x), index).backward()
"""

from lodl._validation import require

require("torch", extra="torch")

from lodl.training._learned_loss_module import LearnedLossModule  # noqa: E402
from lodl.training._models import initialisations, mlp  # noqa: E402
from lodl.training._objectives import Objective, SquaredError  # noqa: E402
from lodl.training._scores import (  # noqa: E402
    Score,
    validation_decision_loss,
    validation_loss,
)
from lodl.training._trainer import Trained, TrainingSettings, predict, train  # noqa: E402

__all__ = [
    "LearnedLossModule",
    "Objective",
    "Score",
    "SquaredError",
    "Trained",
    "TrainingSettings",
    "initialisations",
    "mlp",
    "predict",
    "train",
    "validation_decision_loss",
    "validation_loss",
]
