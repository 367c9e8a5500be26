"""Instances, and their split into training, validation and test."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError

Sizes = tuple[int, int, int]
"""Number of training, validation and test instances."""


@dataclass(frozen=True, eq=False)
class Instances:
    """Features and labels of instances, and what else the solver knows about each.

    Attributes:
        x: Features, shape (n_instances, n_items, n_features), or (n_instances, n_features) where
            they belong to the instance as a whole.
        y: Labels, shape (n_instances, *label_shape).
        context: One entry per instance, or None where the problem has no context.
    """

    x: Array
    y: Array
    context: Context = None


@dataclass(frozen=True, eq=False)
class Splits:
    """Instances for training, validation and test; no instance is in two of them."""

    train: Instances
    validation: Instances
    test: Instances

    @property
    def train_and_validation(self) -> Instances:
        """The instances that losses are learned for: training, followed by validation."""
        parts = (self.train, self.validation)
        contexts = [part.context for part in parts if part.context is not None]
        return Instances(
            x=np.concatenate([part.x for part in parts]),
            y=np.concatenate([part.y for part in parts]),
            context=np.concatenate(contexts) if contexts else None,
        )


def check_sizes(sizes: Sequence[int]) -> Sizes:
    """Return `sizes` as three positive whole numbers."""
    if len(sizes) != 3:
        raise InvalidInputError(
            "`sizes` must be three numbers of training, validation and test instances, "
            f"got {sizes}."
        )
    train, validation, test = (check_count("sizes", size) for size in sizes)
    return train, validation, test


def split_in_order(instances: Instances, sizes: Sizes) -> Splits:
    """Return the first instances for training, the next for validation, the next for test."""
    x, y, context = instances.x, instances.y, instances.context
    ends = np.cumsum(sizes).tolist()
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return Splits(
        *(Instances(x[at], y[at], None if context is None else context[at]) for at in parts)
    )


def streams(purpose: str, seed: int, n_streams: int) -> list[np.random.Generator]:
    """Return independent random streams: what is drawn from one does not change another."""
    seed = check_count("seed", seed, minimum=0)
    sequence = np.random.SeedSequence([seed, *purpose.encode()])
    return [np.random.default_rng(child) for child in sequence.spawn(n_streams)]
