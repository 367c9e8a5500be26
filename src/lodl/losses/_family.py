"""The interface of a parametric loss."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_instance_of
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.oracle import Answers

Tensor: TypeAlias = Any
"""A NumPy array or a torch tensor: a formula uses only what both understand."""

Parameters: TypeAlias = Mapping[str, Tensor]
"""Named arrays `phi`, each of shape (n, *shape of the parameter): one row per instance."""

_REGISTERED: dict[str, type["Family"]] = {}


class Family(ABC):
    """A parametric loss of the error `d = y_hat - y` of a flattened prediction.

    A member is a small frozen dataclass of settings. The parameters `phi` are handed in, one row
    per instance, so the same formula serves one instance with many candidates (fitting, n = 1) and
    many instances with one prediction each (training, m = 1):

        d: (n, m, D)   phi[name]: (n, *parameter_shapes(D)[name])   value: (n, m)

    Formulas are written once and run on NumPy arrays and torch tensors alike, so they use
    operators, `clip`, `sum`, `@` and indexing only, and the functions of `lodl.losses._dual`. They
    keep the dtype they are given.

    A family of your own is one class like those of this package, and gets all that they have: fits
    in worker processes, held-out errors, training, files. Its class name must be new, because a
    loss file names its family; whoever loads the file imports your module first.
    `lodl.testing.check_family` checks it.

    Attributes:
        is_convex: Whether the loss is convex in the prediction whatever its parameters.
        uses_slopes: Whether the loss is made of decisions, so that samples must have slopes. Such
            a loss bounds or ranks regrets instead of repeating them, and nothing is held out of it.
        padded: Names of the parameters whose first axis counts decisions, or whatever an instance
            has more or less of, with the value of what is missing. `parameter_shapes` gives the
            largest number; in a learned loss it is the largest in use.
        min_weight: The least weight of a coordinate as a share of the mean fitted one, 0 for none.
            A loss that stands in where nothing was fitted is weaker by this share.
        non_negative: Names of the parameters that are never negative. A loss that breaks this
            promise is refused, whether it comes from a fit or from a file.
        degrees: For a loss that is a sum, over parameters p of shape (D,) and coordinates i, of
            p_i times a function of d_i: the power of the error in that function, by parameter.
            Such losses can be pooled over instances. Empty for all others.
    """

    is_convex: bool
    uses_slopes: bool = False
    padded: ClassVar[Mapping[str, float]] = {}
    min_weight: float = 0.0
    non_negative: ClassVar[tuple[str, ...]] = ()
    degrees: ClassVar[Mapping[str, int]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        known = _REGISTERED.get(cls.__name__, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidInputError(
                f"There is a family named {cls.__name__} already, in {known.__module__!r}, and a "
                "loss file could not tell the two apart: give yours another name."
            )
        _REGISTERED[cls.__name__] = cls

    @abstractmethod
    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter of one instance with a label of `dim` numbers."""

    @abstractmethod
    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the loss of errors `d`, shape (n, m)."""

    @abstractmethod
    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the derivative of the loss by the prediction, shape (n, m, D)."""

    @abstractmethod
    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the diagonal of the second derivative by the prediction, shape (n, m, D).

        Where it jumps because a sign changes, the sign of 0 counts as positive. A family whose
        second derivative is of no use to boosting gives a bound of it instead.
        """

    @abstractmethod
    def fit(self, answers: Answers) -> dict[str, Array]:
        """Return the parameters of one instance that repeat its regrets best.

        Args:
            answers: Candidates and regrets, all finite, not all regrets zero, in any unit.

        Returns:
            Finite arrays of the shapes `parameter_shapes(D)`.
        """

    def fit_many(self, instances: Sequence[Answers]) -> list[dict[str, Array]]:
        """Return the parameters of several instances; override it where a batch is faster."""
        return [self.fit(answers) for answers in instances]

    @abstractmethod
    def stand_in(self, *, cost: float, scale: Array) -> dict[str, Array]:
        """Return parameters of one instance for which the loss is a plain squared error.

            f(d) = cost * mean_i (d_i / scale_i)^2

        They stand in where an instance has nothing to fit. A family that has no squared error
        among its members comes near it for errors of size `scale`, an array of shape (D,).
        """


def family_named(name: str) -> type[Family] | None:
    """Return the family class of that name, None if no imported module defines one."""
    return _REGISTERED.get(name)


def check_can_fit(family: Family, dim: int) -> None:
    """Check, before anything is spent, that a family can be fitted to labels of `dim` numbers."""
    wanted = "a loss family such as `lodl.DirectedWeightedMSE()`"
    check_instance_of(Family, "family", family, wanted=wanted)
    family.parameter_shapes(dim)


def shapes_like(family: Family, phi: Mapping[str, Any], dim: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes that parameters `phi` of one instance should have.

    Padded axes may have any length from 1 to the largest; that of the first of them counts for all.
    """
    shapes = family.parameter_shapes(dim)
    found = next((np.shape(phi[name]) for name in family.padded if name in phi), ())
    for name in family.padded:
        longest, *rest = shapes[name]
        shapes[name] = (min(max(1, found[0]), longest) if found else longest, *rest)
    return shapes


def pad_rows(parts: Sequence[npt.NDArray[Any]], padding: float) -> npt.NDArray[Any]:
    """Return arrays (n, M, ...) one behind the other, padded where M is less than elsewhere."""
    n_rows, length = sum(map(len, parts)), max(part.shape[1] for part in parts)
    rows = np.full((n_rows, length, *parts[0].shape[2:]), padding, parts[0].dtype)
    end = 0
    for part in parts:
        start, end = end, end + len(part)
        rows[start:end, : part.shape[1]] = part
    return rows


def squared_error_weights(cost: float, scale: Array) -> Array:
    """Return the weights of `cost * mean_i (d_i / scale_i)^2`, shape (D,)."""
    return cost / (len(scale) * np.square(scale))


def check_min_weight(min_weight: float) -> None:
    """Check that the floor lies between nothing and the mean weight."""
    if not 0 <= min_weight <= 1:
        raise InvalidInputError(
            f"`min_weight` must be a share of the mean weight, between 0 and 1, got {min_weight!r}."
        )


def check_rank(rank: int | None) -> None:
    """Check that a rank is at least 1, or None for full rank."""
    if rank is not None:
        check_count("rank", rank)


def resolve_rank(rank: int | None, dim: int) -> int:
    """Return the number of columns of a factor for labels of `dim` numbers."""
    if rank is not None and rank > dim:
        raise InvalidInputError(
            f"`rank` must be at most the number of values in a label ({dim}), got {rank}. "
            "Use rank=None for full rank."
        )
    return dim if rank is None else rank
