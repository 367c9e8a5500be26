r"""Losses made of the decisions that the oracle met, which bound the regret or rank it.

The families of the paper learn from what a decision *costs*. The solver also says *which* decision
it was, and that is worth more: a handful of answers per instance instead of hundreds.

**What is known.** For an instance with label y and best decision z* = solve(y), let
e(z; v) = f(z; v) - f(z*; v) be what a decision z costs more than z* if the label were v, costs
counted so that lower is better. An answer about z_k is its regret r_k = e(z_k; y) >= 0 and its
slope s_k, the derivative of e(z_k; v) by v at v = y. For a linear objective f(z; v) = v . z the
slope is z_k - z* (z* - z_k where the objective is a gain). Where f is affine in the label, under a
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
good near it, not a bound far from it, and at a kink of f it depends on the side of the difference.
Families that see regrets only (`ConvexDirectedQuadratic`) may be better there. The samples
tell: a decision that the solver took and that does not look the cheapest by (1) is not explained
by the slopes, and `summary()` says how many are. A
decision that no candidate met is not in the loss: ask again where the model predicts. The term most
violated at y_hat with m = 2 is that of the decision for the candidate 2 y_hat - y.

**Relatives.** Mulamba et al. ("Contrastive losses and solution caching", 2021) train on a cache of
solutions shared by all instances, Mandi et al. ("Decision-focused learning: through the lens of
learning to rank", 2022) rank the decisions of that cache; both for linear objectives.
`lodl.losses.fit_shared` shares decisions as they do, for affine objectives. New here: any
objective, by its slope; decisions of any kind, which are never compared nor stored; a loss per
instance, made before training and kept in a file; no solver in the training loop; and rounds of
further questions, which are cutting planes of the full maximum.

**Free directions.** Errors that change no difference between decisions, such as a constant added
to all items where exactly one is chosen, cost nothing, and a prediction may drift along them until
an output layer saturates. A weak squared error draws them back: `min_weight`, in units of the
samples' errors. Its default of 0.01 is the best for hinges, or within noise of it, on paths,
advertising and top-1 choices; 0.1 helps where hinges are a poor model, and most linear models of
rankings, but a ReLU at the end of a network may die of it (results/min_weight.md). It is no
protection from a learning rate that is too high for a tanh: scale the outputs of a network to the
labels, as the learner does (results/README.md, Portfolio).
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_instance_of
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, check_min_weight, squared_error_weights
from lodl.losses._standardised import error_scale
from lodl.oracle import Answers

_SLIGHT = 1e-3  # of the mean regret: what a solver may leave on the table


class DecisionFamily(Family):
    """A loss whose parameters are distinct decisions: nothing is fitted.

    They are those met at the instance, or, with `lodl.losses.fit_shared`, also those of others.

    Parameters of an instance with M decisions are padded to the largest M in use.

    Attributes:
        squared_error: Weight of a squared error that is added to the loss: a prediction as wrong
            as the samples costs this share of the instance's mean regret more.
        min_weight: The least weight of that squared error, which pins directions that no decision
            sees.
        max_decisions: Number of decisions kept per instance; a shared loss has as many as it took.
    """

    is_convex = True
    uses_slopes = True
    squared_error: float
    max_decisions: int

    def __post_init__(self) -> None:
        check_min_weight(self.min_weight)
        check_count("max_decisions", self.max_decisions)
        if not 0 <= self.squared_error < np.inf:
            raise InvalidInputError(
                f"`squared_error` must be a weight of at least 0, got {self.squared_error!r}."
            )

    @abstractmethod
    def scaled(self, regret: Array, slope: Array, unit: float | None = None) -> dict[str, Array]:
        """Return the parameters for decisions with regrets (M,) and slopes (M, D); M may be 0.

        Args:
            regret: What each decision costs more than the label's own.
            slope: Its derivative by the label.
            unit: The size of a regret; None takes the mean of these.
        """

    def fit(self, answers: Answers) -> dict[str, Array]:
        """Return the distinct decisions, and the weights of the squared error."""
        kept = kept_decisions(answers, self.max_decisions)
        mean, scale = max(float(answers.regret.mean()), 0.0), error_scale(answers.d)
        return self.made_of(answers.regret[kept], _decisions(answers)[1][kept], mean, scale)

    def made_of(
        self, regret: Array, slope: Array, mean: float, scale: Array, unit: float | None = None
    ) -> dict[str, Array]:
        """Return the parameters for given decisions.

        Args:
            regret: What each costs more than the label's own, shape (M,).
            slope: Its derivative by the label, shape (M, D).
            mean: The regret that is typical of the instance.
            scale: The error that is typical of each coordinate, shape (D,).
            unit: The size of a regret; None takes the mean of the decisions.
        """
        regret = np.maximum(regret, 0.0)  # a heuristic solver may find less
        cost = max(self.min_weight, self.squared_error) * mean
        return {**self.scaled(regret, slope, unit), "w": squared_error_weights(cost, scale)}

    def with_room_for(self, n_decisions: int) -> "DecisionFamily":
        """Return the same family that keeps so many decisions per instance."""
        settings: Any = self  # members are dataclasses
        return cast(DecisionFamily, replace(settings, max_decisions=max(1, n_decisions)))

    def stand_in(self, *, cost: float, scale: Array) -> dict[str, Array]:
        nothing = self.scaled(np.zeros(0), np.zeros((0, len(scale))))
        return {**nothing, "w": squared_error_weights(cost, scale)}


def check_made_of_decisions(family: Family) -> DecisionFamily:
    """Check that a loss is made of decisions."""
    wanted = "a family made of decisions, such as `lodl.DecisionHinges()`"
    check_instance_of(DecisionFamily, "family", family, wanted=wanted)
    assert isinstance(family, DecisionFamily)
    return family


def kept_decisions(answers: Answers, max_decisions: int) -> npt.NDArray[np.intp]:
    """Return, for each decision that a loss keeps, the first candidate that led to it.

    The label's own decision, which has neither regret nor slope, is left out. Of the others those
    are kept that account for most of the sampled regret: regret times the number of candidates that
    led there. So the costliest and the most often met stay, which the loss must know to be a bound
    where it matters, and a rare decision that hardly costs anything goes first.
    """
    decision, slope = _decisions(answers)
    _, first, count = np.unique(decision, return_index=True, return_counts=True)
    regret = answers.regret[first]
    is_other = (regret > 0) | slope[first].any(axis=1)
    first, importance = first[is_other], (regret * count)[is_other]
    return first[np.argsort(-importance, kind="stable")[:max_decisions]]


def are_explained(taken: Answers, met: Answers) -> npt.NDArray[np.bool_]:
    """Return whether, by the slopes, each decision taken is as cheap as all that were met.

    The solver takes the cheapest decision under a prediction y + d, and by (1) a decision costs
    r_k + s_k . d more there than the label's own. Where another one seems to cost less, the
    objective is not affine in the label, or the solver is not exact.
    """
    _, slope = _decisions(taken)
    cost = taken.regret + (slope * taken.d).sum(axis=1)
    decision, slope = _decisions(met)
    _, first = np.unique(decision, return_index=True)
    others = met.regret[first] + taken.d @ slope[first].T
    slight = _SLIGHT * np.abs(np.concatenate([taken.regret, met.regret])).mean()
    return np.asarray(cost <= others.min(axis=1, initial=0.0) + slight)


def _decisions(answers: Answers) -> tuple[npt.NDArray[np.intp], Array]:
    """Return the number and the slope of each candidate's decision, shapes (K,) and (K, D)."""
    if answers.decision is None or answers.slope is None:
        raise InvalidInputError(
            "`samples` must have slopes for a family that learns from decisions: sample with "
            "`Oracle.sample(..., slopes=True)`."
        )
    return answers.decision, answers.slope[answers.decision]
