"""The records that a data set is handed over in."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lodl._typing import Array, Context
from lodl._validation import check_count
from lodl.errors import InvalidInputError

Sizes = tuple[int, int, int]
"""How many instances train, validation and test have."""


@dataclass(frozen=True, eq=False)
class Instances:
    """Features and labels of instances, and what a solver knows about each besides.

    Attributes:
        x: Features, shape (n_instances, n_items, n_features).
        y: Labels, shape (n_instances, *label_shape).
        context: One entry per instance, or None where the problem has no context.
    """

    x: Array
    y: Array
    context: Context = None


@dataclass(frozen=True, eq=False)
class Splits:
    """Instances to train on, to choose by, and to judge by; no instance is in two of them."""

    train: Instances
    validation: Instances
    test: Instances

    @property
    def with_losses(self) -> Instances:
        """The instances that losses are learned for: training, then validation."""
        parts = (self.train, self.validation)
        contexts = [part.context for part in parts if part.context is not None]
        return Instances(
            x=np.concatenate([part.x for part in parts]),
            y=np.concatenate([part.y for part in parts]),
            context=np.concatenate(contexts) if contexts else None,
        )


def check_sizes(sizes: Sequence[int]) -> Sizes:
    """Returns three positive numbers of instances."""
    if len(sizes) != 3:
        raise InvalidInputError(
            f"`sizes` must be three numbers, of train, validation and test instances, got {sizes}."
        )
    train, validation, test = (check_count("sizes", size) for size in sizes)
    return train, validation, test


def streams(purpose: str, seed: int, n_streams: int) -> list[np.random.Generator]:
    """Returns independent random streams, so that one part's draws do not move another's."""
    seed = check_count("seed", seed, minimum=0)
    sequence = np.random.SeedSequence([seed, *purpose.encode()])
    return [np.random.default_rng(child) for child in sequence.spawn(n_streams)]
