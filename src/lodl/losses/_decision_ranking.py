"""`DecisionRanking`: divergence between decision rankings under the label and a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lodl._arrays import check_number
from lodl._typing import Array
from lodl.losses._decision_family import DecisionFamily
from lodl.losses._family import Parameters, Tensor, log_sum_exp, softmax
from lodl.losses._shared_slopes import bounds

_NEVER = 1e9  # regret over t of padding: a decision that no prediction makes likely


@dataclass(frozen=True)
class DecisionRanking(DecisionFamily):
    r"""The divergence between the rankings of decisions under the label and under a prediction.

        f(d) = t KL( softmax_k(-r_k / t) || softmax_k(-(r_k + s_k . d) / t) ) + sum_i w_i d_i^2

    over the sampled decisions and the label's best decision, for which r = 0 and s = 0. r_k is the
    regret of decision k, s_k its slope; the parameter `regret` is over t.
    (M + 1) (D + 1) + D + 1 parameters, none of which is fitted. Convex, smooth and zero at the
    label, in units of the regret. `DecisionHinges` depends on the worst decision only, this family
    on all of them. Use it with about 20 samples if the objective is linear in the label, or nearly
    so, and for boosting. The samples must have slopes.

    Example:
        >>> y = np.array([[3.0, 1.0]])  # the first item is better
        >>> family, sampler = lodl.DecisionRanking(), lodl.AllPerturbed(scale=2.0)
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, sampler=sampler)
        >>> loss.value([[3.0, 1.0]]) < loss.value([[2.5, 1.5]]) < loss.value([[1.5, 2.5]])
        array([ True])
    """

    #: t in units of the mean regret of the instance's costly decisions or, if instances share
    #: decisions (`lodl.losses.fit_shared`), of all samples. A lower t gives the best decisions more
    #: weight and makes the loss less smooth.
    temperature: float = 0.3
    squared_error: float = 0.0  #: Weight of a squared error that is added (`DecisionFamily`).
    min_weight: float = 1e-2  #: The least weight of that squared error, between 0 and 1.
    max_decisions: int = 50  #: Number of decisions per instance.
    non_negative = ("regret", "t", "w")
    is_smooth = True
    has_own = True
    padded: ClassVar[Mapping[str, float]] = {"regret": _NEVER, "slope": 0.0}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("temperature", self.temperature, above=0)

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return super().parameter_shapes(dim) | {"t": (1,)}

    def scaled(self, regret: Array, unit: float | None) -> dict[str, Array]:
        if unit is None:
            unit = float(regret[regret > 0].mean()) if (regret > 0).any() else 1.0
        t = self.temperature * unit
        scaled = np.where(np.isinf(regret), _NEVER, regret / t)
        return {"regret": scaled, "t": np.full((*regret.shape[:-1], 1), t)}

    def cost(self, phi: Parameters, gap: Tensor) -> Tensor:
        """Return the divergence; p and q are the distributions under label and prediction.

        KL(p || q) = p . (s d) + log sum_k exp(-(r_k + s_k . d)) - log sum_k exp(-r_k), all over t.
        """
        score, gap = -phi["regret"][:, None], gap / phi["t"][:, None]
        divergence = (softmax(score) * gap).sum(-1) + log_sum_exp(score - gap) - log_sum_exp(score)
        return phi["t"] * divergence.clip(min=0)  # negative only by rounding

    def by_gap(self, phi: Parameters, gap: Tensor) -> Tensor:
        score = -phi["regret"][:, None]
        return softmax(score) - softmax(score - gap / phi["t"][:, None])

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return a bound of the second derivative that holds for every prediction.

        The second derivative by coordinate i is the variance of s_ki over t, which vanishes where
        one decision dominates: boosting would take huge steps there. The variance of numbers in an
        interval is at most a quarter of its squared length (Popoviciu):

            (max_k s_ki - min_k s_ki)^2 / (4 t) + 2 w_i
        """
        lowest, highest = bounds(phi["slope"])
        length = highest - lowest
        return (length * length / (4 * phi["t"]) + 2 * phi["w"])[:, None] + 0 * d
