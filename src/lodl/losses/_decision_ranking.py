"""Divergence between how decisions should rank and how they rank under a prediction."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import DecisionFamily
from lodl.losses._dual import exp, largest, log
from lodl.losses._family import Parameters, Tensor


@dataclass(frozen=True)
class DecisionRanking(DecisionFamily):
    r"""How far the ranking of decisions under a prediction is from that under the label.

        f(d) = t KL( softmax_k(-r_k / t) || softmax_k(-(r_k + s_k . d) / t) ) + sum_i w_i d_i^2

    over the decisions met and the label's own best decision, for which r = 0 and s = 0. r_k is the
    regret of decision k, s_k its slope. M (D + 2) + D + 1 parameters, none of which is fitted.
    Convex, smooth and zero at the label, in units of the regret. Where `DecisionHinges` looks at
    the worst decision only, this one orders them all. Use it where the objective is linear in the
    label or nearly so, with about 20 samples, and for boosting; it needs samples with slopes.

    The parameters `regret` and `slope` are r_k / t and s_k / t; `weight` is 1 for a decision and 0
    for padding.

    Attributes:
        temperature: t in units of the mean regret of the instance's decisions, above 0. The lower,
            the more the best decisions count, and the less smooth the loss is.
        squared_error: Weight of a squared error that is added to the loss: at errors as large as
            those of the samples it costs this share of the mean regret.
        min_weight: The least weight of that squared error, between 0 and 1. It pins directions that
            no decision sees; 0.1 is enough to spoil some losses.
        max_decisions: Number of decisions kept per instance: those that account for most of the
            sampled regret.
    """

    temperature: float = 0.3
    squared_error: float = 0.0
    min_weight: float = 1e-2
    max_decisions: int = 50
    non_negative = ("regret", "weight", "t", "w")
    padded = ("regret", "slope", "weight")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < np.inf:
            raise InvalidInputError(
                f"`temperature` must be a number above 0, got {self.temperature}."
            )

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {
            "regret": (self.max_decisions,),
            "slope": (self.max_decisions, dim),
            "weight": (self.max_decisions,),
            "t": (1,),
            "w": (dim,),
        }

    def scaled(self, regret: Array, slope: Array) -> dict[str, Array]:
        positive = regret[regret > 0]
        t = self.temperature * (positive.mean() if len(positive) else 1.0)
        is_decision = ((regret > 0) | slope.any(axis=1)).astype(float)
        return {"regret": regret / t, "slope": slope / t, "weight": is_decision, "t": np.array([t])}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the loss; with p the distribution under the label, KL is a Bregman distance.

        KL = p . (s d) + log sum_k exp(-(r_k + s_k . d)) - log sum_k exp(-r_k), all over t.
        """
        moved = d @ phi["slope"].swapaxes(-1, -2)
        at_label, p = _soft_minimum(phi["regret"][:, None], phi["weight"][:, None])
        there, _ = _soft_minimum(phi["regret"][:, None] + moved, phi["weight"][:, None])
        divergence = ((p * moved).sum(-1) + there - at_label).clip(min=0)  # below 0 by rounding
        return phi["t"] * divergence + (phi["w"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        moved = d @ phi["slope"].swapaxes(-1, -2)
        _, p = _soft_minimum(phi["regret"][:, None], phi["weight"][:, None])
        _, q = _soft_minimum(phi["regret"][:, None] + moved, phi["weight"][:, None])
        return phi["t"][:, None] * ((p - q) @ phi["slope"]) + 2 * phi["w"][:, None] * d

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return a bound of the second derivative that holds for every prediction.

        The second derivative by coordinate i is the variance of s_ki over t under the distribution
        of the prediction. It vanishes where one decision dominates, which is where a model is most
        wrong, and boosting would take huge steps there. The variance of numbers in an interval is
        at most a quarter of its squared length (Popoviciu), whatever the distribution:

            (max_k s_ki - min_k s_ki)^2 / (4 t) + 2 w_i
        """
        slope = phi["slope"]
        length = largest(slope, -2).clip(min=0) + largest(-slope, -2).clip(min=0)
        return (phi["t"] * length * length / 4 + 2 * phi["w"])[:, None] + 0 * d


def _soft_minimum(cost: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return log(1 + sum_k weight_k exp(-cost_k)), and the share of each k in the sum.

    The 1 is the label's own decision, whose cost is 0.
    """
    shift = largest(-cost).clip(min=0)[..., None]
    terms = weight * exp(-cost - shift)
    total = exp(-shift) + terms.sum(-1)[..., None]
    return (shift + log(total))[..., 0], terms / total
