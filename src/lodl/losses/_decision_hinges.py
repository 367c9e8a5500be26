"""`DecisionHinges`: the largest hinge over decisions, a convex upper bound of the regret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lodl._arrays import check_number
from lodl._typing import Array
from lodl.losses._decision_family import DecisionFamily
from lodl.losses._family import Parameters, Tensor, largest
from lodl.losses._shared_slopes import bounds


@dataclass(frozen=True)
class DecisionHinges(DecisionFamily):
    r"""The largest hinge over the sampled decisions, an upper bound on the regret.

        f(d) = max(0, max_k [ r_k - margin (r_k + s_k . d) ]) + sum_i w_i d_i^2

    r_k is the regret of decision k, s_k its slope. M (D + 1) + D parameters, none of which is
    fitted. Convex, zero at the label, and at least the regret wherever the decision taken was
    sampled and the objective is affine in the label. With margin 2 and all decisions it is SPO+.
    Use it with about 20 samples, with slopes, if the objective is nearly linear in the label.

    Example:
        >>> y = np.array([[3.0, 1.0]])  # the first item is better, by 2
        >>> family, sampler = lodl.DecisionHinges(min_weight=0.0), lodl.AllPerturbed(scale=2.0)
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, sampler=sampler)
        >>> loss.value([[4.0, 0.0]]), loss.value([[1.0, 3.0]])  # 2 - 2 (2 - 4) = 6
        (array([0.]), array([6.]))
    """

    #: Steepness, at least 1. Larger margins keep predictions further from a change of decision.
    margin: float = 2.0
    squared_error: float = 0.0  #: Weight of a squared error that is added (`DecisionFamily`).
    min_weight: float = 1e-2  #: The least weight of that squared error, between 0 and 1.
    max_decisions: int = 50  #: Number of decisions per instance.
    non_negative = ("regret", "w")
    padded: ClassVar[Mapping[str, float]] = {"regret": 0.0, "slope": 0.0}  # hinges never on

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("margin", self.margin, at_least=1)

    def scaled(self, regret: Array, unit: float | None) -> dict[str, Array]:
        return {"regret": np.where(np.isinf(regret), 0.0, regret)}

    def cost(self, phi: Parameters, gap: Tensor) -> Tensor:
        highest = largest(self._hinges(phi, gap))
        return (highest > 0) * highest

    def by_gap(self, phi: Parameters, gap: Tensor) -> Tensor:
        """Return -margin for the highest hinge, if it is above zero. Ties share it."""
        hinges = self._hinges(phi, gap)
        highest = largest(hinges)[..., None]
        is_highest = (hinges >= highest) + 0 * highest  # a mask in the dtype of the hinges
        share = (highest > 0) / is_highest.sum(-1)[..., None]
        return is_highest * (-self.margin * share)

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the curvature of the squared hinges that bound the hinges from above.

        A hinge bends only at its kink, where boosting cannot use it. But for any c > 0

            max(0, u) <= (u + c)^2 / (4 c),   with equality and the same slope at u = c,

        which has curvature 1 / (2 c) in u, and margin^2 s_ki^2 / (2 c) in coordinate i. Here c is
        the mean regret of the instance's decisions, and s the slope of the steepest decision: a
        Newton step closes a hinge of typical height.
        """
        regret, (lowest, highest) = phi["regret"], bounds(phi["slope"])
        is_positive = (regret > 0) + 0 * regret
        c = regret.sum(-1) / is_positive.sum(-1).clip(min=1)
        low, high = lowest * lowest, highest * highest
        steepest = (low + high + abs(low - high)) / 2  # the larger of the two
        bend = self.margin**2 * steepest * ((c > 0) / (2 * c + (c == 0)))[:, None]
        return (bend + 2 * phi["w"])[:, None] + 0 * d

    def _hinges(self, phi: Parameters, gap: Tensor) -> Tensor:
        """Return r_k - margin (r_k + s_k . d), shape (n, m, M)."""
        return (1 - self.margin) * phi["regret"][:, None] - self.margin * gap
