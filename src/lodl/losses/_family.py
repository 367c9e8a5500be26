"""The interface of a parametric loss."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from lodl._typing import Array
from lodl._validation import check_count
from lodl.errors import InvalidInputError

Tensor: TypeAlias = Any
"""A NumPy array or a torch tensor: a formula uses only what both understand."""

Parameters: TypeAlias = Mapping[str, Tensor]
"""Named arrays `phi`, each of shape (n, *shape of the parameter): one row per instance."""


class Family(ABC):
    """A parametric loss of the error `d = y_hat - y` of a flattened prediction.

    A member is a small immutable record of settings. The parameters `phi` are handed in, one row
    per instance, so the same formula serves one instance with many candidates (fitting, n = 1) and
    many instances with one prediction each (training, m = 1):

        d: (n, m, D)   phi[name]: (n, *parameter_shapes(D)[name])   value: (n, m)

    Formulas are written once and run on NumPy arrays and torch tensors alike, so they use
    operators, `clip`, `sum`, `@` and indexing only. They keep the dtype they are given.

    A family of your own is fitted by a function that you register (`lodl.fitting.fit_instance`)
    and trained on like any other; only those of this package can be saved to a file.

    Attributes:
        is_convex: Whether the loss is convex in the prediction whatever its parameters.
        is_bound: Whether the loss bounds the regret instead of repeating it.
        min_weight: The least weight of a coordinate as a share of the mean fitted one, 0 for none.
            A loss that stands in where nothing was fitted is weaker by this share.
    """

    is_convex: bool
    is_bound: bool = False
    min_weight: float = 0.0

    @abstractmethod
    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter of one instance with a label of `dim` numbers."""

    @abstractmethod
    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        """Returns the loss of errors `d`, shape (n, m)."""

    @abstractmethod
    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        """Returns the derivative of the loss by the prediction, shape (n, m, D)."""

    @abstractmethod
    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        """Returns the diagonal of the second derivative by the prediction, shape (n, m, D).

        Where it jumps, because a sign changes, the sign of 0 counts as positive.
        """

    @abstractmethod
    def squared_error(self, *, cost: float, scale: Array) -> dict[str, Array]:
        """Returns parameters of one instance for which the loss is a plain squared error.

            f(d) = cost * mean_i (d_i / scale_i)^2

        They stand in where an instance has nothing to fit. A family that has no squared error
        among its members comes near it for errors of size `scale`, an array of shape (D,).
        """


def squared_error_weights(cost: float, scale: Array) -> Array:
    """Returns the weights of `cost * mean_i (d_i / scale_i)^2`, shape (D,)."""
    return cost / (len(scale) * np.square(scale))


def check_min_weight(min_weight: float) -> None:
    """Demands a floor between nothing and the mean weight."""
    if not 0 <= min_weight <= 1:
        raise InvalidInputError(
            f"`min_weight` must be a share of the mean weight, between 0 and 1, got {min_weight!r}."
        )


def check_rank(rank: int | None) -> None:
    """Demands a rank of at least 1, or None for full rank."""
    if rank is not None:
        check_count("rank", rank)


def resolve_rank(rank: int | None, dim: int) -> int:
    """Returns the number of columns of a factor for labels of `dim` numbers."""
    if rank is not None and rank > dim:
        raise InvalidInputError(
            f"`rank` must be at most the number of values in a label ({dim}), got {rank}. "
            "Use rank=None for full rank."
        )
    return dim if rank is None else rank
