"""Domains: a problem and data in three splits; checks and random data for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import RandomState

from lodl._arrays import check_count, check_labels, check_number
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.problems import Problem

Sizes = tuple[int, int, int]  # number of training, validation and test instances


@dataclass(frozen=True, eq=False)
class Split:
    """Features, labels and contexts of the instances of one split."""

    x: Array  #: Features, shape (n_instances, n_features) or (n_instances, n_items, n_features).
    y: Array  #: Labels, shape (n_instances, *label_shape).
    context: Context = None  #: One entry per instance, or None if the problem has no context.


@dataclass(frozen=True, eq=False)
class Splits:
    """Disjoint splits of a domain's instances for training, validation and test."""

    train: Split
    validation: Split
    test: Split

    @property
    def train_and_validation(self) -> Split:
        """The instances that losses are learned for: training, followed by validation."""
        parts = (self.train, self.validation)
        contexts = [part.context for part in parts if part.context is not None]
        x = np.concatenate([part.x for part in parts])
        y = np.concatenate([part.y for part in parts])
        return Split(x, y, np.concatenate(contexts) if contexts else None)


@dataclass(frozen=True, eq=False)
class Domain:
    """A problem with data."""

    problem: Problem
    splits: Splits

    @classmethod
    def in_order(
        cls, problem: Problem, sizes: Sizes, x: Array, y: Array, context: Any = None
    ) -> "Domain":
        """Return a domain with the first instances for training, then validation, then test."""
        ends = np.cumsum(sizes).tolist()
        parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        splits = (Split(x[at], y[at], None if context is None else context[at]) for at in parts)
        return cls(problem, Splits(*splits))


def check_sizes(sizes: Sequence[int]) -> Sizes:
    """Return `sizes` as three positive whole numbers."""
    if len(sizes) != 3:
        parts = "training, validation and test instances"
        raise InvalidInputError(f"`sizes` must be three numbers of {parts}, got {sizes}.")
    train, validation, test = (check_count("sizes", size) for size in sizes)
    return train, validation, test


def check_vectors(y_hats: Array, size: int, numbers: str) -> Array:
    """Return predictions of shape (k, size); `numbers` says what their numbers are."""
    y_hats = check_labels(y_hats, "y_hats")
    if y_hats.shape[1:] != (size,):
        wanted = f"a vector of {size} {numbers}"
        raise InvalidInputError(f"A prediction must be {wanted}, got shape {y_hats.shape[1:]}.")
    return y_hats


def in_blocks(
    decide: Callable[[Array], npt.NDArray[Any]], y_hats: Array, n_rows: int
) -> npt.NDArray[Any]:
    """Return the decisions for predictions, taken `n_rows` at a time to bound the memory."""
    starts = range(0, max(1, len(y_hats)), max(1, n_rows))
    return np.concatenate([decide(y_hats[start : start + starts.step]) for start in starts])


def legacy_rng(seed: int) -> RandomState:
    """Return NumPy's legacy generator, which PyEPO uses."""
    return RandomState(check_count("seed", seed, minimum=0))


def polynomials(
    rng: RandomState, shape: tuple[int, int, int], *, degree: int, noise: float, scale: float = 1.0
) -> tuple[Array, Array]:
    """Draw features (n, p), and labels (n, n_outputs) that are polynomials of them.

        x ~ N(0, I_p),   B_jk ~ Bernoulli(1/2),   e_j ~ U[1 - noise, 1 + noise]
        y_j = scale * ((B_j x / sqrt(p) + 3)^degree + 1) / 3.5^degree * e_j

    This is the generator of Elmachtoub and Grigas (Smart "predict, then optimize", 2022), drawn in
    the order of PyEPO (Tang and Khalil, 2024). `shape` is (n, p, n_outputs).
    """
    n, n_features, n_outputs = shape
    check_count("n_features", n_features)
    check_count("degree", degree)
    check_number("noise", noise, at_least=0, at_most=1)
    matrix = rng.binomial(1, 0.5, size=(n_outputs, n_features)).astype(np.float64)
    x = rng.normal(size=(n, n_features))
    y = scale * ((x @ matrix.T / np.sqrt(n_features) + 3) ** degree + 1) / 3.5**degree
    y *= rng.uniform(1 - noise, 1 + noise, size=y.shape)
    return x, y
