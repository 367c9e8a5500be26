"""Differentiation through the quadratic program of a portfolio."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from lodl.errors import InvalidInputError
from lodl_benchmarks.domains import Portfolio
from lodl_benchmarks.surrogates._kkt import through_maximum
from lodl_benchmarks.surrogates._surrogate import Surrogate

_ZERO = 1e-8  # wider than the 1e-9 to which the oracle meets its constraints


@dataclass(frozen=True)
class QuadraticProgram(Surrogate):
    r"""The portfolio itself: its decision is differentiable as it is (Donti et al., 2017).

        z(y_hat) = argmax  z'y_hat - lambda z'Qz   s.t.  z >= 0,  sum_i z_i = 1   (or <= 1)

    The forward pass is the oracle, `Portfolio.solve_many`, in float64. The backward pass solves the
    KKT system of the stocks that are held; the gradient by a stock that is not held is zero.

    The context is one matrix Q per instance, an array or tensor of shape (n, N, N).
    """

    # The portfolio whose decisions are differentiated.
    problem: Portfolio = field(default_factory=Portfolio)
    sense = "max"

    def __call__(self, y_hat: torch.Tensor, context: Any = None) -> torch.Tensor:
        _check_context(context, y_hat)
        precise = y_hat.double()
        z = self._solve(precise.detach(), context)
        hessian = -2 * self.problem.risk_aversion * _matrices(context, z)
        decision = through_maximum(
            z,
            precise,  # dg = dy_hat: the part of g that z alone moves is a constant here
            hessian=hessian.expand(*z.shape, z.shape[-1]),
            is_free=z > _ZERO,
            budget_binds=z.sum(-1) > 1 - _ZERO,
        )
        return decision.to(y_hat.dtype)

    def objective(self, z: torch.Tensor, y: torch.Tensor, context: Any = None) -> torch.Tensor:
        risk = ((_matrices(context, z) @ z[..., None])[..., 0] * z).sum(-1)
        return (z * y).sum(-1) - self.problem.risk_aversion * risk

    def _solve(self, y_hat: torch.Tensor, context: Any) -> torch.Tensor:
        """Return the oracle's decisions, one call for all predictions of an instance."""
        y_hats = y_hat.cpu().numpy().reshape(-1, *y_hat.shape[-2:])
        matrices = _matrices(context, y_hat.cpu()).numpy()  # the solver is not on the GPU
        z = np.stack(
            [
                self.problem.solve_many(y_hats[:, instance], matrix)
                for instance, matrix in enumerate(matrices)
            ],
            axis=1,
        )
        return torch.from_numpy(z).to(y_hat.device).reshape(y_hat.shape)


def _check_context(context: Any, y_hat: torch.Tensor) -> None:
    shape = (*y_hat.shape[-2:], y_hat.shape[-1])
    if context is None or np.shape(context) != shape:
        raise InvalidInputError(
            f"`context` must be one matrix Q per instance, shape {shape}, "
            f"got {None if context is None else np.shape(context)}."
        )


def _matrices(context: Any, like: torch.Tensor) -> torch.Tensor:
    """Return Q of all instances as a tensor of the same dtype and device."""
    return torch.as_tensor(context, dtype=like.dtype, device=like.device)
