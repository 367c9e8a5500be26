"""Web Advertising: choose websites so that many users click. The paper's second domain."""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import Domain, ModelShape, Sizes, Split, Splits, check_sizes, streams
from lodl.errors import InvalidInputError
from lodl.problems import VectorisedProblem

MAX_RATE = 0.2
"""Largest click rate: the rate of a link is uniform on [0, 0.2]."""

_SITE_SPREAD = 1.25  # standard deviation of log popularity, fitted to the bid graph's statistics
_USER_SPREAD = 1.1  # the same of users
_BLOCK_SIZE = 2**17  # numbers in one temporary array: 1 MB, which stays in the cache


@dataclass(frozen=True, eq=False)
class Crop:
    """The rows and columns that a split takes from each of its matrices.

    Attributes:
        n_instances: Number of matrices.
        sites: Rows to take, each once.
        users: Columns to take, each once.
    """

    n_instances: int
    sites: npt.NDArray[np.intp]
    users: npt.NDArray[np.intp]


class ClickRates(ABC):
    """A source of matrices of click rates (websites x users), one for each instance."""

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
        pairs = zip(crops, rng.spawn(len(crops)), strict=True)
        return [self._draw(crop, stream) for crop, stream in pairs]

    def _draw(self, crop: Crop, rng: np.random.Generator) -> Array:
        site_weights = np.exp(_SITE_SPREAD * rng.standard_normal((crop.n_instances, self.n_sites)))
        user_weights = np.exp(_USER_SPREAD * rng.standard_normal((crop.n_instances, self.n_users)))
        pairs = zip(site_weights, user_weights, strict=True)
        c = np.array([_density(a, b, self.link_rate) for a, b in pairs])
        # The whole matrix decides c, but only the links of the crop are drawn.
        exposure = site_weights[:, crop.sites, np.newaxis] * user_weights[:, np.newaxis, crop.users]
        linked = rng.random(exposure.shape) < -np.expm1(-c[:, np.newaxis, np.newaxis] * exposure)
        rates: Array = linked * rng.uniform(0, MAX_RATE, size=exposure.shape)
        return rates


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


def web_advertising(
    seed: int = 0,
    *,
    source: ClickRates | None = None,
    sizes: Sizes = (80, 20, 500),
    n_sites: int = 5,
    n_users: int = 10,
    budget: int = 2,
) -> Domain:
    """Web Advertising: choose the websites on which most users will click.

    Data. An instance is a matrix y of click rates, 5 websites by 10 users, cut from a larger matrix
    (100 x 500). A split takes the same rows and columns, drawn with replacement, from all of its
    matrices. Few users ever see a website: 4% of the rates are not zero, and in more than a fifth
    of the instances there is nothing to win. The features of a website are its own click rates,
    standardised by user and sent through a random linear map,

        x_m = A ((y_m - mean) / deviation) + b,   A and b uniform on +-1/sqrt(n_users),

    so a model only has to learn to invert the map. Mean and deviation are taken from the training
    split, A and b are the same for all splits. x and y have shape (n, 5, 10), there is no context,
    and there are 80 training, 20 validation and 500 test instances.

    By default the matrices are generated to match the statistics of the data behind the paper
    (`GeneratedClickRates`). Pass other data as a `source`, a `ClickRates`.

    Model. One network for all websites, from the 10 features of a website to its 10 click rates:
    two layers with 500 ReLU units between them, and a ReLU at the end. With a large step the last
    ReLU can die permanently; Adam with a learning rate of 1e-4 trains well.

    Solver. `WebAdvertising`: all 10 pairs of websites are tried, so decisions are exact and 0/1.
    If there are more than 10,000 ways to choose, lazy greedy.

    Objective. The expected share of users who click at least once, to be maximised. The paper has
    the expected number, which is the share times the number of users.

    Differences from the paper. The paper scores fractional decisions of the
    multilinear relaxation, found by gradient steps; we score what can be bought. Its data
    (Yahoo! Webscope) is no longer public, and was a bid graph with random rates, not measured
    clicks. Its features are standardised by each split's own mean and deviation, which moves the
    map to be learned from split to split; ours by the training split's.

    Args:
        seed: Random seed for the click rates and the features.
        source: Source of click-rate matrices. Defaults to `GeneratedClickRates()`.
        sizes: Number of training, validation and test instances.
        n_sites: Websites in an instance.
        n_users: Users in an instance.
        budget: Websites to choose.
    """
    source = GeneratedClickRates() if source is None else source
    check_count("n_sites", n_sites)
    check_count("n_users", n_users)
    crop_rng, rate_rng, map_rng = streams("web advertising", seed, 3)
    ys = _click_rates(source, check_sizes(sizes), (n_sites, n_users), crop_rng, rate_rng)
    xs = _features(ys, map_rng)
    return Domain(
        problem=WebAdvertising(budget),
        splits=Splits(*(Split(x, y) for x, y in zip(xs, ys, strict=True))),
        model=ModelShape(n_features=n_users, n_outputs=n_users, hidden=(500,), output="relu"),
    )


