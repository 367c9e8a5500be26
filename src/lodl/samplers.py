"""Samplers: points drawn around labels or predictions, reproducible and never stored."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_instance_of, check_labels, check_number, check_predictions
from lodl._typing import Array, Index
from lodl.errors import InvalidInputError

__all__ = [
    "AdjacentVertices",
    "AllPerturbed",
    "AtPredictions",
    "OnePerturbed",
    "Sampler",
    "Scale",
    "TwoPerturbed",
]

BLOCK_SIZE = 500  # points per random stream; another value would change what a seed stands for
_N_FOR_EACH = 10  # labels needed to estimate the deviation of each coordinate

Scale: TypeAlias = float | npt.ArrayLike | Literal["auto"]
"""A number, an array that broadcasts to the label, or "auto"."""

_Shape: TypeAlias = tuple[int, ...]
_Rng: TypeAlias = np.random.Generator


class Sampler(ABC):
    r"""Draws points around a centre, which is the label unless a sampler has other centres.

        y_hat = centre + scale * noise

    A block of points is a pure function of (seed, instance, block). A custom sampler implements
    `noise` and sets `scale`. One centred on predictions is a dataclass that has them as `y_hat`.

    Attributes:
        scale: Standard deviation of the noise: a number, an array that broadcasts to the label, or
            "auto": the standard deviation of each coordinate over the labels. If that is 0, or if
            there are fewer than 10 labels, the standard deviation of all coordinates together.
    """

    scale: Scale
    #: Whether one solver call answers all points of an instance: they are decisions next to one.
    shares_call: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _check_scale(self.scale))

    @abstractmethod
    def noise(self, rng: _Rng, n: int, label_shape: _Shape) -> Array:
        """Return a new array of noise of unit scale, shape (n, *label_shape)."""

    def centres(self, y: Array) -> Array:
        """Return the centre of each instance's points, in the shape of the labels `y`."""
        y_hat = getattr(self, "y_hat", None)
        return y if y_hat is None else check_predictions(y_hat, y)

    def take(self, instances: slice | Index) -> Self:
        """Return the sampler of some instances, so that a worker gets only the centres it needs."""
        sampler: Any = self
        y_hat = getattr(self, "y_hat", None)
        return self if y_hat is None else replace(sampler, y_hat=np.asarray(y_hat)[instances])

    def resolve_scale(self, y: Array) -> Array:
        """Return the scale as an array that broadcasts to the label."""
        if isinstance(_check_scale(self.scale), str):  # a custom sampler's is not checked yet
            return _auto_scale(y)
        scale = np.asarray(self.scale, dtype=np.float64)
        try:
            np.broadcast_to(scale, y.shape[1:])
        except ValueError as error:
            wanted = f"a number or broadcast to the label's shape {y.shape[1:]}, got shape"
            raise InvalidInputError(f"`scale` must be {wanted} {scale.shape}.") from error
        return scale

    def settings(self) -> dict[str, Any]:
        """Return what the points depend on besides label, centre, scale, seed and key.

        Answers are stored under it. By default it is all attributes but `scale` and `y_hat`.
        """
        return {name: value for name, value in vars(self).items() if name not in ("scale", "y_hat")}

    def exact(self, y: Array, centres: Array) -> Array:
        """Return the first points of each instance if they have no noise, shape (n, k, ...)."""
        return centres[:, np.newaxis][:, :0]

    def place(self, noise: Array, y: Array, centre: Array, block: int) -> Array:
        """Return the points of a block, given scaled noise: by default, their sum with `centre`."""
        noise += centre
        return noise

    def draw(
        self, y: Array, centre: Array, scale: Array, *, seed: int, key: int, block: int, n: int
    ) -> Array:
        """Return the first `n` points of a block of 500, drawn with the random stream `key`."""
        noise = self._unit_noise(seed, key, block, n, centre.shape)
        noise *= scale
        points = np.asarray(self.place(noise, y, centre, block), dtype=np.float64)
        return self._checked(points, "place", noise.shape)

    def has_stable_prefix(self, label_shape: _Shape) -> bool:
        """Return whether the first rows of `noise` are the same however many are drawn."""
        few, more = (self._unit_noise(0, 0, 0, n, label_shape) for n in (2, 5))
        return np.array_equal(few, more[:2])

    def _unit_noise(self, seed: int, key: int, block: int, n: int, label_shape: _Shape) -> Array:
        rng = np.random.Generator(np.random.SFC64(_stream(seed, key, block)))  # the fastest
        noise = np.asarray(self.noise(rng, n, label_shape), dtype=np.float64)
        return self._checked(noise, "noise", (n, *label_shape))

    def _checked(self, array: Array, method: str, shape: _Shape) -> Array:
        if array.shape != shape:
            name = f"`{method}` of {type(self).__name__}"
            raise InvalidInputError(f"{name} must return shape {shape}, got {array.shape}.")
        return array


