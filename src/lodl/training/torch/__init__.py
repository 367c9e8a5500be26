"""PyTorch: a learned loss as a module, a learner for any module, and a multilayer perceptron.

In your own training loop you only need `LearnedLossModule`: `criterion(model(x), index)`.
"""

from lodl._arrays import require

require("torch", extra="torch")

from lodl.training.torch._criterion import LearnedLossModule  # noqa: E402
from lodl.training.torch._learner import TorchLearner, TorchPredictor  # noqa: E402
from lodl.training.torch._loop import TrainingSettings  # noqa: E402
from lodl.training.torch._mlp import mlp  # noqa: E402

__all__ = ["LearnedLossModule", "TorchLearner", "TorchPredictor", "TrainingSettings", "mlp"]
