"""The derivative of a constrained maximum by what moves its marginal values."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable


def through_maximum(
    z: torch.Tensor,
    marginal_values: torch.Tensor,
    *,
    hessian: torch.Tensor,
    is_free: torch.Tensor,
    budget_binds: torch.Tensor,
) -> torch.Tensor:
    r"""Return `z`, differentiable through the KKT conditions of the maximum it is.

    `z` maximises f(z, y_hat) under bounds on each coordinate and a budget on their sum. Where the
    active constraints stay active, the free coordinates F obey, to first order,

        [ -H_FF  1 ] [ dz_F ]   [ dg_F ]
        [  1'    0 ] [  dm  ] = [  0   ],   dz = 0 outside F

    with H the Hessian of f by z, g = df/dz, and m the price of the budget; without the last row and
    column where the budget does not bind. The system is symmetric, so the backward pass solves the
    same one; how g depends on the prediction is left to autograd.

    Args:
        z: The maximiser, shape (*batch, M); a constant.
        marginal_values: g at `z`, a differentiable function of the prediction, shape (*batch, M).
        hessian: H at `z`, shape (*batch, M, M).
        is_free: Which coordinates lie strictly within their bounds, shape (*batch, M).
        budget_binds: Where the budget is used up, shape (*batch,).
    """
    return _ThroughMaximum.apply(z, marginal_values, hessian, is_free, budget_binds)  # type: ignore[no-any-return,no-untyped-call]


class _ThroughMaximum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: torch.Tensor, _: torch.Tensor, *kkt: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*kkt)
        return z.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_z: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, _solve_on_free(grad_z, *ctx.saved_tensors), None, None, None


def _solve_on_free(
    v: torch.Tensor, hessian: torch.Tensor, is_free: torch.Tensor, budget_binds: torch.Tensor
) -> torch.Tensor:
    """Return dz of the KKT system for dg = v, packed to the free coordinates, which are few."""
    n_free = int(is_free.sum(-1).max())
    packed = is_free.to(v.dtype).argsort(dim=-1, descending=True, stable=True)[..., :n_free]
    mask = is_free.gather(-1, packed).to(v.dtype)
    rows = packed[..., :, None].expand(*packed.shape, hessian.shape[-1])
    columns = packed[..., None, :].expand(*packed.shape, n_free)
    curvature = hessian.gather(-2, rows).gather(-1, columns) * mask[..., None] * mask[..., None, :]
    # A row of no meaning (padding, a budget that does not bind) reads 1 * x = 0.
    system = v.new_zeros(*v.shape[:-1], n_free + 1, n_free + 1)
    system[..., :-1, :-1] = torch.diag_embed(1 - mask) - curvature
    border = mask * budget_binds[..., None]
    system[..., :-1, -1] = border
    system[..., -1, :-1] = border
    system[..., -1, -1] = border.sum(-1) == 0
    right = torch.cat([v.gather(-1, packed) * mask, v.new_zeros(*v.shape[:-1], 1)], -1)
    solution = torch.linalg.solve(system, right)[..., :-1]
    return torch.zeros_like(v).scatter(-1, packed, solution)
