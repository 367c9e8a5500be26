"""`Family`: the interface of a parametric loss, its registry, and the functions formulas share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lodl._arrays import check_instance_of, check_number
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.oracle import Answers

Tensor: TypeAlias = Any
"""A NumPy array or a torch tensor: formulas use only what both have."""

Parameters: TypeAlias = Mapping[str, Tensor]
"""Named arrays `phi`, each of shape (n, *shape of the parameter): one row per instance."""

_REGISTERED: dict[str, type[Family]] = {}
_ROUNDING = 1e-9  # share of the largest size below which a size counts as 0


class Family(ABC):
    """A parametric loss of the error `d = y_hat - y` of a flattened prediction.

    A member is a small frozen dataclass of settings. The parameters `phi` are arguments, one row
    per instance, so that one formula serves fits (n = 1) and training (m = 1):

        d: (n, m, D)   phi[name]: (n, *parameter_shapes(D)[name])   value: (n, m)

    A formula is written once, for NumPy arrays and torch tensors: it uses operators, `clip`, `sum`,
    `@`, indexing, and `largest`, `log_sum_exp` and `softmax` of `lodl.losses._family`, and keeps
    the dtype of its arguments. The class name of a custom family must be new, because a loss file
    names its family; import its module first. `lodl.testing.check_family` checks the family.
    """

    is_convex: bool  #: Whether the loss is convex in the prediction for all parameters.
    #: Whether the loss is made of decisions, so that samples must have slopes. It then bounds or
    #: ranks regrets instead of repeating them.
    uses_slopes: bool = False
    #: Whether a loss made of decisions has no kinks, so that training can take larger steps.
    is_smooth: ClassVar[bool] = False
    #: Padding value of each parameter whose first axis counts what instances have different numbers
    #: of, such as decisions. `parameter_shapes` gives the largest length.
    padded: ClassVar[Mapping[str, float]] = {}
    #: Least weight of a coordinate as a share of the mean fitted weight, 0 for none. Fallback
    #: losses are weaker than fitted losses by this factor.
    min_weight: float = 0.0
    #: Names of the parameters that are never negative, which `LearnedLoss` checks.
    non_negative: ClassVar[tuple[str, ...]] = ()
    #: For a loss that is a sum, over parameters p of shape (D,) and coordinates i, of p_i times a
    #: function of d_i: the power of the error in that function, by parameter. Such losses can be
    #: pooled over instances. Empty for all others.
    degrees: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        check_number("min_weight", self.min_weight, at_least=0, at_most=1)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        known = _REGISTERED.get(cls.__name__, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidInputError(
                f"{known.__module__!r} already defines a family named {cls.__name__}, and loss "
                "files identify a family by its name: rename yours."
            )
        _REGISTERED[cls.__name__] = cls

    def __str__(self) -> str:
        """Return the expression that makes this family, without default values."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every family is a dataclass
            if field.default is MISSING or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    @abstractmethod
    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter of one instance with a label of `dim` numbers."""

    @abstractmethod
    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the loss of errors `d`, shape (n, m)."""

    @abstractmethod
    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the derivative of the loss by the prediction, shape (n, m, D)."""

    def value_and_gradient(self, phi: Parameters, d: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and its derivative. Override it if they have intermediate results."""
        return self.value(phi, d), self.gradient(phi, d)

    @abstractmethod
    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the diagonal of the second derivative, or a bound of it that suits boosting.

        Its shape is (n, m, D). At a jump, the sign of 0 counts as positive.
        """

    @abstractmethod
    def fit(self, answers: Answers) -> dict[str, Array]:
        """Return the parameters with which the loss repeats the regrets of one instance best.

        They are finite, have the shapes of `parameter_shapes(D)` (padded axes may be shorter), and
        depend on `answers` only: instances are fitted in any order, in any process.

        Args:
            answers: At least two points `answers.d`, shape (K, D), with their regrets
                `answers.regret`, shape (K,). All are finite, in any unit, and neither all points
                nor all regrets are zero. If `uses_slopes`, they have decisions and slopes.
        """

    def fit_many(self, instances: Sequence[Answers]) -> list[dict[str, Array]]:
        """Return the parameters of several instances. Override it if a batch is faster."""
        return [self.fit(answers) for answers in instances]

    @property
    def can_be_rounded(self) -> bool:
        """Whether quasi-Newton methods suit the loss. Decisions have too many kinks to round."""
        return self.is_convex and not self.uses_slopes

    def rounded(self, rounding: float) -> Family:
        """Return a family without kinks, for quasi-Newton methods. `rounding` is their width."""
        return self

    @abstractmethod
    def fallback(self, *, cost: float, scale: Array) -> dict[str, Array]:
        """Return parameters for which the loss is, at least nearly, a plain squared error.

            f(d) = cost * mean_i (d_i / scale_i)^2

        Used for instances that have nothing to fit. `scale` has shape (D,).
        """


def family_named(name: str) -> type[Family] | None:
    """Return the family class called `name`, or None if no imported module defines it."""
    return _REGISTERED.get(name)


def check_can_fit(family: Family, dim: int) -> None:
    """Check that `family` is a family and can be fitted to labels of `dim` numbers."""
    wanted = "a loss family such as `lodl.DirectedWeightedMSE()`"
    check_instance_of(Family, "family", family, wanted=wanted)
    family.parameter_shapes(dim)


def shapes_like(
    family: Family, shapes_of: Mapping[str, tuple[int, ...]], dim: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the parameters of one instance must have, padded axes all alike."""
    shapes = family.parameter_shapes(dim)
    actual = next((shapes_of[name] for name in family.padded if name in shapes_of), ())
    for name in family.padded:
        longest, *rest = shapes[name]
        shapes[name] = (min(max(1, actual[0]), longest) if actual else longest, *rest)
    return shapes