def _click_rates(
    source: ClickRates,
    sizes: Sizes,
    shape: tuple[int, int],
    crop_rng: np.random.Generator,
    rate_rng: np.random.Generator,
) -> list[Array]:
    """Return the labels of each split, shape (size, *shape)."""
    crops, repeats = [], []
    for size in sizes:
        # A row or column that is drawn twice is the same website or user: its rates are drawn once.
        drawn_sites = crop_rng.integers(source.shape[0], size=shape[0])
        drawn_users = crop_rng.integers(source.shape[1], size=shape[1])
        sites, site_of = np.unique(drawn_sites, return_inverse=True)
        users, user_of = np.unique(drawn_users, return_inverse=True)
        crops.append(Crop(size, sites, users))
        repeats.append(np.ix_(np.arange(size), site_of, user_of))
    rates = source.draw(crops, rate_rng)
    return [y[repeat] for y, repeat in zip(rates, repeats, strict=True)]


def _features(ys: list[Array], rng: np.random.Generator) -> list[Array]:
    """Scramble the click rates of each split by one map; the first split gives the scale."""
    n_users = ys[0].shape[2]
    bound = 1 / np.sqrt(n_users)
    matrix = rng.uniform(-bound, bound, size=(n_users, n_users))
    bias = rng.uniform(-bound, bound, size=n_users)
    mean, deviation = ys[0].mean(axis=(0, 1)), ys[0].std(axis=(0, 1))
    deviation[deviation == 0] = 1.0  # a user who never clicks
    return [(y - mean) / deviation @ matrix.T + bias for y in ys]


@dataclass(frozen=True)
class WebAdvertising(VectorisedProblem):
    """Advertise on `budget` of M websites so that the most of N users click at least once.

        max_z  1/N sum_j (1 - prod_i (1 - z_i y_ij)),   z_i in {0, 1},   sum_i z_i = budget

    A label is a matrix (M, N) of click rates, a decision a vector of M zeros and ones, the
    objective the expected share of users who click. There is no context. Predictions are clipped
    to [0, 1], the range of click rates.

    If there are at most `max_subsets` ways to choose, all are tried and the decision is exact.
    Beyond that, lazy greedy takes the website with the largest gain, `budget` times; the objective
    is submodular, so this reaches at least 1 - 1/e = 63% of the optimum, in practice nearly all.

    Attributes:
        budget: Number of websites to choose.
        max_subsets: Largest number of subsets to try; 0 always decides greedily.
    """

    budget: int = 2
    max_subsets: int = 10_000
    sense = "max"
    unit = "clicks per user"

    def __post_init__(self) -> None:
        check_count("budget", self.budget)
        check_count("max_subsets", self.max_subsets, minimum=0)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = self.project(check_labels(y_hats, "y_hats"))
        if y_hats.ndim != 3 or y_hats.shape[1] < self.budget:
            raise InvalidInputError(
                "A prediction must be a matrix of click rates (websites, users) with at least "
                f"`budget` = {self.budget} websites, got shape {y_hats.shape[1:]}."
            )
        zs = np.zeros(y_hats.shape[:2])
        np.put_along_axis(zs, self._best_websites(y_hats), 1.0, axis=1)
        return zs

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        zs = np.asarray(zs, dtype=np.float64)
        no_click = np.ones((len(zs), y.shape[1]))
        for website, rates in enumerate(y):
            no_click *= 1 - zs[:, website, np.newaxis] * rates
        shares: Array = 1 - no_click.mean(axis=1)
        return shares

    def slope(self, z: Any, y: Array, context: InstanceContext = None) -> Array:
        """Return d/dy_ij = 1/N z_i prod_{m != i} (1 - z_m y_mj)."""
        no_click = 1 - np.asarray(z, dtype=np.float64)[:, np.newaxis] * y
        others = [np.delete(no_click, website, axis=0).prod(axis=0) for website in range(len(y))]
        slope: Array = np.asarray(z)[:, np.newaxis] * np.array(others) / y.shape[1]
        return slope

    def project(self, y_hats: Array) -> Array:
        return np.clip(y_hats, 0.0, 1.0)

    def _best_websites(self, y_hats: Array) -> npt.NDArray[np.intp]:
        """Return the positions of the best websites, shape (k, budget)."""
        n_websites = y_hats.shape[1]
        if comb(n_websites, self.budget) > self.max_subsets:
            return np.array([_lazy_greedy(rates, self.budget) for rates in y_hats])
        subsets = np.array(list(combinations(range(n_websites), self.budget)))
        return subsets[_best_subsets(y_hats, subsets)]


def _best_subsets(y_hats: Array, subsets: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return for each prediction the first subset with the fewest users who never click."""
    best = np.empty(len(y_hats), dtype=np.intp)
    rows = max(1, _BLOCK_SIZE // (len(subsets) * y_hats.shape[2]))
    for start in range(0, len(y_hats), rows):
        block = slice(start, start + rows)
        no_click = 1 - y_hats[block]
        together = no_click[:, subsets[:, 0]]
        for websites in subsets.T[1:]:
            together *= no_click[:, websites]
        best[block] = together.sum(axis=2).argmin(axis=1)
    return best


def _lazy_greedy(rates: Array, budget: int) -> list[int]:
    """Choose websites by largest gain, and update a gain only if it might be the largest.

    Gains only shrink as websites are added, so an old gain bounds the present one from above: if
    the best old gain, brought up to date, is still on top, no other website can beat it.
    """
    no_click = np.ones(rates.shape[1])
    heap = [(-gain, website) for website, gain in enumerate(rates.sum(axis=1))]
    heapq.heapify(heap)
    taken: list[int] = []
    while len(taken) < budget:
        _, website = heap[0]
        present = (-(rates[website] * no_click).sum(), website)
        if present > heap[0]:
            heapq.heapreplace(heap, present)
        else:
            heapq.heappop(heap)
            taken.append(website)
            no_click *= 1 - rates[website]
    return taken
