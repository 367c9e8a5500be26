"""The interface of a parametric loss."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

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
    operators, `clip`, `sum`, `@` and indexing only.

    Attributes:
        is_convex: Whether the loss is convex in the prediction whatever its parameters.
    """

    is_convex: bool

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
        """Returns the diagonal of the second derivative by the prediction, shape (n, m, D)."""