@dataclass(frozen=True, eq=False)
class AllPerturbed(Sampler):
    r"""Gaussian noise on every coordinate, the default.

        y_hat = y + scale * N(0, I)

    Example:
        >>> noise = lodl.AllPerturbed().noise(np.random.default_rng(0), 4, label_shape=(3,))
        >>> (noise != 0).sum(axis=1)
        array([3, 3, 3, 3])
    """

    scale: Scale = "auto"

    def noise(self, rng: _Rng, n: int, label_shape: _Shape) -> Array:
        return rng.standard_normal((n, *label_shape))


@dataclass(frozen=True, eq=False)
class OnePerturbed(Sampler):
    r"""Gaussian noise on one coordinate, chosen uniformly for each point.

        y_hat = y + scale * e_i * N(0, 1)

    Use it if you have few samples and the family treats coordinates separately.

    Example:
        >>> noise = lodl.OnePerturbed().noise(np.random.default_rng(0), 4, label_shape=(3,))
        >>> (noise != 0).sum(axis=1)
        array([1, 1, 1, 1])
    """

    scale: Scale = "auto"

    def noise(self, rng: _Rng, n: int, label_shape: _Shape) -> Array:
        first = rng.integers(math.prod(label_shape), size=(BLOCK_SIZE, 1))  # whatever n is
        return _noise_at(first[:n], rng, label_shape)


@dataclass(frozen=True, eq=False)
class TwoPerturbed(Sampler):
    r"""Gaussian noise on two distinct coordinates, chosen uniformly for each point.

        y_hat = y + scale * (e_i * N(0, 1) + e_j * N(0, 1)),   i != j

    A compromise between the other two.

    Example:
        >>> noise = lodl.TwoPerturbed().noise(np.random.default_rng(0), 4, label_shape=(3,))
        >>> (noise != 0).sum(axis=1)
        array([2, 2, 2, 2])
    """

    scale: Scale = "auto"

    def noise(self, rng: _Rng, n: int, label_shape: _Shape) -> Array:
        dim = math.prod(label_shape)
        if dim < 2:
            needs = f"labels of at least 2 numbers, got shape {label_shape}"
            raise InvalidInputError(f"`TwoPerturbed` needs {needs}. Use `AllPerturbed`.")
        first = rng.integers(dim, size=BLOCK_SIZE)
        second = (first + rng.integers(1, dim, size=BLOCK_SIZE)) % dim  # not the first
        return _noise_at(np.stack([first, second], axis=1)[:n], rng, label_shape)


@dataclass(frozen=True, eq=False)
class AtPredictions(Sampler):
    r"""The prediction itself, a point beyond it, then Gaussian noise around the prediction.

        point 0:   y_hat
        point 1:   (margin * y_hat - y) / (margin - 1),   which is 2 y_hat - y if the margin is 2
        others:    y_hat + scale * N(0, I)

    The points of a round (see `lodl.learning.learn_in_rounds`). Point 0 has the model's own regret,
    and at point 1 hinges are most violated. With `n_exact=0` all points are noisy: the paper's
    empirical neighbourhood. Combine it with samples around the labels (`samples.union(...)`): alone
    it shows regret families one side of the label only.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[2.0, 1.5]])
        >>> oracle = lodl.Oracle(lodl.domains.TopK(1))
        >>> samples = oracle.sample(y, lodl.AtPredictions(y_hat, scale=0.1), n_samples=2)
        >>> samples[0].d  # the errors of the prediction and of the point beyond it
        array([[-1. ,  0.5],
               [-2. ,  1. ]])
    """

    y_hat: npt.ArrayLike  #: Predictions in the labels' shape, one per instance.
    scale: Scale = "auto"  #: Standard deviation of the noise (see `Sampler`).
    n_exact: int = 2  #: How many of the first two points have no noise: 0, 1 or 2.
    margin: float = 2.0  #: The margin of the family, above 1. Use 2 for families without a margin.

    def __post_init__(self) -> None:
        super().__post_init__()
        y_hat = check_labels(self.y_hat, "y_hat").copy()
        y_hat.flags.writeable = False
        object.__setattr__(self, "y_hat", y_hat)
        if self.n_exact not in (0, 1, 2):
            raise InvalidInputError(f"`n_exact` must be 0, 1 or 2, got {self.n_exact!r}.")
        check_number("margin", self.margin, above=1)

    noise = AllPerturbed.noise

    def exact(self, y: Array, centres: Array) -> Array:
        beyond = (self.margin * centres - y) / (self.margin - 1)
        return np.stack([centres, beyond], axis=1)[:, : self.n_exact]

    def place(self, noise: Array, y: Array, centre: Array, block: int) -> Array:
        points = super().place(noise, y, centre, block)
        if block == 0:
            n = min(self.n_exact, len(points))
            points[:n] = self.exact(y[np.newaxis], centre[np.newaxis])[0, :n]
        return points


