"""Multilinear relaxation of coverage, for Web Advertising."""

from dataclasses import dataclass
from typing import Any

import torch

from lodl._arrays import check_count
from lodl.errors import InvalidInputError
from lodl_benchmarks.surrogates._kkt import through_maximum
from lodl_benchmarks.surrogates._surrogate import Surrogate


@dataclass(frozen=True)
class MultilinearRelaxation(Surrogate):
    r"""Fractions of websites to advertise on (Wilder et al., 2019).

    The share of the N users that click at least once, with z_i in [0, 1] instead of {0, 1}:

        F(z, y) = 1/N sum_j (1 - prod_i (1 - z_i y_ij))
        z(y_hat) = argmax  F(z, y_hat) - gamma/2 |z - B/M|^2   s.t.  0 <= z <= 1,  sum_i z_i <= B

    Projected gradient ascent from z = B/M for a fixed number of steps, each as long as the
    curvature allows, then the derivative through the KKT conditions on the active set. Predictions
    are not clipped into [0, 1], since clipped ones would have no gradient.

    Why the quadratic term: F is convex along every exchange e_i - e_k, so without it a maximum lies
    at a vertex and the gradient is zero. Wilder et al. cap z at 0.95 and add 0.01 to the diagonal
    of the KKT matrix in the backward pass; here the term belongs to the problem itself. Its centre
    keeps the budget spent. `gamma` is in units of F: of the order of the differences between
    websites' mean click rates.

    The gradient is the exact one of the decision returned only where the ascent has converged.
    Measured with 5 websites, 10 users, a budget of 2 and gamma = 0.1: after the default 50 steps
    the decisions for click rates up to 0.2 are within 1e-4 of their limits, but for predictions
    spread over [0, 1] more than a tenth are over 0.3 away; 1000 steps bring these to 1e-3.
    """

    budget: int  # how many websites can be bought, B
    gamma: float = 0.01  # weight of the quadratic term
    n_steps: int = 50  # steps of projected gradient ascent; more where predictions are large
    sense = "max"

    def __post_init__(self) -> None:
        check_count("budget", self.budget)
        check_count("n_steps", self.n_steps)
        if not self.gamma > 0:
            raise InvalidInputError(f"`gamma` must be above 0, got {self.gamma!r}.")

    def __call__(self, y_hat: torch.Tensor, context: Any = None) -> torch.Tensor:
        with torch.no_grad():
            z, price = self._maximise(y_hat)
            hessian = _hessian(z, y_hat)
            hessian.diagonal(dim1=-2, dim2=-1).sub_(self.gamma)
        return through_maximum(
            z,
            _marginal_values(z, y_hat),
            hessian=hessian,
            is_free=(z > 0) & (z < 1),
            budget_binds=price > 0,
        )

    def objective(self, z: torch.Tensor, y: torch.Tensor, context: Any = None) -> torch.Tensor:
        return (1 - (1 - z[..., None] * y).prod(-2)).mean(-1)

    def _maximise(self, y_hat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the relaxed decision and the price of its budget."""
        centre = self.budget / y_hat.shape[-2]
        z = torch.full_like(y_hat[..., 0], centre)
        price = torch.zeros_like(z[..., 0])
        step = 1 / (self.gamma + _curvature_bound(y_hat))[..., None]
        for _ in range(self.n_steps):
            ascent = _marginal_values(z, y_hat) - self.gamma * (z - centre)
            z, price = _project(z + step * ascent, self.budget)
        return z, price


def _marginal_values(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return dF/dz_i = 1/N sum_j y_ij prod_{k != i} (1 - z_k y_kj), shape (*batch, M)."""
    misses = 1 - z[..., None] * y
    one = torch.ones_like(misses[..., :1, :])
    before = torch.cat([one, misses[..., :-1, :]], -2).cumprod(-2)
    behind = torch.cat([one, misses.flip(-2)[..., :-1, :]], -2).cumprod(-2).flip(-2)
    return (y * before * behind).mean(-1)


def _hessian(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return d2F/dz2, shape (*batch, M, M).

    F is affine in each coordinate, so the derivative of the marginal values by z_i is their
    difference between z_i = 1 and z_i = 0.
    """
    chosen = torch.eye(z.shape[-1], dtype=torch.bool, device=z.device)
    z, y = z[..., None, :], y[..., None, :, :]
    return _marginal_values(z.masked_fill(chosen, 1), y) - _marginal_values(
        z.masked_fill(chosen, 0), y
    )


def _curvature_bound(y: torch.Tensor) -> torch.Tensor:
    """Return a bound of |d2F/dz2| over 0 <= z <= 1, by its greatest row sum (Gershgorin)."""
    size = y.abs()
    others = size.sum(-2, keepdim=True) - size
    factors = (1 - y).abs().clamp_min(1).prod(-2, keepdim=True)
    return (size * others * factors).mean(-1).amax(-1)


def _project(v: torch.Tensor, budget: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the nearest z with 0 <= z <= 1 and sum_i z_i <= budget, and the budget's price.

    z = clip(v - price, 0, 1). The sum is piecewise linear in the price: it is M up to min(v) - 1,
    and its slope falls by 1 at each v_i - 1 and rises by 1 at each v_i. The price is where it
    meets the budget, or 0 where that is below 0.
    """
    kinks, order = torch.cat([v - 1, v], -1).sort(-1)
    n_items = v.shape[-1]
    slopes = torch.where(order < n_items, -1.0, 1.0).to(v.dtype).cumsum(-1)
    total = n_items + (slopes[..., :-1] * kinks.diff(dim=-1)).cumsum(-1)  # at kinks 1, 2, ...
    segment = (total > budget).sum(-1, keepdim=True).clamp_max(2 * n_items - 2)
    at_end = total.gather(-1, segment) - budget
    price = kinks[..., 1:].gather(-1, segment) - at_end / slopes.gather(-1, segment)
    price = price.clamp_min(0)
    return (v - price).clamp(0, 1), price[..., 0]
