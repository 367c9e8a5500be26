"""Sources of click rates: the interface, and a generator."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.errors import InvalidInputError

MAX_RATE = 0.2
"""The largest click rate: where there is a link at all, the rate is uniform on [0, 0.2]."""

SITE_SPREAD = 1.25
USER_SPREAD = 1.1
"""Standard deviations of the logarithms of popularity, fitted to the bid graph's statistics."""


@dataclass(frozen=True, eq=False)
class Crop:
    """The part that a split takes of its matrices: the same rows and columns of each.

    Attributes:
        n_instances: Number of matrices.
        sites: Rows to take, each once.
        users: Columns to take, each once.
    """

    n_instances: int
    sites: npt.NDArray[np.intp]
    users: npt.NDArray[np.intp]


class ClickRates(ABC):
    """A supply of matrices of click rates (websites x users), one for each instance."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Websites and users of a matrix."""

    @abstractmethod
    def draw(self, crops: Sequence[Crop], rng: np.random.Generator) -> list[Array]:
        """Return the labels of each crop, (n_instances, sites, users); crops share no matrix."""


@dataclass(frozen=True)
class GeneratedClickRates(ClickRates):
    """Random links between websites and users of log-normal popularity.

        a_i = exp(1.25 n_i),   b_j = exp(1.1 m_j),   P(link ij) = 1 - exp(-c a_i b_j)

    with standard normal n and m, and c such that the mean probability of a matrix is `link_rate`.
    A link has a click rate uniform on [0, 0.2]; without a link the rate is 0. The constants are
    fitted to the statistics of the bid graph behind the paper's data, which is not public.

    Attributes:
        n_sites: Rows of a matrix.
        n_users: Columns of a matrix.
        link_rate: Mean probability of a link.
    """

    n_sites: int = 100
    n_users: int = 500
    link_rate: float = 0.0397

    def __post_init__(self) -> None:
        check_count("n_sites", self.n_sites)
        check_count("n_users", self.n_users)
        if not 0 < self.link_rate < 1:
            raise InvalidInputError(
                f"`link_rate` must be greater than 0 and less than 1, got {self.link_rate!r}."
            )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_sites, self.n_users

    def draw(self, crops: Sequence[Crop], rng: np.random.Generator) -> list[Array]:
        return [
            self._draw(crop, stream)
            for crop, stream in zip(crops, rng.spawn(len(crops)), strict=True)
        ]

    def _draw(self, crop: Crop, rng: np.random.Generator) -> Array:
        site_weights = np.exp(SITE_SPREAD * rng.standard_normal((crop.n_instances, self.n_sites)))
        user_weights = np.exp(USER_SPREAD * rng.standard_normal((crop.n_instances, self.n_users)))
        c = _densities(site_weights, user_weights, self.link_rate)
        # The whole matrix decides c, but only the links of the crop are drawn.
        exposure = site_weights[:, crop.sites, np.newaxis] * user_weights[:, np.newaxis, crop.users]
        linked = rng.random(exposure.shape) < -np.expm1(-c[:, np.newaxis, np.newaxis] * exposure)
        rates: Array = linked * rng.uniform(0, MAX_RATE, size=exposure.shape)
        return rates


def _densities(site_weights: Array, user_weights: Array, link_rate: float) -> Array:
    """Return the c of each matrix, shape (n_instances,)."""
    pairs = zip(site_weights, user_weights, strict=True)
    return np.array([_density(a, b, link_rate) for a, b in pairs])


def _density(site_weights: Array, user_weights: Array, link_rate: float) -> float:
    """Return c with mean(1 - exp(-c a_i b_j)) = link_rate, to seven digits.

    Newton's method on log(rate) as a function of log(c), which is increasing and concave, from a
    start below the root, from where it converges monotonically. Single precision halves the time.
    """
    exposure = np.multiply.outer(site_weights, user_weights).astype(np.float32).ravel()
    log_c = np.log(link_rate / exposure.mean(dtype=np.float64))
    step = np.inf
    while step > 1e-4:  # the error left after a step is of the order of its square
        c = np.exp(log_c)
        unlinked = np.exp(exposure * np.float32(-c))
        rate = 1 - unlinked.mean(dtype=np.float64)
        slope = c * (exposure * unlinked).mean(dtype=np.float64) / rate
        step = (np.log(link_rate) - np.log(rate)) / slope
        log_c += step
    return float(np.exp(log_c))
