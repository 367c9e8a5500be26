r"""`DecisionFamily`: losses made of sampled decisions, and the proof that they bound the regret.

The paper's families learn from what a decision *costs*. The solver also returns *which* decision it
took, and that is worth more: a handful of answers per instance instead of hundreds.

**Notation.** For an instance with label y and best decision z* = solve(y), let
e(z; v) = f(z; v) - f(z*; v) be the cost of a decision z above that of z* if the label were v, costs
counted so that lower is better. An answer about z_k is its regret r_k = e(z_k; y) >= 0 and its
slope s_k, the derivative of e(z_k; v) by v at v = y. For a linear objective f(z; v) = v . z the
slope is z_k - z* (z* - z_k if the objective is a gain). If f is affine in the label, under a
prediction y + d

    e(z_k; y + d) = r_k + s_k . d                                                            (1)

**The bound.** Let L(d) = max(0, max_k [ r_k - m (r_k + s_k . d) ]) with margin m > 0. If the
decision taken under y + d is among the z_k, then regret(y + d) <= L(d). Proof:

 1. The decision z_j taken under y + d is the cheapest there, so f(z_j; y + d) <= f(z*; y + d).
 2. Hence e(z_j; y + d) <= 0, and by (1) r_j + s_j . d <= 0.
 3. Therefore -m (r_j + s_j . d) >= 0, and the j-th term is at least r_j.
 4. r_j is the regret of the prediction; if z_j = z*, the regret is 0 and L >= 0.
 5. L is a maximum of affine functions of d, so it is convex, and L >= 0.
 6. At d = 0 the k-th term is (1 - m) r_k <= 0 for m >= 1, so L(0) = 0, the minimum.

**When it is exact.** With m = 2 and all decisions, L is the SPO+ loss of Elmachtoub and Grigas
("Smart 'predict, then optimize'", 2022): for a linear objective the k-th term is
(y - 2 y_hat) . s_k. With m = 1 it is the support function of the differences -s_k.

**When it is local.** If f is not affine in the label, (1) is a first-order model around the label:
good near it, no bound far from it, and at a kink of f it depends on the side of the difference.
Families that see regrets only (`ConvexDirectedQuadratic`) may be better there. Held-out samples
show it: slopes do not *explain* a decision that the solver took although another known decision is
cheaper by (1). `lodl.evaluation.summarise` reports the share that is explained. A decision that no
sample led to is not in the loss: sample again where the model predicts. The term most violated at
y_hat with m = 2 belongs to the decision taken at the point 2 y_hat - y.

**Relatives.** Mulamba et al. ("Contrastive losses and solution caching", 2021) train on a cache of
solutions shared by all instances, Mandi et al. ("Decision-focused learning: through the lens of
learning to rank", 2022) rank the decisions of that cache; both for linear objectives.
`lodl.losses.fit_shared` shares decisions as they do, for affine objectives. New here: any
objective, by its slope; decisions of any kind, which are never compared nor stored; a loss per
instance, made before training and saved in a file; no solver in the training loop; and rounds of
further calls, which are cutting planes of the full maximum.

**Free directions.** Errors that change no difference between decisions, such as a constant added
to all items of which exactly one is chosen, cost nothing, and a prediction may drift along them
until an output layer saturates. A weak squared error prevents that: `min_weight`, in units of the
samples' errors. Its default of 0.01 is the best for hinges, or within noise of it, on paths,
advertising and top-1 choices; 0.1 helps where hinges are a poor model, and most linear models of
rankings, but can make the final ReLU of a network die (results/min_weight.md). It does not protect
from a learning rate that is too high for a tanh: scale the outputs of a network to the labels, as
the learner does (results/README.md, Portfolio).
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, check_at_least, error_scale, squared_error_weights
from lodl.oracle import Answers

_SLIGHT = 1e-3  # share of the mean regret that an inexact solver may lose


class DecisionFamily(Family):
    """A loss whose parameters are distinct decisions: nothing is fitted.

    The decisions are those sampled at the instance or, with `lodl.losses.fit_shared`, at any
    instance. Parameters are padded to the largest number of decisions in use.

    Attributes:
        squared_error: Weight of a squared error that is added to the loss: an error of the samples'
            size costs this share of the instance's mean regret.
        min_weight: The least weight of that squared error, which pins directions that change no
            decision.
        max_decisions: Number of decisions per instance. `fit_shared` ignores it.
    """

    is_convex = True
    uses_slopes = True
    squared_error: float
    max_decisions: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("max_decisions", self.max_decisions)
        check_at_least("squared_error", self.squared_error)

    @abstractmethod
    def scaled(self, regret: Array, slope: Array, unit: float | None = None) -> dict[str, Array]:
        """Return the parameters of M decisions, without the squared error; M may be 0.

        Args:
            regret: Regret of each decision, shape (M,).
            slope: Its derivative by the label, shape (M, D).
            unit: Scale of the regrets. Defaults to their mean.
        """

    def fit(self, answers: Answers) -> dict[str, Array]:
        """Return the distinct decisions, and the weights of the squared error."""
        selected = selected_decisions(answers, self.max_decisions)
        mean, scale = max(float(answers.regret.mean()), 0.0), error_scale(answers.d)
        _, slope = decisions_of(answers)
        return self.made_of(answers.regret[selected], slope[selected], mean, scale)

    def made_of(
        self, regret: Array, slope: Array, mean: float, scale: Array, unit: float | None = None
    ) -> dict[str, Array]:
        """Return the parameters of given decisions, the squared error included.

        Args:
            regret: Regret of each decision, shape (M,).
            slope: Its derivative by the label, shape (M, D).
            mean: Typical regret of the instance.
            scale: Typical error of each coordinate, shape (D,).
            unit: Scale of the regrets. Defaults to the mean of `regret`.
        """
        regret = np.maximum(regret, 0.0)  # a heuristic solver may beat the label's decision
        cost = max(self.min_weight, self.squared_error) * mean
        return {**self.scaled(regret, slope, unit), "w": squared_error_weights(cost, scale)}

    def with_room_for(self, n_decisions: int) -> Self:
        """Return this family with `max_decisions=n_decisions`, at least 1."""
        family: Any = self  # members are dataclasses
        resized: Self = replace(family, max_decisions=max(1, n_decisions))
        return resized

    def fallback(self, *, cost: float, scale: Array) -> dict[str, Array]:
        no_decision = self.scaled(np.zeros(0), np.zeros((0, len(scale))))
        return {**no_decision, "w": squared_error_weights(cost, scale)}


def selected_decisions(answers: Answers, max_decisions: int) -> npt.NDArray[np.intp]:
    """Return, for each selected decision, the first point that led to it.

    The label's decision, which has neither regret nor slope, is left out. Of the others, those are
    selected that account for most of the sampled regret: regret times the number of points that
    led to the decision. So the costliest and the most frequent decisions, without which the loss
    would not bound the regret where it matters, come before rare decisions that cost little.
    """
    decision, slope = decisions_of(answers)
    _, first, count = np.unique(decision, return_index=True, return_counts=True)
    regret = answers.regret[first]
    is_other = (regret > 0) | slope[first].any(axis=1)
    first, importance = first[is_other], (regret * count)[is_other]
    return first[np.argsort(-importance, kind="stable")[:max_decisions]]


def are_explained(
    d: Array, regret: Array, slope: Array, known_regret: Array, known_slope: Array
) -> npt.NDArray[np.bool_]:
    """Return whether each decision taken is, by its slope, as cheap as all known decisions.

    The solver takes the cheapest decision under a prediction y + d, and by (1) a decision costs
    r_k + s_k . d more there than the label's. If another decision seems to cost less, the objective
    is not affine in the label, or the solver is not exact.

    Args:
        d: Errors at which decisions were taken, shape (K, D).
        regret: Regret of each decision taken, shape (K,).
        slope: Slope of each decision taken, shape (K, D).
        known_regret: Regrets of the known decisions, shape (M,).
        known_slope: Slopes of the known decisions, shape (M, D).
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