@dataclass(frozen=True, eq=False)
class AdjacentVertices(Sampler):
    r"""Decisions next to the best one for the label or a prediction, from a single solver call.

    For problems with `neighbours`, such as a linear program: its optimal basis gives the vertices
    next to the optimal one without a further solve. With `n_samples` points an instance has its
    nearest decisions, and its own repeated if there are fewer than `n_samples`. All points are at
    the label, so regret families learn nothing from them. With predictions the points are there,
    and point 0 is the prediction's own decision.

    Example:
        >>> program = lodl.problems.highs.LinearProgram([[1, 1, 1]], "min", row_lower=1, upper=1)
        >>> oracle = lodl.Oracle(program)
        >>> samples = oracle.sample(np.array([[3.0, 1.0, 2.0]]), lodl.AdjacentVertices(), 3)
        >>> samples[0].regret, oracle.n_calls  # the third item, the first, its own
        (array([1., 2., 0.]), 1)
    """

    y_hat: npt.ArrayLike | None = None  #: Predictions in the labels' shape. Defaults to the labels.
    scale = 1.0  # the points have no noise
    shares_call = True

    def noise(self, rng: _Rng, n: int, label_shape: _Shape) -> Array:
        return np.zeros((n, *label_shape))

    def exact(self, y: Array, centres: Array) -> Array:
        return np.broadcast_to(centres[:, np.newaxis], (len(y), BLOCK_SIZE, *y.shape[1:]))


def _stream(seed: int, key: int, block: int) -> np.random.SeedSequence:
    """Return `SeedSequence(seed, spawn_key=(key, block))`, in a third of the time."""
    # NumPy's layout of the words: the seed's, padded to four, then those of the spawn key.
    n_words = max(-(-int(key).bit_length() // 32), 1)
    words = int(seed).to_bytes(16, "little") + int(key).to_bytes(4 * n_words, "little")
    words += block.to_bytes(4, "little")
    return np.random.SeedSequence(np.frombuffer(words, dtype="<u4"))


def check_sampler(sampler: object) -> None:
    """Check that an argument is a sampler, not its class."""
    check_instance_of(Sampler, "sampler", sampler, wanted="a sampler such as `AllPerturbed()`")


def label_scale(y: Array) -> Array:
    """Return the standard deviation of each coordinate, in the label's shape; nowhere zero."""
    scale = _auto_scale(y) if np.std(y) > 0 else np.abs(y).max() or 1.0
    return np.broadcast_to(scale, y.shape[1:]).copy()


def _auto_scale(y: Array) -> Array:
    """Return the standard deviation of each coordinate, because units and sizes may differ."""
    together = np.std(y)
    if together == 0:
        raise InvalidInputError('All labels are equal, so `scale="auto"` is 0. Give a number.')
    if len(y) < _N_FOR_EACH:
        return np.asarray(together)
    each = np.std(y, axis=0)
    return np.where(each > 0, each, together)


def _check_scale(scale: Scale) -> float | Array | Literal["auto"]:
    if isinstance(scale, str) and scale == "auto":
        return "auto"
    try:
        array = np.array({} if isinstance(scale, str) else scale, dtype=np.float64)
    except (TypeError, ValueError) as error:
        wanted = 'a number, an array or "auto"'
        raise InvalidInputError(f"`scale` must be {wanted}, got {scale!r}.") from error
    if not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any():
        wanted = "finite, nowhere negative and somewhere positive"
        raise InvalidInputError(f"`scale` must be {wanted}, got {scale!r}.")
    array.flags.writeable = False
    return float(array) if array.ndim == 0 else array


def _noise_at(coordinates: npt.NDArray[np.int64], rng: _Rng, label_shape: _Shape) -> Array:
    """Return noise at the given coordinates of each point, zero elsewhere."""
    noise = np.zeros((len(coordinates), math.prod(label_shape)))
    np.put_along_axis(noise, coordinates, rng.standard_normal(coordinates.shape), axis=1)
    return noise.reshape(len(coordinates), *label_shape)
