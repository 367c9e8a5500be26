"""Web Advertising: choose websites so that many users click. The paper's second domain."""

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import Domain, Sizes, Split, Splits, check_sizes, in_blocks
from lodl.errors import InvalidInputError
from lodl.problems import VectorisedProblem
from lodl_benchmarks.domains._streams import streams

_N_SITES, _N_USERS = 100, 500  # websites and users of a whole matrix
_LINK_RATE = 0.0397  # mean probability that a user sees a website
_MAX_RATE = 0.2  # largest click rate
_SITE_SPREAD = 1.25  # standard deviation of log popularity, fitted to the bid graph's statistics
_USER_SPREAD = 1.1  # the same of users
_BLOCK_SIZE = 2**17  # numbers in one temporary array: 1 MB, which stays in the cache


def web_advertising(seed: int = 0, *, sizes: Sizes = (80, 20, 500)) -> Domain:
    """Web Advertising: choose the websites on which most users will click.

    Data: an instance is a matrix y of click rates, 5 websites by 10 users, cut from a larger matrix
    of 100 x 500. A split takes the same rows and columns, drawn with replacement, from all of its
    matrices. Links between websites and users of log-normal popularity are random,

        a_i = exp(1.25 n_i),   b_j = exp(1.1 m_j),   P(link ij) = 1 - exp(-c a_i b_j),

    with standard normal n and m, and c such that the mean probability of a matrix is 0.0397. A link
    has a click rate uniform on [0, 0.2]; without a link the rate is 0. The constants are fitted to
    the statistics of the paper's data. The features of a website are its own click rates,
    standardised by user over the training split and sent through a random linear map,

        x_m = A ((y_m - mean) / deviation) + b,   A and b uniform on +-1/sqrt(10).

    x and y have shape (n, 5, 10). Model: one network for all websites, from the 10 features of a
    website to its 10 click rates, with 500 ReLU units and a ReLU at the end, which can die
    permanently if steps are large. Problem: `WebAdvertising`.

    Differences from the paper: it scores fractional decisions of the multilinear relaxation; we
    score what can be bought. It counts users who click, we take their share. Its data (Yahoo!
    Webscope) is no longer public, and it standardises each split by its own mean and deviation.

    Args:
        seed: Random seed for the click rates and the features.
        sizes: Number of training, validation and test instances.
    """
    crop_rng, rate_rng, map_rng = streams("web advertising", seed, 3)
    ys = []
    for size, rng in zip(check_sizes(sizes), rate_rng.spawn(3), strict=True):
        sites = crop_rng.integers(_N_SITES, size=5)
        ys.append(_click_rates(size, sites, crop_rng.integers(_N_USERS, size=10), rng))
    splits = (Split(x, y) for x, y in zip(_features(ys, map_rng), ys, strict=True))
    return Domain(WebAdvertising(2), Splits(*splits))


def _click_rates(
    n: int, sites: npt.NDArray[np.intp], users: npt.NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """Return the rows `sites` and columns `users` of `n` random matrices of click rates."""
    # A row or column that is drawn twice is the same website or user: its rates are drawn once.
    sites, site_of = np.unique(sites, return_inverse=True)
    users, user_of = np.unique(users, return_inverse=True)
    site_weights = np.exp(_SITE_SPREAD * rng.standard_normal((n, _N_SITES)))
    user_weights = np.exp(_USER_SPREAD * rng.standard_normal((n, _N_USERS)))
    c = np.array([_density(a, b) for a, b in zip(site_weights, user_weights, strict=True)])
    # The whole matrix decides c, but only the links of these rows and columns are drawn.
    exposure = site_weights[:, sites, np.newaxis] * user_weights[:, np.newaxis, users]
    linked = rng.random(exposure.shape) < -np.expm1(-c[:, np.newaxis, np.newaxis] * exposure)
    rates: Array = linked * rng.uniform(0, _MAX_RATE, size=exposure.shape)
    return rates[np.ix_(np.arange(n), site_of, user_of)]


def _density(site_weights: Array, user_weights: Array) -> float:
    """Return c with mean(1 - exp(-c a_i b_j)) equal to the rate of links, by Newton's method."""
    exposure = np.multiply.outer(site_weights, user_weights).astype(np.float32).ravel()
    log_c = np.log(_LINK_RATE / exposure.mean(dtype=np.float64))
    step = np.inf
    while step > 1e-4:  # the error left after a step is of the order of its square
        c = np.exp(log_c)
        unlinked = np.exp(exposure * np.float32(-c))
        rate = 1 - unlinked.mean(dtype=np.float64)
        slope = c * (exposure * unlinked).mean(dtype=np.float64) / rate
        step = (np.log(_LINK_RATE) - np.log(rate)) / slope
        log_c += step
    return float(np.exp(log_c))


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
    to [0, 1], the range of click rates. All ways to choose are tried, so the decision is exact.
    """

    budget: int = 2  #: Number of websites to choose.
    max_subsets: int = 10_000  #: Largest number of ways to choose; more are refused.
    sense = "max"
    unit = "clicks per user"

    def __post_init__(self) -> None:
        check_count("budget", self.budget)
        check_count("max_subsets", self.max_subsets)

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = self.project(check_labels(y_hats, "y_hats"))
        if y_hats.ndim != 3 or y_hats.shape[1] < self.budget:
            kind = "a matrix of click rates (websites, users)"
            wanted = f"{kind} with at least `budget` = {self.budget} websites"
            raise InvalidInputError(f"A prediction must be {wanted}, got shape {y_hats.shape[1:]}.")
        n_websites, n_users = y_hats.shape[1:]
        if comb(n_websites, self.budget) > self.max_subsets:
            ways = f"ways to choose {self.budget} of {n_websites} websites"
            most = f"`max_subsets` = {self.max_subsets}"
            raise InvalidInputError(f"There are more than {most} {ways}.")
        subsets = np.array(list(combinations(range(n_websites), self.budget)))
        best = partial(_best_subset, subsets=subsets)
        websites = in_blocks(best, y_hats, _BLOCK_SIZE // (len(subsets) * n_users))
        zs = np.zeros(y_hats.shape[:2])
        np.put_along_axis(zs, websites, 1.0, axis=1)
        return zs

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        zs = np.asarray(zs, dtype=np.float64)
        no_click = np.ones((len(zs), y.shape[1]))
        for website, rates in enumerate(y):
            no_click *= 1 - zs[:, website, np.newaxis] * rates
        return np.asarray(1 - no_click.mean(axis=1))

    def slope(self, z: Any, y: Array, context: InstanceContext = None) -> Array:
        """Return d/dy_ij = 1/N z_i prod_{m != i} (1 - z_m y_mj)."""
        no_click = 1 - np.asarray(z, dtype=np.float64)[:, np.newaxis] * y
        others = [np.delete(no_click, website, axis=0).prod(axis=0) for website in range(len(y))]
        return np.asarray(np.asarray(z)[:, np.newaxis] * np.array(others) / y.shape[1])

    def project(self, y_hats: Array) -> Array:
        return np.clip(y_hats, 0.0, 1.0)


def _best_subset(y_hats: Array, subsets: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return for each prediction the first subset with the fewest users who never click."""
    no_click = 1 - y_hats
    together = no_click[:, subsets[:, 0]]
    for websites in subsets.T[1:]:
        together *= no_click[:, websites]
    return np.asarray(subsets[together.sum(axis=2).argmin(axis=1)])
