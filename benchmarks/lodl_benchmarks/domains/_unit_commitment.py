"""Unit commitment: decide which power plants run tomorrow."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, Decision, InstanceContext
from lodl.domains import Domain
from lodl.domains._domain import Sizes, check_sizes, in_blocks
from lodl.errors import InvalidInputError
from lodl.problems import VectorisedProblem
from lodl_benchmarks.domains._power_days import power_days

_BLOCK = 128  # predictions at once: their tables stay in the cache
_Flags = npt.NDArray[np.bool_]


def unit_commitment(
    seed: int = 0, *, sizes: Sizes = (200, 100, 400), n_periods: int = 24
) -> Domain:
    """Unit commitment: decide which power plants run in each hour, by the predicted demand.

    Data: an instance is a day of 24 hours, made as in `dispatch`: forecasts of the load and of the
    speed of the wind and the time of day are known; the label is the demand that is left after
    wind power,

        y_t = (3 + load_t - wind_power_t) * e_t,

    with persistent noise e_t of logarithmic standard deviation 0.1. x has shape (n, 24, 4), y has
    shape (n, 24). Model: one linear model for all hours. Problem: `UnitCommitment`, with four
    plants from a slow and cheap one to a quick and dear one; in batches of 500 a call takes 0.1 ms,
    where a mixed-integer program of HiGHS takes 150 ms. A demand predicted too low costs far more
    than one predicted too high.

    Data and plants are ours, with the ingredients of the textbooks. It is the domain of a predicted
    right-hand side whose decision is combinatorial. The least-squares model has a relative test
    regret of 0.06 to 0.08, depending on the seed, 0.04 to 0.05 if it predicts 10% more.

    Args:
        seed: Random seed for the days.
        sizes: Number of training, validation and test days.
        n_periods: Periods of a day.
    """
    sizes = check_sizes(sizes)
    days = power_days("unit commitment", seed, (sum(sizes), n_periods), 0.1)
    y = (3.0 + days.load - days.wind_power) * days.noise
    return Domain.in_order(UnitCommitment(), sizes, days.x, y)


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
        return in_blocks(self._schedules, y_hats, _BLOCK)

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
        return _cheapest_schedules(market + sets @ self.fixed, self.start, self.min_up)

    def _market(self, is_on: Array, y: Array) -> tuple[Array, Array]:
        """Return Q and its derivative by the demand, of plants that run (..., G)."""
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


def _cheapest_schedules(running: Array, start: tuple[float, ...], min_up: tuple[int, ...]) -> Array:
    """Return the schedule of least cost for each prediction, shape (k, G, T).

    `running` is the cost of running each set of plants, shape (k, T, 2^G); the first plant is the
    highest bit of a set. A plant is off (state 0) or has been running for 1, 2, ... periods, where
    `min_up` stands for that many or more. From one period to the next

        off -> off,   off -> 1 (a start),   j -> j + 1,   min_up -> min_up,   min_up -> off

    independently of the other plants. So a period is one pass per plant, over all states of the
    others and all predictions at once; a pass has two ways into `off` and two into `min_up`.
    """
    running = np.ascontiguousarray(np.moveaxis(running, 0, 2))  # predictions side by side
    value = np.full((*(periods + 1 for periods in min_up), running.shape[2]), np.inf)
    value[(0,) * len(min_up)] = 0.0
    set_of = _sets_of_states(min_up)
    passes: list[list[tuple[_Flags, _Flags]]] = []
    for costs in running:
        passes.append([])
        for plant, cost in enumerate(start):
            value, came = _pass(value, plant, cost)
            passes[-1].append(came)
        value += costs[set_of]
    return _traced_back(value, passes, min_up)


def _sets_of_states(min_up: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Return the set of plants that run in each state."""
    states = np.indices([periods + 1 for periods in min_up]) > 0
    bits = 2 ** np.arange(len(min_up))[::-1]
    return np.tensordot(bits, states, axes=1)


def _pass(value: Array, axis: int, start: float) -> tuple[Array, tuple[_Flags, _Flags]]:
    """Return the costs after one plant moved on by a period, and its ways.

    The ways are, of each state of the others, whether the plant's way into `off` came from
    `min_up`, and its way into `min_up` from `min_up`.
    """
    old = np.moveaxis(value, axis, 0)
    new = np.empty_like(value)
    out = np.moveaxis(new, axis, 0)
    begins = old[0] + start
    out[1:] = old[:-1]
    out[1] = begins
    stops, stays = old[-1] < old[0], old[-1] <= out[-1]
    out[0] = np.where(stops, old[-1], old[0])
    out[-1] = np.where(stays, old[-1], out[-1])
    return new, (stops, stays)


def _traced_back(
    value: Array, passes: list[list[tuple[_Flags, _Flags]]], min_up: tuple[int, ...]
) -> Array:
    """Follow the cheapest way back from the end of the day."""
    n, n_plants = value.shape[-1], len(min_up)
    each = np.arange(n)
    last = value.reshape(-1, n).argmin(axis=0)
    state = np.array(np.unravel_index(last, value.shape[:-1]))  # (G, k)
    zs = np.empty((n, n_plants, len(passes)))
    for period in reversed(range(len(passes))):
        zs[:, :, period] = (state > 0).T
        for plant in reversed(range(n_plants)):
            stops, stays = passes[period][plant]
            others = (*np.delete(state, plant, axis=0), each)
            here, top = state[plant], min_up[plant]
            before = np.where(here == 0, 0, here - 1)
            before = np.where((here == 0) & stops[others], top, before)
            state[plant] = np.where((here == top) & stays[others], top, before)
    return zs
