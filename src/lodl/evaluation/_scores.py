"""Decision loss, regret and decision quality of predictions; a scorer for scikit-learn."""

from __future__ import annotations  # short signatures in the documentation

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_labels
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle
from lodl.problems import Problem

if TYPE_CHECKING:
    from lodl.evaluation._scorer import RegretScorer

_N_RANDOM = 10  # random predictions per instance
_MIN_IN_RANGE = 0.01  # share of labels in [0, 1] below which uniform predictions say nothing

_logger = logging.getLogger(__name__)


def decision_loss(
    oracle: Problem | Oracle, y_hat: npt.ArrayLike, y: npt.ArrayLike, *, context: Context = None
) -> Array:
    """Return DL(y_hat, y), the decision's objective under the true label; lower is better.

    Predictions are projected into the problem's valid range, as they are when a loss is learned.

    Args:
        oracle: The problem whose solver decides, or an oracle, whose options then apply.
        y_hat: Predictions, shape (n, *label_shape). Leading axes, as in
            (models, n, *label_shape), are kept in the result, shape (n,) or (..., n).
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.decision_loss(lodl.domains.TopK(1), y_hat, y)  # a gain of 1, as a loss
        array([-1.])
    """
    return Oracle.of(oracle).decision_loss(y_hat, y, context=context)


def decision_quality(
    oracle: Problem | Oracle, y_hat: npt.ArrayLike, y: npt.ArrayLike, *, context: Context = None
) -> Array:
    """Return the negative of `decision_loss`: higher is better for either sense.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.decision_quality(lodl.domains.TopK(1), y_hat, y)
        array([1.])
    """
    return -decision_loss(oracle, y_hat, y, context=context)


def regret(
    oracle: Problem | Oracle, y_hat: npt.ArrayLike, y: npt.ArrayLike, *, context: Context = None
) -> Array:
    """Return the regret DL(y_hat, y) - DL(y, y): the cost above that of the best decision.

    Arguments and the shape of the result are those of `decision_loss`. It takes one more solver
    call per instance, at the label. Differences due to rounding count as 0. A `ProblemError` says
    that most decisions are better than those made from the labels: `sense` is wrong.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.regret(lodl.domains.TopK(1), y_hat, y)  # 1 is gained, 3 could have been
        array([2.])
    """
    return Oracle.of(oracle).regret(y_hat, y, context=context)


@dataclass(frozen=True)
class QualityScale:
    """The mean decision quality of random predictions and of the true labels."""

    random: float
    optimal: float

    def normalise(self, quality: npt.ArrayLike) -> Array:
        """Return decision quality, averaged over the last axis, so that random is 0, optimal 1."""
        mean = np.mean(np.asarray(quality, dtype=np.float64), axis=-1)
        return np.asarray((mean - self.random) / (self.optimal - self.random))


def quality_scale(
    oracle: Problem | Oracle,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    y_random: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> QualityScale:
    """Measure the decision quality of random predictions and of the true labels.

    Args:
        oracle: The problem whose solver decides, or an oracle.
        y: Labels, shape (n, *label_shape).
        context: One entry per instance, or None.
        y_random: Predictions that score 0, shape (m, n, *label_shape). Defaults to ten, uniform on
            [0, 1], as in the paper. If your labels are not in [0, 1], pass the labels of others:
            `np.random.default_rng(0).permutation(y)[np.newaxis]`.
        random_state: Random seed for them.

    Example:
        >>> y = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> round(lodl.evaluation.quality_scale(lodl.domains.TopK(1), y).optimal, 2)
        0.85
    """
    oracle = Oracle.of(oracle)
    instances = oracle.instances(y, context)
    labels = instances.y
    if y_random is None:
        if np.mean((labels >= 0) & (labels <= 1)) < _MIN_IN_RANGE:
            _logger.warning(
                "Random predictions are drawn from [0, 1], but hardly any label is in that range, "
                "so they are not comparable to a poor model. Pass `y_random`."
            )
        y_random = np.random.default_rng(random_state).random((_N_RANDOM, *labels.shape))
    points = check_labels(y_random, "y_random")
    if points.shape[1:] != labels.shape:
        raise InvalidInputError(
            "`y_random` must hold predictions for all instances, shape "
            f"(m, {', '.join(map(str, labels.shape))}), got {points.shape}."
        )
    both = np.concatenate([points, labels[np.newaxis]])
    quality = decision_quality(oracle, both, labels, context=instances.context).mean(axis=1)
    random, optimal = float(quality[:-1].mean()), float(quality[-1])
    if not optimal > random:
        raise InvalidInputError(
            f"Decision quality cannot be normalised: random predictions give {random:.6g}, the "
            f"true labels {optimal:.6g}. Check `sense`, and that labels change the decision."
        )
    return QualityScale(random=random, optimal=optimal)


def normalised_decision_quality(
    oracle: Problem | Oracle,
    y_hat: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    y_random: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> float:
    """Return mean decision quality, scaled so that random predictions give 0 and labels give 1.

    It takes twelve solver calls per instance. For several models, and for the arguments, see
    `quality_scale`.

    Example:
        >>> y = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> lodl.evaluation.normalised_decision_quality(lodl.domains.TopK(1), y, y)
        1.0
    """
    if np.ndim(y_hat) > np.ndim(y):
        advice = "To score several models, use `quality_scale`."
        expected = f"`y_hat` must have the labels' shape {np.shape(y)}"
        raise InvalidInputError(f"{expected}, got {np.shape(y_hat)}. {advice}")
    quality = decision_quality(oracle, y_hat, y, context=context)
    scale = quality_scale(oracle, y, context=context, y_random=y_random, random_state=random_state)
    return float(scale.normalise(quality))


def regret_scorer(oracle: Problem | Oracle | None = None) -> RegretScorer:
    """Return a scorer for `GridSearchCV`, `cross_val_score` and similar tools.

    The score is the negative mean regret, because scikit-learn maximises scores. A context reaches
    the folds once routing is on: `sklearn.set_config(enable_metadata_routing=True)`, then
    `GridSearchCV(...).fit(X, Y, context=context)`.

    With a store, all fits of a search share the answers around labels. A search over 20 settings in
    3 folds then takes about as many calls as 21 fits with the defaults, and as 5 with
    `n_rounds=0, families=[], n_samples=1`, which compares the decisions of squared error.

    Args:
        oracle: The problem whose decisions are scored, or an oracle of it. Defaults to that of the
            `DecisionFocusedRegressor` that is scored, alone or as the last step of a pipeline.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> from sklearn.model_selection import cross_val_score
        >>> domain = lodl.domains.knapsack(sizes=(30, 1, 1))
        >>> x, y = domain.splits.train.x, domain.splits.train.y
        >>> scorer = lodl.evaluation.regret_scorer(domain.problem)
        >>> bool((cross_val_score(Ridge(), x, y, scoring=scorer) <= 0).all())
        True
    """
    from lodl.evaluation._scorer import RegretScorer  # brings scikit-learn

    return RegretScorer(None if oracle is None else Oracle.of(oracle))
