"""Tasks: domains with a title, digests of their data, their models, and the paper's settings."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from torch import nn

from lodl._digest import digest
from lodl.domains import Domain
from lodl.samplers import Sampler
from lodl.training.torch import TrainingSettings, mlp
from lodl_benchmarks.domains import Portfolio, WebAdvertising
from lodl_benchmarks.surrogates import Surrogate


@dataclass(frozen=True, eq=False)
class Task:
    """A domain with a title. Each benchmark extends it by its settings."""

    title: str  # what is decided
    build: Callable[[int], Domain]  # makes the domain of a data seed

    def data(self, seed: int) -> str:
        """Return a digest of the domain of a seed: other parameters or data make other rows."""
        return _digest(self.build, seed)


@cache
def _digest(build: Callable[[int], Domain], seed: int) -> str:
    domain = build(seed)
    splits = domain.splits
    parts = [
        [_on_grid(values) for values in (part.x, part.y, part.context)]
        for part in (splits.train, splits.validation, splits.test)
    ]
    return digest([domain.problem, repr(ModelShape.of(domain)), parts])[:16]


def _on_grid(values: Any) -> Any:
    """Return an array as whole numbers of 2^-12 of its largest entry, anything else as it is.

    The last digits of generated data depend on the CPU; the digest must not, or rows that were
    computed on another one would be computed again.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return values
    _, exponent = np.frexp(np.abs(values).max(initial=0.0))
    return np.rint(np.ldexp(values, 12 - exponent)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Setup(Task):
    """A domain of the paper, with the settings that experiments use and tune."""

    sampler: Sampler  # draws the points from which losses are learned
    samplers: tuple[Sampler, ...]  # the samplers that tuning tries
    surrogate: Surrogate  # the handcrafted relaxation of decision-focused learning
    surrogates: tuple[Surrogate, ...]  # the surrogates that tuning tries
    training: TrainingSettings  # how models are trained, whatever the method
    learning_rates: tuple[float, ...]  # the learning rates that tuning tries for every method


_NETWORKS: dict[type, tuple[tuple[int, ...], Literal["relu", "tanh"]]] = {
    WebAdvertising: ((500,), "relu"),
    Portfolio: ((500,), "tanh"),
}
"""Hidden layers and last activation of the paper's networks. Other domains have linear models."""


@dataclass(frozen=True)
class ModelShape:
    """The model that the literature trains in a domain.

    It maps the last axis of the features to `n_outputs` numbers: item by item, or the whole label
    from joint features. Its repr is part of the digests in committed rows.
    """

    n_features: int
    n_outputs: int
    hidden: tuple[int, ...]  # widths, each followed by a ReLU
    output: Literal["identity", "relu", "tanh"]

    @classmethod
    def of(cls, domain: Domain) -> "ModelShape":
        """Return the model of a domain, whose data gives its size."""
        x, y = domain.splits.train.x, domain.splits.train.y
        n_features = x.shape[-1]
        network = _NETWORKS.get(type(domain.problem), ((), "identity"))
        return cls(n_features, y.size * n_features // x.size, *network)


def initialisations(domain: Domain, n_models: int) -> list[nn.Sequential]:
    """Return the domain's model, initialised from the seeds 0 to `n_models - 1`."""
    label_shape, shape = domain.splits.train.y.shape[1:], ModelShape.of(domain)
    return [
        mlp(
            shape.n_features,
            label_shape,
            hidden=shape.hidden,
            output=shape.output,
            n_items=math.prod(label_shape) // shape.n_outputs,
            seed=seed,
        )
        for seed in range(n_models)
    ]
