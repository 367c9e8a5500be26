"""`DecisionRanking`: divergence between decision rankings under the label and a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import DecisionFamily
from lodl.losses._family import Parameters, Tensor, largest, log_sum_exp, softmax

_NEVER = 1e9  # regret over t of padding: a decision that no prediction makes likely


@dataclass(frozen=True)
class DecisionRanking(DecisionFamily):
    r"""The divergence between the rankings of decisions under the label and under a prediction.

        f(d) = t KL( softmax_k(-r_k / t) || softmax_k(-(r_k + s_k . d) / t) ) + sum_i w_i d_i^2

    over the sampled decisions and the label's best decision, for which r = 0 and s = 0. r_k is the
    regret of decision k, s_k its slope; the parameters `regret` and `slope` are both over t.
    (M + 1) (D + 1) + D + 1 parameters, none of which is fitted. Convex, smooth and zero at the
    label, in units of the regret. `DecisionHinges` depends on the worst decision only, this family
    on all of them. Use it with about 20 samples if the objective is linear in the label, or nearly
    so, and for boosting. The samples must have slopes.

    Attributes:
        temperature: t in units of the mean regret of the instance's costly decisions or, if
            instances share decisions (`lodl.losses.fit_shared`), of all samples. A lower t gives
            the best decisions more weight and makes the loss less smooth.
        squared_error: Weight of a squared error that is added to the loss (`DecisionFamily`).
        min_weight: The least weight of that squared error, between 0 and 1.
        max_decisions: Number of decisions per instance.

    Example:
        >>> y = np.array([[3.0, 1.0]])  # the first item is better
        >>> family, sampler = lodl.DecisionRanking(), lodl.AllPerturbed(scale=2.0)
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, family=family, sampler=sampler)
        >>> loss.value([[3.0, 1.0]]) < loss.value([[2.5, 1.5]])
        array([ True])
        >>> loss.value([[2.5, 1.5]]) < loss.value([[1.5, 2.5]])
        array([ True])
    """

    temperature: float = 0.3
    squared_error: float = 0.0
    min_weight: float = 1e-2
    max_decisions: int = 50
    non_negative = ("regret", "t", "w")
    padded: ClassVar[Mapping[str, float]] = {"regret": _NEVER, "slope": 0.0}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < np.inf:
            raise InvalidInputError(
                f"`temperature` must be a number above 0, got {self.temperature}."
            )

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        n_decisions = self.max_decisions + 1  # the label's decision included
        return {"regret": (n_decisions,), "slope": (n_decisions, dim), "t": (1,), "w": (dim,)}

    def scaled(self, regret: Array, slope: Array, unit: float | None = None) -> dict[str, Array]:
        if unit is None:
            unit = float(regret[regret > 0].mean()) if (regret > 0).any() else 1.0
        t, lead, dim = self.temperature * unit, regret.shape[:-1], slope.shape[-1]
        scaled = np.where(np.isinf(regret), _NEVER, regret / t)
        return {
            "regret": np.concatenate([np.zeros((*lead, 1)), scaled], axis=-1),
            "slope": np.concatenate([np.zeros((*lead, 1, dim)), slope / t], axis=-2),
            "t": np.full((*lead, 1), t),
        }

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return the loss; p and q are the distributions under the label and the prediction.

        KL(p || q) = p . (s d) + log sum_k exp(-(r_k + s_k . d)) - log sum_k exp(-r_k), all over t.
        """
        score = -phi["regret"][:, None]
        gap = d @ phi["slope"].swapaxes(-1, -2)
        divergence = (softmax(score) * gap).sum(-1) + log_sum_exp(score - gap) - log_sum_exp(score)
        floor = (phi["w"][:, None] * d * d).sum(-1)
        return phi["t"] * divergence.clip(min=0) + floor  # negative only by rounding

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        score = -phi["regret"][:, None]
        gap = d @ phi["slope"].swapaxes(-1, -2)
        moved = (softmax(score) - softmax(score - gap)) @ phi["slope"]
        return phi["t"][:, None] * moved + 2 * phi["w"][:, None] * d

    def curvature(self, phi: Parameters, d: Tensor) -> Tensor:
        """Return a bound of the second derivative that holds for every prediction.

        The second derivative by coordinate i is the variance of s_ki over t, which vanishes where
        one decision dominates: boosting would take huge steps there. The variance of numbers in an
        interval is at most a quarter of its squared length (Popoviciu):

            (max_k s_ki - min_k s_ki)^2 / (4 t) + 2 w_i
        """
        columns = phi["slope"].swapaxes(-1, -2)
        length = largest(columns) + largest(-columns)
        return (phi["t"] * length * length / 4 + 2 * phi["w"])[:, None] + 0 * d
