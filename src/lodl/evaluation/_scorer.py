"""`regret_scorer`: scikit-learn's searches and cross-validation, scored by regret."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from lodl._arrays import Features, check_context, check_same_rows, in_columns, labels_of
from lodl._typing import Context
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.problems._problem import label_columns


def regret_scorer(oracle: Problem | Oracle | None = None) -> "RegretScorer":
    """Return a scorer for `GridSearchCV`, `cross_val_score` and similar tools.

    The score is the negative mean regret, because scikit-learn maximises scores. A context reaches
    the folds once routing is on: `sklearn.set_config(enable_metadata_routing=True)`, then
    `GridSearchCV(...).fit(X, Y, context=context)`.

    With a store, all fits of a search share the answers around labels, but each setting calls the
    solver where its own models predict. A search over 20 settings in 3 folds takes about as many
    calls as 21 fits with the defaults, and as 5 with `n_rounds=0, families=[], n_samples=1`, which
    compares the decisions of squared error (speed/search_calls.py). If calls are slow, search with
    fewer of them, then `fit` once with the best setting and the defaults.

    Args:
        oracle: The problem whose decisions are scored, or an oracle of it, for any regressor.
            Defaults to that of the `DecisionFocusedRegressor` that is scored, alone or as the last
            step of a pipeline.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> from sklearn.model_selection import cross_val_score
        >>> domain = lodl.domains.knapsack(sizes=(30, 1, 1))
        >>> x, y = domain.splits.train.x, domain.splits.train.y
        >>> scorer = lodl.evaluation.regret_scorer(domain.problem)
        >>> bool((cross_val_score(Ridge(), x, y, scoring=scorer) <= 0).all())
        True
    """
    return RegretScorer(None if oracle is None else Oracle.of(oracle))


class RegretScorer(BaseEstimator):  # type: ignore[misc]
    """The negative mean regret of an estimator's decisions, in the objective's unit."""

    # scikit-learn passes a context on by default, once routing is switched on. It reads the
    # signature of `score`, and calls the scorer.
    __metadata_request__score = {"context": True, "estimator": UNUSED}  # noqa: RUF012

    def __init__(self, oracle: Oracle | None = None) -> None:
        self.oracle = oracle

    def score(
        self,
        estimator: Any,
        X: Features,  # noqa: N803 - as in scikit-learn
        Y: Any,  # noqa: N803
        context: Context = None,
    ) -> float:
        """Return the score of a fitted estimator."""
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        oracle = self.oracle or getattr(last, "oracle", None)
        if oracle is None:
            raise InvalidInputError(
                f"{type(last).__name__} has no problem: use `regret_scorer(problem)`."
            )
        oracle, result = Oracle.of(oracle), getattr(last, "result_", None)
        if context is None and getattr(result, "has_context", False):
            raise InvalidInputError(
                "The model was fitted with a `context`, which the scorer did not get. scikit-learn "
                "passes it on after `sklearn.set_config(enable_metadata_routing=True)`."
            )
        names = getattr(result, "label_names", None) or label_columns(oracle.problem, Y, "Y")
        labels = labels_of(in_columns(Y, names, "Y", "it had in `fit`"))
        check_same_rows(X=X, Y=Y, context=context)
        y_hat = np.reshape(estimator.predict(X), labels.shape)
        contexts = check_context(context, len(labels))
        return -float(oracle.regret(y_hat, labels, context=contexts).mean())

    __call__ = score
