"""The `Sampler` interface: points drawn around labels, reproducible and never stored."""

from abc import ABC, abstractmethod
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_instance_of
from lodl._typing import Array
from lodl.errors import InvalidInputError

BLOCK_SIZE = 500
"""Points per random stream. Another value would change the points that a seed stands for."""

_N_FOR_EACH = 10  # labels needed to estimate the deviation of each coordinate

Scale: TypeAlias = float | npt.ArrayLike | Literal["auto"]
"""A number, an array that broadcasts to the label, or "auto"."""


class Sampler(ABC):
    r"""Draws points around a centre, which is the label unless a sampler has other centres.

        y_hat = centre + scale * noise

    A block of points is a pure function of (seed, instance, block). It is never stored, and does
    not depend on the worker that draws it or on earlier draws. A custom sampler implements `noise`
    and sets `scale`. If its points are not centred on the labels, it also overrides `centres` and
    `take`, and `settings` if its predictions are not called `y_hat`.

    Attributes:
        scale: Standard deviation of the noise: a number, an array that broadcasts to the label, or
            "auto": the standard deviation of each coordinate over the labels. If that is 0, or if
            there are fewer than 10 labels, the standard deviation of all coordinates together.
    """

    scale: Scale

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _check_scale(self.scale))

    @abstractmethod
    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        """Return a new array of noise of unit scale, shape (n, *label_shape)."""

    def centres(self, y: Array) -> Array:
        """Return the centre of each instance's points, in the shape of the labels `y`."""
        return y

    def take(self, instances: slice | npt.NDArray[np.intp]) -> Self:
        """Return the sampler of some instances, so that a worker gets only the centres it needs."""
        return self

    def resolve_scale(self, y: Array) -> Array:
        """Return the scale as an array that broadcasts to the label."""
        if isinstance(_check_scale(self.scale), str):  # a custom sampler's is not checked yet
            return _auto_scale(y)
        scale = np.asarray(self.scale, dtype=np.float64)
        try:
            np.broadcast_to(scale, y.shape[1:])
        except ValueError as error:
            raise InvalidInputError(
                f"`scale` must be a number or broadcast to the label's shape {y.shape[1:]}, "
                f"got shape {scale.shape}."
            ) from error
        return scale

    def settings(self) -> dict[str, Any]:
        """Return what the points depend on besides label, centre, scale, seed and key.

        Answers are stored under it. By default it is all attributes but `scale` and `y_hat`, the
        predictions, whose rows are the centres. Predictions under another name must be left out,
        too, or a part of the instances does not find its answers.
        """
        return {name: value for name, value in vars(self).items() if name not in ("scale", "y_hat")}

    def place(self, noise: Array, y: Array, centre: Array, block: int) -> Array:
        """Return the points of a block, given scaled noise: by default, their sum with `centre`."""
        noise += centre
        return noise

    def draw(
        self, y: Array, centre: Array, scale: Array, *, seed: int, key: int, block: int, n: int
    ) -> Array:
        """Return the first `n` points of a block, shape (n, *label_shape).

        Args:
            y: The instance's label.
            centre: The instance's row of `centres`.
            scale: What `resolve_scale` returned for all labels.
            seed: Random seed, from 0 to 2^64 - 1.
            key: Number of the instance's random stream.
            block: Number of the block; block b holds points b * BLOCK_SIZE and following.
            n: Number of points, at most BLOCK_SIZE.
        """
        noise = self._unit_noise(seed, key, block, n, centre.shape)
        noise *= scale
        points = np.asarray(self.place(noise, y, centre, block), dtype=np.float64)
        if points.shape != noise.shape:
            raise InvalidInputError(
                f"`place` of {type(self).__name__} must keep the shape {noise.shape}, "
                f"got {points.shape}."
            )
        return points

    def has_stable_prefix(self, label_shape: tuple[int, ...]) -> bool:
        """Return whether the first rows of `noise` are the same however many are drawn."""
        few, more = (self._unit_noise(0, 0, 0, n, label_shape) for n in (2, 5))
        return np.array_equal(few, more[:2])

    def _unit_noise(
        self, seed: int, key: int, block: int, n: int, label_shape: tuple[int, ...]
    ) -> Array:
        rng = np.random.Generator(np.random.SFC64(_stream(seed, key, block)))  # the fastest
        noise = np.asarray(self.noise(rng, n, label_shape), dtype=np.float64)
        if noise.shape != (n, *label_shape):
            raise InvalidInputError(
                f"`noise` of {type(self).__name__} must return shape {(n, *label_shape)}, "
                f"got {noise.shape}."
            )
        return noise


def _stream(seed: int, key: int, block: int) -> np.random.SeedSequence:
    """Return `SeedSequence(seed, spawn_key=(key, block))`, in a third of the time.

    NumPy's layout of the words: the seed's, padded to four, then those of the spawn key.
    """
    n_words = max(-(-int(key).bit_length() // 32), 1)
    words = int(seed).to_bytes(16, "little") + int(key).to_bytes(4 * n_words, "little")
    words += block.to_bytes(4, "little")
    return np.random.SeedSequence(np.frombuffer(words, dtype="<u4"))


def check_sampler(sampler: object) -> None:
    """Check that an argument is a sampler, not its class."""
    check_instance_of(Sampler, "sampler", sampler, wanted="a sampler such as `AllPerturbed()`")


def label_scale(y: Array) -> Array:
    """Return the standard deviation of each coordinate, in the label's shape; nowhere zero."""
    together = np.std(y) or np.abs(y).max() or 1.0
    return np.broadcast_to(_auto_scale(y) if np.std(y) > 0 else together, y.shape[1:]).copy()


def _auto_scale(y: Array) -> Array:
    """Return the standard deviation of each coordinate, because units and sizes may differ."""
    together = np.std(y)
    if together == 0:
        raise InvalidInputError(
            '`scale="auto"` is the standard deviation of the labels, which is 0 here. '
            "Give a number instead."
        )
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
        raise InvalidInputError(
            f'`scale` must be a number, an array or "auto", got {scale!r}.'
        ) from error
    if not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any():
        raise InvalidInputError(
            f"`scale` must be finite, nowhere negative and somewhere positive, got {scale!r}."
        )
    array.flags.writeable = False
    return float(array) if array.ndim == 0 else array
