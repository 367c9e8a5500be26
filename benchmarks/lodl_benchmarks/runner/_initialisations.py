"""A domain's own model, from several seeds."""

import math

from torch import nn

from lodl.domains import Domain
from lodl.training.torch import mlp


def initialisations(domain: Domain, n_models: int) -> list[nn.Sequential]:
    """Return the domain's model, initialised from the seeds 0 to `n_models - 1`."""
    label_shape = domain.splits.train.y.shape[1:]
    return [
        mlp(
            domain.model.n_features,
            label_shape,
            hidden=domain.model.hidden,
            output=domain.model.output,
            n_items=math.prod(label_shape) // domain.model.n_outputs,
            seed=seed,
        )
        for seed in range(n_models)
    ]
