"""The three samplers of the paper (section 4.3): noise on all, one or two coordinates."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.samplers._sampler import BLOCK_SIZE, Sampler, Scale


@dataclass(frozen=True, eq=False)
class AllPerturbed(Sampler):
    r"""Gaussian noise on every coordinate.

        y_hat = y + scale * N(0, I)

    The default. Its samples show how errors in several coordinates add up or cancel.

    Example:
        >>> y = np.array([[3.0, 1.0, 0.0]])
        >>> oracle = lodl.Oracle(lodl.domains.TopK(1))
        >>> samples = oracle.sample(y, lodl.AllPerturbed(scale=0.5), n_samples=4)
        >>> samples[0].d.shape  # four errors, wrong in all three coordinates
        (4, 3)
    """

    scale: Scale = "auto"

    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        return rng.standard_normal((n, *label_shape))


@dataclass(frozen=True, eq=False)
class OnePerturbed(Sampler):
    r"""Gaussian noise on one coordinate, chosen uniformly for each point.

        y_hat = y + scale * e_i * N(0, 1)

    Its samples show each coordinate by itself. Use it if you have few samples and the family treats
    coordinates separately.

    Example:
        >>> y = np.array([[3.0, 1.0, 0.0]])
        >>> oracle = lodl.Oracle(lodl.domains.TopK(1))
        >>> samples = oracle.sample(y, lodl.OnePerturbed(scale=0.5), n_samples=4)
        >>> (samples[0].d != 0).sum(axis=1)
        array([1, 1, 1, 1])
    """

    scale: Scale = "auto"

    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        first = rng.integers(math.prod(label_shape), size=BLOCK_SIZE)[:n]  # whatever n is
        return _noise_at(first[:, np.newaxis], rng, label_shape)


@dataclass(frozen=True, eq=False)
class TwoPerturbed(Sampler):
    r"""Gaussian noise on two distinct coordinates, chosen uniformly for each point.

        y_hat = y + scale * (e_i * N(0, 1) + e_j * N(0, 1)),   i != j

    A compromise between the two: its samples show how pairs of coordinates interact.

    Example:
        >>> y = np.array([[3.0, 1.0, 0.0]])
        >>> oracle = lodl.Oracle(lodl.domains.TopK(1))
        >>> samples = oracle.sample(y, lodl.TwoPerturbed(scale=0.5), n_samples=4)
        >>> (samples[0].d != 0).sum(axis=1)
        array([2, 2, 2, 2])
    """

    scale: Scale = "auto"

    def noise(self, rng: np.random.Generator, n: int, label_shape: tuple[int, ...]) -> Array:
        dim = math.prod(label_shape)
        if dim < 2:
            raise InvalidInputError(
                f"`TwoPerturbed` needs labels of at least 2 numbers, got shape {label_shape}. "
                "Use `AllPerturbed`."
            )
        first = rng.integers(dim, size=BLOCK_SIZE)
        second = (first + rng.integers(1, dim, size=BLOCK_SIZE)) % dim  # not the first
        return _noise_at(np.stack([first, second], axis=1)[:n], rng, label_shape)


def _noise_at(
    coordinates: npt.NDArray[np.int64], rng: np.random.Generator, label_shape: tuple[int, ...]
) -> Array:
    """Return noise at the given coordinates of each point, zero elsewhere."""
    noise = np.zeros((len(coordinates), math.prod(label_shape)))
    np.put_along_axis(noise, coordinates, rng.standard_normal(coordinates.shape), axis=1)
    return noise.reshape(len(coordinates), *label_shape)
