"""The problem: which plants run, before demand is known."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import InvalidInputError
from lodl.problems import VectorisedProblem
from lodl_benchmarks.domains._unit_commitment._schedule import cheapest_schedules

_BLOCK = 128  # predictions at once: their tables stay in the cache


@dataclass(frozen=True)
class UnitCommitment(VectorisedProblem):
    """Decide which of G plants run in each of T periods, before the demand is known.

        min_u  sum_t [ sum_g fixed_g u_gt + start_g [u_gt > u_g,t-1]  +  Q(u_t, y_t) ]
        u_gt in {0, 1}, none runs before the first period; once started, plant g runs for at least
        min_up_g periods, or to the end of the day

    and once the demand y_t is known, the plants that run share it at the least cost:

        Q(u, y) = min_{p, b, w >= 0}  sum_g cost_g p_g + spot b + surplus w
                  sum_g p_g + b - w = y,   least_g u_g <= p_g <= most_g u_g

    where b is bought and w got rid of. A label is a vector (T,) of demands, a decision a matrix
    (G, T) of zeros and ones. There is no context. Always exact: dynamic programming for u, and the
    cheapest plants first for p.

    Attributes:
        least: Least power of each plant while it runs.
        most: Largest power of each plant.
        cost: Cost of a unit of power of each plant.
        fixed: Cost of a period in which a plant runs, whatever it produces.
        start: Cost of starting each plant.
        min_up: Periods that each plant must run once it was started.
        spot: Price of a unit of power that is bought.
        surplus: Cost of a unit of power that is not needed.
    """

    least: tuple[float, ...] = (0.8, 0.4, 0.2, 0.1)
    most: tuple[float, ...] = (1.8, 1.2, 0.8, 0.6)
    cost: tuple[float, ...] = (15.0, 25.0, 40.0, 70.0)
    fixed: tuple[float, ...] = (8.0, 6.0, 4.0, 1.0)
    start: tuple[float, ...] = (80.0, 40.0, 15.0, 4.0)
    min_up: tuple[int, ...] = (6, 4, 2, 1)
    spot: float = 200.0
    surplus: float = 10.0
    sense = "min"

    def __post_init__(self) -> None:
        for periods in self.min_up:
            check_count("min_up", periods)
        sizes = {len(getattr(self, name)) for name in ("least", "most", "cost", "fixed", "start")}
        if sizes != {len(self.min_up)}:
            raise InvalidInputError(
                f"There must be one number per plant, as many as {len(self.min_up)} in `min_up`."
            )
        if not all(
            0 <= low <= high < np.inf for low, high in zip(self.least, self.most, strict=True)
        ):
            raise InvalidInputError("`least` must be between 0 and `most`.")
        if not max(self.cost) < self.spot < np.inf or self.surplus < 0:
            raise InvalidInputError(
                "`spot` must be higher than the cost of every plant, and `surplus` not negative, "
                f"got {self.spot} and {self.surplus}."
            )

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        if y_hats.ndim != 2:
            raise InvalidInputError(
                f"A prediction must be a vector of demands, got shape {y_hats.shape[1:]}."
            )
        blocks = [y_hats[first : first + _BLOCK] for first in range(0, len(y_hats), _BLOCK)]
        return np.concatenate([self._schedules(block) for block in blocks])

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        zs = np.asarray(zs, dtype=np.float64)
        starts = np.maximum(np.diff(zs, axis=2, prepend=0.0), 0.0)
        committed = np.array(self.fixed) @ zs + np.array(self.start) @ starts
        costs: Array = (committed + self._market(zs.swapaxes(1, 2), y)[0]).sum(axis=1)
        return costs

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array:
        """Return the price of one more unit of demand in each period."""
        return self._market(np.asarray(z, dtype=np.float64).T, y)[1]

    def _schedules(self, y_hats: Array) -> Array:
        sets = np.array(list(product([0.0, 1.0], repeat=len(self.min_up))))
        market = self._market(sets, y_hats[..., np.newaxis])[0]  # by set of plants
        return cheapest_schedules(market + sets @ self.fixed, self.start, self.min_up)

    def _market(self, is_on: Array, y: Array) -> tuple[Array, Array]:
        """Return Q and its derivative by the demand.

        Args:
            is_on: Whether plants run, shape (..., G).
            y: Demands, of a shape that broadcasts with that of `is_on` without the plants.
        """
        must = (is_on * self.least).sum(axis=-1)
        left = y - must  # what the plants serve above their least power, at rising costs
        total = (is_on * self.least * self.cost).sum(axis=-1) + self.surplus * np.maximum(-left, 0)
        price = np.where(left < 0, -self.surplus, self.spot)
        is_served = left <= 0
        for plant in np.argsort(self.cost, kind="stable"):
            room = is_on[..., plant] * (self.most[plant] - self.least[plant])
            taken = np.clip(left, 0.0, room)
            total, left = total + self.cost[plant] * taken, left - taken
            price = np.where(~is_served & (left <= 0), self.cost[plant], price)
            is_served |= left <= 0
        return total + self.spot * np.maximum(left, 0.0), price
