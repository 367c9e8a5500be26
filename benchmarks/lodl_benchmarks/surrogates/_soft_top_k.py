"""Soft top-k as entropic optimal transport, for the Linear Model."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from lodl._arrays import check_count
from lodl.errors import InvalidInputError
from lodl_benchmarks.surrogates._surrogate import Surrogate

_MAX_STEPS = 100  # bisection alone would need about 60; Newton takes about five


@dataclass(frozen=True)
class SoftTopK(Surrogate):
    r"""The k best items, softened by an entropy (Xie et al., 2020).

    Each of the D items sends a mass 1/D to one of the anchors 0 and 1, anchor 1 receives k/D:

        min_G  sum_ij G_ij (y_hat_i - a_j)^2 + epsilon sum_ij G_ij log G_ij,   a = (0, 1)

    and z_i = D G_i1. With two anchors the dual has one unknown, a threshold t:

        z_i = sigmoid(2 y_hat_i / epsilon - t),   sum_i z_i = k

    so a safeguarded Newton method on a scalar finds, to rounding, the optimum that Sinkhorn
    iterations approach. The implicit function theorem gives the gradient in closed form, O(D).

    Unlike in the authors' code, the costs are not divided by the greatest cost of the batch, so
    that the decision of one instance does not depend on the others. Hence `epsilon` is in the
    squared units of the prediction; at small values the choice is hard and the gradient vanishes.
    """

    k: int  # how many items are chosen
    # Weight of the entropy; choose it on validation data, as it depends on the size of the labels.
    epsilon: float = 0.1
    sense = "max"

    def __post_init__(self) -> None:
        check_count("k", self.k)
        if not self.epsilon > 0:
            raise InvalidInputError(f"`epsilon` must be above 0, got {self.epsilon!r}.")

    def __call__(self, y_hat: torch.Tensor, context: Any = None) -> torch.Tensor:
        n_items = y_hat.shape[-1]
        if self.k >= n_items:
            raise InvalidInputError(f"`k` must be below the {n_items} items, got {self.k}.")
        return _SoftTopK.apply(2 * y_hat / self.epsilon, self.k)  # type: ignore[no-any-return,no-untyped-call]

    def objective(self, z: torch.Tensor, y: torch.Tensor, context: Any = None) -> torch.Tensor:
        return (z * y).sum(-1)


class _SoftTopK(torch.autograd.Function):
    """z = sigmoid(scores - t) with t such that z sums to k."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, k: int) -> torch.Tensor:
        precise = scores.double()  # in float32 the threshold of large scores would be too coarse
        z = torch.sigmoid(precise - _threshold(precise, k)).to(scores.dtype)
        ctx.save_for_backward(z)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_z: torch.Tensor) -> tuple[torch.Tensor, None]:
        (z,) = ctx.saved_tensors
        # sum_i z_i = k fixes dt = sum_i s_i dscore_i / sum_i s_i with the slopes s = z (1 - z).
        # A choice so hard that every slope underflows has gradient 0, not 0 / 0.
        slope = z * (1 - z)
        tiny = torch.finfo(z.dtype).tiny
        mean = (slope * grad_z).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True).clamp_min(tiny)
        return slope * (grad_z - mean), None


def _threshold(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return t with sum_i sigmoid(scores_i - t) = k, shape (*batch, 1).

    Newton's method on logit(mean_i z_i) = logit(k / D), which is nearly linear in t: exactly so
    where all scores are equal, and in both tails. It starts between the k-th and the next score,
    where the root of a hard choice lies. If all scores were the greatest (the least), t would be
    that score minus logit(k / D): a bracket; a step that leaves it is replaced by its middle.
    """
    share = scores.new_tensor(k / scores.shape[-1])
    logit = torch.logit(share)
    low = scores.amin(-1, keepdim=True) - logit
    high = scores.amax(-1, keepdim=True) - logit
    t = scores.topk(k + 1).values[..., k - 1 :].mean(-1, keepdim=True).clamp(low, high)
    tolerance = 4 * torch.finfo(scores.dtype).eps
    for _ in range(_MAX_STEPS):
        z = torch.sigmoid(scores - t)
        mean, slope = z.mean(-1, keepdim=True), (z * (1 - z)).mean(-1, keepdim=True)
        low, high = torch.where(mean > share, t, low), torch.where(mean < share, t, high)
        newton = t + (torch.logit(mean) - logit) * mean * (1 - mean) / slope
        is_met = (mean - share).abs() <= tolerance
        is_inside = (newton >= low) & (newton <= high)
        previous, t = t, torch.where(is_met, t, torch.where(is_inside, newton, (low + high) / 2))
        if bool(((t - previous).abs() <= tolerance * t.abs().clamp_min(1)).all()):
            break
    return t