def stack_parameters(family: Family, rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Return the parameters of all instances, padded to the largest length in use."""
    phi: dict[str, Array] = {}
    for name in rows[0]:
        parts = [np.asarray(row[name], dtype=np.float64) for row in rows]
        if name in family.padded:
            shape = (len(rows), max(map(len, parts)), *parts[0].shape[1:])
            phi[name] = np.full(shape, family.padded[name])
            for row, part in zip(phi[name], parts, strict=True):
                row[: len(part)] = part
        else:
            phi[name] = np.ascontiguousarray(np.stack(parts))
    return phi


def mse_weights(cost: float | Array, scale: Array) -> Array:
    """Return the weights of `cost * mean_i (d_i / scale_i)^2`, in the shape of `scale`."""
    return np.asarray(cost / (scale.shape[-1] * np.square(scale)))


def error_scale(d: Array) -> Array:
    """Return the size of each coordinate's error. Unperturbed coordinates get the median size."""
    return with_typical(root_mean_square(d))


def root_mean_square(values: Array) -> Array:
    """Return the root mean square over the first axis."""
    return np.asarray(np.sqrt(np.einsum("k...,k...->...", values, values) / len(values)))


def with_typical(size: Array) -> Array:
    """Replace zeros, within rounding errors, by the median of the other sizes, or by 1."""
    moved = size > _ROUNDING * size.max(initial=0.0)
    if moved.all():  # a median would take longer than everything else
        return size
    return np.where(moved, size, np.median(size[moved]) if moved.any() else 1.0)


def largest(x: Tensor) -> Tensor:
    """Return the largest value on the last axis. Torch shares the gradient among ties."""
    return x.max(-1) if isinstance(x, np.ndarray) else x.amax(-1)


def log_sum_exp(x: Tensor) -> Tensor:
    """Return log sum_k exp(x_k), without overflow."""
    if not isinstance(x, np.ndarray):
        return x.logsumexp(-1)
    top = x.max(-1)
    return top + np.log(np.exp(x - top[..., np.newaxis]).sum(-1))


def softmax(x: Tensor) -> Tensor:
    """Return exp(x_k) / sum_j exp(x_j), without overflow."""
    if not isinstance(x, np.ndarray):
        return x.softmax(-1)
    powers = np.exp(x - x.max(-1)[..., np.newaxis])
    return powers / powers.sum(-1)[..., np.newaxis]
