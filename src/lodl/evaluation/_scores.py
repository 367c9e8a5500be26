"""Decision loss and regret of predictions; a scorer for scikit-learn."""

from __future__ import annotations  # short signatures in the documentation

from typing import TYPE_CHECKING

import numpy.typing as npt

from lodl._typing import Array, Context
from lodl.oracle import Oracle
from lodl.problems import Problem

if TYPE_CHECKING:
    from lodl.evaluation._scorer import RegretScorer


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


def regret(
    oracle: Problem | Oracle, y_hat: npt.ArrayLike, y: npt.ArrayLike, *, context: Context = None
) -> Array:
    """Return the regret DL(y_hat, y) - DL(y, y), what a decision costs more than the best one.

    Arguments and the shape of the result are those of `decision_loss`. It takes one more solver
    call per instance, at the label. Differences due to rounding count as 0. A `ProblemError` says
    that most decisions are better than those made from the labels: `sense` is wrong.

    Example:
        >>> y, y_hat = np.array([[3.0, 1.0]]), np.array([[1.0, 2.0]])
        >>> lodl.evaluation.regret(lodl.domains.TopK(1), y_hat, y)  # 1 is gained, 3 could have been
        array([2.])
    """
    return Oracle.of(oracle).regret(y_hat, y, context=context)


def regret_scorer(oracle: Problem | Oracle | None = None) -> RegretScorer:
    """Return a scorer for `GridSearchCV`, `cross_val_score` and similar tools.

    The score is the negative mean regret, because scikit-learn maximises scores. A context reaches
    the folds once routing is on: `sklearn.set_config(enable_metadata_routing=True)`, then
    `GridSearchCV(...).fit(X, Y, context=context)`.

    Args:
        oracle: The problem whose decisions are scored, or its oracle. Defaults to the oracle of
            the `DecisionFocusedRegressor` that is scored, alone or as the last step of a pipeline.

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
