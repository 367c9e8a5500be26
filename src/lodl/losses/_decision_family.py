r"""`DecisionFamily`: losses made of sampled decisions, which bound or rank the regret.

For an instance with label y and best decision z* = solve(y), let e(z; v) be the cost of a decision
z above that of z* if the label were v, costs counted so that lower is better. An answer about z_k
is its regret r_k = e(z_k; y) >= 0 and its slope s_k, the derivative of e(z_k; v) by v at v = y. If
the objective is affine in the label, under a prediction y + d

    e(z_k; y + d) = r_k + s_k . d                                                            (1)

and the solver takes z_k only if this is not positive. Therefore, with a margin m >= 1,

    L(d) = max(0, max_k [ r_k - m (r_k + s_k . d) ])

is convex, zero at the label, and at least the regret if the decision taken under y + d is among the
z_k. The documentation has the proof (decision families). If the objective is not affine, (1) is a
first-order model around the label. Held-out samples show it: slopes do not *explain* a decision
that the solver took although another known decision is cheaper by (1).

Errors that change no difference between decisions cost nothing, and a prediction may drift along
them until an output layer saturates. A weak squared error prevents that: `min_weight`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, Parameters, Tensor, check_at_least, error_scale, mse_weights
from lodl.losses._shared_slopes import SharedSlopes, gaps, mixed
from lodl.oracle import Answers

_SLIGHT = 1e-3  # share of the mean regret that an inexact solver may lose


class DecisionFamily(Family):
    """A loss whose parameters are distinct decisions: nothing is fitted.

        f(d) = cost(r, s_1 . d, ..., s_M . d) + sum_i w_i d_i^2

    The decisions are those sampled at the instance or, with `lodl.losses.fit_shared`, at any
    instance. Parameters are padded to the largest number of decisions in use. The slopes of
    decisions that instances share are `SharedSlopes`, which hold each decision once.
    """

    is_convex = True
    uses_slopes = True
    #: Whether the first decision is the label's own, without regret and slope.
    has_own: ClassVar[bool] = False
    #: Weight of a squared error that is added to the loss: an error of the samples' size costs this
    #: share of the instance's mean regret, `min_weight` at least. The fewer decisions are known,
    #: the larger it should be: the learner uses 0.01 or 0.1 if instances share them, else 1 to 10.
    squared_error: float
    max_decisions: int  #: Number of decisions per instance, which `fit_shared` ignores.

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("max_decisions", self.max_decisions)
        check_at_least("squared_error", self.squared_error)

    @abstractmethod
    def cost(self, phi: Parameters, gap: Tensor) -> Tensor:
        """Return the loss, without its squared error, from gaps s_k . d (n, m, M): (n, m)."""

    @abstractmethod
    def by_gap(self, phi: Parameters, gap: Tensor) -> Tensor:
        """Return the derivative of the cost by each gap, shape (n, m, M)."""

    @abstractmethod
    def scaled(self, regret: Array, unit: float | None) -> dict[str, Array]:
        """Return all parameters but slopes and weights. An infinite regret is padding.

        Regrets have shape (..., M). Their unit defaults to their mean.
        """

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        n_decisions = self.max_decisions + self.has_own
        return {"regret": (n_decisions,), "slope": (n_decisions, dim), "w": (dim,)}

    def value(self, phi: Parameters, d: Tensor) -> Tensor:
        return self.cost(phi, gaps(phi["slope"], d)) + (phi["w"][:, None] * d * d).sum(-1)

    def gradient(self, phi: Parameters, d: Tensor) -> Tensor:
        by_gap = self.by_gap(phi, gaps(phi["slope"], d))
        return mixed(by_gap, phi["slope"]) + 2 * phi["w"][:, None] * d

    def fit(self, answers: Answers) -> dict[str, Array]:
        """Return the distinct decisions, and the weights of the squared error.

        The label's decision, which has neither regret nor slope, is left out. Of the others, those
        are selected that account for most of the sampled regret: regret times number of points.
        """
        decision, slope = decisions_of(answers)
        _, first, count = np.unique(decision, return_index=True, return_counts=True)
        regret, slope = answers.regret[first], slope[first]
        others = np.flatnonzero((regret > 0) | slope.any(axis=1))
        order = np.argsort(-(regret * count)[others], kind="stable")
        selected = others[order[: self.max_decisions]]
        regret = np.maximum(regret, 0.0)  # a heuristic solver may beat the label's decision
        mean, scale = max(float(answers.regret.mean()), 0.0), error_scale(answers.d)
        return self.made_of(*self._with_own(regret[selected], slope[selected]), mean, scale)

    def made_of(
        self,
        regret: Array,
        slope: Array | SharedSlopes,
        mean: float,
        scale: Array,
        unit: float | None = None,
    ) -> dict[str, Any]:
        """Return the parameters of decisions, squared error of typical cost and scale included."""
        w = mse_weights(max(self.min_weight, self.squared_error) * mean, scale)
        return {**self.scaled(regret, unit), "slope": slope, "w": w}

    def fallback(self, *, cost: float, scale: Array) -> dict[str, Array]:
        regret, slope = self._with_own(np.zeros(0), np.zeros((0, len(scale))))
        w = mse_weights(cost, scale)
        return {**self.scaled(regret, None), "slope": slope, "w": w}

    def _with_own(self, regret: Array, slope: Array) -> tuple[Array, Array]:
        """Return decisions after the label's own, which families without it need if it is alone."""
        if not self.has_own and len(regret):
            return regret, slope
        return np.append(0.0, regret), np.vstack([np.zeros(slope.shape[1]), slope])


def are_explained(
    d: Array, regret: Array, slope: Array, known_regret: Array, known_slope: Array
) -> npt.NDArray[np.bool_]:
    """Return whether decisions taken at errors `d` are, by their slopes, the cheapest known.

    Otherwise the objective is not affine in the label, or the solver is not exact.
    """
    cost = regret + (slope * d).sum(axis=1)
    others = known_regret + d @ known_slope.T
    slight = _SLIGHT * np.abs(np.concatenate([regret, known_regret])).mean()
    return np.asarray(cost <= others.min(axis=1, initial=0.0) + slight)


def decisions_of(answers: Answers) -> tuple[npt.NDArray[np.intp], Array]:
    """Return the number and the slope of each point's decision, shapes (K,) and (K, D)."""
    if answers.decision is None or answers.slope is None:
        raise InvalidInputError(
            "`samples` must have slopes for a decision family: sample with `slopes=True`."
        )
    return answers.decision, answers.slope[answers.decision]
