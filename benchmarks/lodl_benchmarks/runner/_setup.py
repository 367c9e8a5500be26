"""A domain as experiments use it."""

from collections.abc import Callable
from dataclasses import dataclass

from lodl.domains import Domain
from lodl.samplers import Sampler
from lodl.training.torch import TrainingSettings
from lodl_benchmarks.surrogates import Surrogate


@dataclass(frozen=True, eq=False)
class Setup:
    """What experiments need to know about a domain besides its data.

    Attributes:
        title: The title of the domain.
        build: Makes the domain of a seed.
        sampler: Draws the candidates from which losses are learned.
        samplers: The samplers that tuning tries.
        surrogate: The handcrafted relaxation of decision-focused learning.
        surrogates: The surrogates that tuning tries.
        training: How models are trained, whatever the method.
        learning_rates: The learning rates that tuning tries for every method.
    """

    title: str
    build: Callable[[int], Domain]
    sampler: Sampler
    samplers: tuple[Sampler, ...]
    surrogate: Surrogate
    surrogates: tuple[Surrogate, ...]
    training: TrainingSettings
    learning_rates: tuple[float, ...]
