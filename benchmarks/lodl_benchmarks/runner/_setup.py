"""The paper's domains as experiments use them."""

from dataclasses import dataclass

from lodl.samplers import Sampler
from lodl.training.torch import TrainingSettings
from lodl_benchmarks.runner._task import Task
from lodl_benchmarks.surrogates import Surrogate


@dataclass(frozen=True, eq=False)
class Setup(Task):
    """A domain of the paper, with the settings that experiments use and tune.

    Attributes:
        sampler: Draws the candidates from which losses are learned.
        samplers: The samplers that tuning tries.
        surrogate: The handcrafted relaxation of decision-focused learning.
        surrogates: The surrogates that tuning tries.
        training: How models are trained, whatever the method.
        learning_rates: The learning rates that tuning tries for every method.
    """

    sampler: Sampler
    samplers: tuple[Sampler, ...]
    surrogate: Surrogate
    surrogates: tuple[Surrogate, ...]
    training: TrainingSettings
    learning_rates: tuple[float, ...]
