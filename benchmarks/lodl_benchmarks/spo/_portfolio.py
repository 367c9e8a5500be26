"""The founding portfolio: most return within a limit on risk, and its data."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lodl._typing import Array, InstanceContext
from lodl.domains import Domain
from lodl.domains._domain import check_vectors, in_blocks, legacy_rng
from lodl.problems import LinearProblem

N_ASSETS, N_FACTORS, N_FEATURES, N_TEST = 50, 4, 5, 10_000
_RISK = 2.25  # limit on the variance, as a multiple of the equal portfolio's
_SLOPE = 1e-9  # derivative of the dual at which a solve ends: shares are that far from spent
_MOST_STEPS = 100
_ENOUGH = 1e-4  # share of the expected decrease that a step must reach
_OUTSIDE = 1e-6
_N_HALVINGS = 10
_BATCH = 2000  # predictions solved at a time


def founding_portfolio(seed: int, *, n: int, degree: int, noise: float) -> Domain:
    """Portfolios of 50 assets, as Elmachtoub and Grigas (2022) drew them.

        x ~ N(0, I_5),   B ~ Bernoulli(1/2), 50 x 5,   L ~ U[-0.0025 noise, 0.0025 noise], 50 x 4
        y_j = (0.05 B_j x / sqrt(5) + 0.1^(1 / degree))^degree + L_j f + 0.01 noise e_j

    with standard normal f and e; the variance of returns is S = L L' + (0.01 noise)^2 I. B and L
    are drawn anew for each seed. `n` instances train, a quarter as many validate, 10,000 test.
    """
    sizes, rng = (n, n // 4, N_TEST), legacy_rng(seed)
    matrix = rng.binomial(1, 0.5, size=(N_ASSETS, N_FEATURES))
    loads = rng.uniform(-0.0025 * noise, 0.0025 * noise, size=(N_ASSETS, N_FACTORS))
    x = rng.normal(size=(sum(sizes), N_FEATURES))
    y = (0.05 * (x @ matrix.T) / np.sqrt(N_FEATURES) + 0.1 ** (1 / degree)) ** degree
    shocks = rng.normal(size=(len(x), N_FACTORS + N_ASSETS))
    y += shocks[:, :N_FACTORS] @ loads.T + 0.01 * noise * shocks[:, N_FACTORS:]
    return Domain.in_order(RiskLimitedPortfolio(loads, 0.01 * noise), sizes, x, y)


@dataclass(frozen=True, eq=False)
class RiskLimitedPortfolio(LinearProblem):
    """Spread money over N assets for the most return, within a limit on the variance.

        max_z  z'y,   z >= 0,   sum_i z_i <= 1,   z'Sz <= v = 2.25 e'Se / N^2,   S = L L' + s^2 I

    A label is a vector (N,) of returns, a decision a vector (N,) of shares. There is no context.
    The dual has one price a for money and one for each factor,

        min_{p, a >= 0}  a + sqrt(v (|r|^2 / s^2 + |p|^2)),   r = max(y - a - L p, 0),

    is minimised by Newton's method for many predictions at once, and gives z = r / (q s^2), where
    v q is the root.
    """

    loads: Array  # L, shape (N, factors)
    deviation: float  # s
    sense = "max"

    @cached_property
    def limit(self) -> float:
        """The largest variance allowed."""
        return _RISK * float(self._variance(np.full((1, len(self.loads)), 1 / len(self.loads)))[0])

    def _variance(self, z: Array) -> Array:
        squares = np.square(z @ self.loads).sum(axis=1)
        return np.asarray(squares + self.deviation**2 * np.square(z).sum(axis=1))

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_vectors(y_hats, len(self.loads), "returns, one per asset")
        return in_blocks(self._solved, y_hats, _BATCH)

    def _solved(self, y_hats: Array) -> Array:
        best = np.zeros_like(y_hats)  # nothing is bought if no asset gains
        left = np.flatnonzero(y_hats.max(axis=1) > 0)
        gains = y_hats[left] / y_hats[left].max(axis=1, keepdims=True)
        dual = _Dual(gains, self._start(gains), self)
        for _ in range(_MOST_STEPS):
            move = dual.move()
            is_done = np.abs(move).max(axis=1, initial=0.0) < _SLOPE
            best[left[is_done]] = dual.shares()[is_done]
            left = left[~is_done]
            if not len(left):
                break
            dual = dual.of(~is_done).moved(move[~is_done])
        best[left] = dual.shares() if len(left) else 0.0
        excess = np.maximum(best.sum(axis=1), np.sqrt(self._variance(best) / self.limit))
        return np.asarray(best / np.maximum(excess, 1.0)[:, np.newaxis])

    def _start(self, gains: Array) -> Array:
        """Return the best price of money, by bisection, if there were no factors.

        Newton's method could run to the cone's tip, prices at which nothing is bought, from others.
        """
        low, high = np.zeros((len(gains), 1)), np.ones((len(gains), 1))
        for _ in range(_N_HALVINGS):
            middle = (low + high) / 2
            rest = np.maximum(gains - middle, 0.0)
            n_held = np.square(rest.sum(axis=1)) / np.square(rest).sum(axis=1)
            is_low = (n_held > self.deviation**2 / self.limit)[:, np.newaxis]
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return np.hstack([np.zeros((len(gains), self.loads.shape[1])), low])


class _Dual:
    """The dual of some predictions at some prices, those of the factors first, then of money."""

    def __init__(self, gains: Array, prices: Array, problem: RiskLimitedPortfolio) -> None:
        self.gains, self.prices, self.problem = gains, prices, problem
        self.columns = np.hstack([problem.loads, np.ones((len(problem.loads), 1))])
        self.rest = np.maximum(gains - prices @ self.columns.T, 0.0)
        squares = np.square(self.rest).sum(axis=1) / problem.deviation**2
        self.root = np.sqrt(squares + np.square(prices[:, :-1]).sum(axis=1))
        self.value = prices[:, -1] + np.sqrt(problem.limit) * self.root

    def of(self, rows: Array) -> "_Dual":
        return _Dual(self.gains[rows], self.prices[rows], self.problem)

    def shares(self) -> Array:
        scale = self.problem.deviation**2 * self.root / np.sqrt(self.problem.limit)
        return np.asarray(self.rest / scale[:, np.newaxis])

    @cached_property
    def slope(self) -> Array:
        """The derivative of the dual by the prices, shape (k, n_prices)."""
        half = -self.rest @ self.columns / self.problem.deviation**2
        half[:, :-1] += self.prices[:, :-1]
        slope = np.sqrt(self.problem.limit) * half / self.root[:, np.newaxis]
        slope[:, -1] += 1.0
        return np.asarray(slope)

    def move(self) -> Array:
        """Return Newton's direction. The price of money stays at 0 if it would fall below."""
        n, limit = self.prices.shape[1], np.sqrt(self.problem.limit)
        pairs = (self.columns[:, :, np.newaxis] * self.columns[:, np.newaxis]).reshape(-1, n * n)
        weights = np.where(self.rest > 0, 1.0, _OUTSIDE)  # assets not held bend the dual no more
        bend = (weights @ pairs).reshape(-1, n, n) / self.problem.deviation**2
        bend[:, range(n - 1), range(n - 1)] += 1.0
        along = self.slope.copy()
        along[:, -1] -= 1.0
        root = self.root[:, np.newaxis, np.newaxis]
        bend = limit * bend / root - along[:, :, np.newaxis] * along[:, np.newaxis] / (limit * root)
        is_free = (self.prices[:, -1] > 0) | (self.slope[:, -1] < 0)
        bend[~is_free, -1], bend[~is_free, :, -1] = 0.0, 0.0
        bend[~is_free, -1, -1] = 1.0
        slope = np.where(np.arange(n) == n - 1, self.slope * is_free[:, np.newaxis], self.slope)
        return -np.linalg.solve(bend, slope[:, :, np.newaxis])[:, :, 0]

    def moved(self, move: Array) -> "_Dual":
        """Return the dual after a step along a direction, halved until it decreases enough."""
        expected = (move * self.slope).sum(axis=1)
        size = np.ones(len(move))
        for _ in range(40):
            prices = self.prices + size[:, np.newaxis] * move
            prices[:, -1] = np.maximum(prices[:, -1], 0.0)
            after = _Dual(self.gains, prices, self.problem)
            is_poor = after.value > self.value + _ENOUGH * size * expected + 1e-15
            if not is_poor.any():
                break
            size = np.where(is_poor, size / 2, size)
        return after
