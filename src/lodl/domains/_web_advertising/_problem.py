"""The problem: choose websites so that many users click."""

import heapq
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import InvalidInputError
from lodl.problems import VectorisedProblem

_BLOCK_SIZE = 2**17  # numbers in one temporary array: 1 MB, which stays in the cache


@dataclass(frozen=True)
class WebAdvertising(VectorisedProblem):
    """Advertise on `budget` of M websites so that the most of N users click at least once.

        max_z  1/N sum_j (1 - prod_i (1 - z_i y_ij)),   z_i in {0, 1},   sum_i z_i = budget

    A label is a matrix (M, N) of click rates, a decision a vector of M zeros and ones, the
    objective the expected share of users who click. There is no context. Predictions are clipped
    into [0, 1], which is where click rates live.

    Where there are at most `max_subsets` ways to choose, all are tried and the decision is exact.
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
        """Return the positions of the chosen websites, shape (k, budget)."""
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
    chosen: list[int] = []
    while len(chosen) < budget:
        _, website = heap[0]
        present = (-(rates[website] * no_click).sum(), website)
        if present > heap[0]:
            heapq.heapreplace(heap, present)
        else:
            heapq.heappop(heap)
            chosen.append(website)
            no_click *= 1 - rates[website]
    return chosen
