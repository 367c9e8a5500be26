"""Searches and validation of scikit-learn, judged by decisions.

    scorer = lodl.sklearn.regret_scorer()
    GridSearchCV(DecisionFocusedRegressor(problem, Ridge()), {"estimator__alpha": [1, 10]},
                 scoring=scorer).fit(X, Y)

A context reaches the folds once routing is on: `sklearn.set_config(enable_metadata_routing=True)`,
then `GridSearchCV(...).fit(X, Y, context=context)`.

With a `store`, all fits of a search share the answers around labels. Where its own models predict,
each setting asks for itself. A search over 20 settings in 3 folds takes about as many solver calls
as (extrapolated from 1 and 4 settings, a knapsack of 60 instances: speed/search_calls.py)

- 22 fits with the defaults,
- 13 with `judge="pool"`, where instances share their decisions,
- 9 with `n_rounds=0` and one family, such as `families=[DecisionHinges(squared_error=10.0)]`,
- 7 with `judge="pool", n_rounds=0`, which still tries all losses,
- 7 with `n_rounds=0, families=[], n_samples=1`, which compares the decisions of 2-stage.

So where calls are slow, search with fewer questions, then `fit` once with the best setting and the
defaults.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lodl._arrays import Features, check_context, check_same_rows, in_columns, require
from lodl._typing import Context
from lodl.errors import InvalidInputError
from lodl.evaluation import regret
from lodl.learning._data import FIT, labels_of
from lodl.learning._routing import Request, Routed
from lodl.problems import Problem
from lodl.problems._problem import check_problem_type, label_columns

require("sklearn", extra="sklearn")

__all__ = ["RegretScorer", "regret_scorer"]


def regret_scorer(problem: Problem | None = None) -> "RegretScorer":
    """Return a scorer for `GridSearchCV`, `cross_val_score` and their like: the mean regret.

    It is negative, because scikit-learn takes the largest score.

    Args:
        problem: The problem whose decisions are judged, for any regressor; None is the problem of
            the `DecisionFocusedRegressor` that is scored, alone or as the last step of a pipeline.
    """
    return RegretScorer(problem)


class RegretScorer(Routed):
    """Minus the mean regret of an estimator's decisions, in the objective's unit."""

    _DEFAULTS: Mapping[str, Mapping[str, Request]] = {"score": {"context": True}}  # type: ignore[misc]

    def __init__(self, problem: Problem | None = None) -> None:
        if problem is not None:
            check_problem_type(problem)
        self.problem = problem

    def __call__(
        self,
        estimator: Any,
        X: Features,  # noqa: N803 - as in scikit-learn
        Y: Any,  # noqa: N803
        context: Context = None,
    ) -> float:
        """Return the score of a fitted estimator."""
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        problem = self.problem or getattr(last, "problem", None)
        if problem is None:
            raise InvalidInputError(
                f"{type(last).__name__} has no problem of its own: use `regret_scorer(problem)`."
            )
        if context is None and getattr(last, "has_context_", False):
            raise InvalidInputError(
                "The model was fitted with a `context`, which the scorer did not get. scikit-learn "
                "passes it on after `sklearn.set_config(enable_metadata_routing=True)`."
            )
        names = getattr(last, "label_names_", None) or label_columns(problem, Y, "Y")
        labels = labels_of(in_columns(Y, names, "Y", FIT))
        check_same_rows(X=X, Y=Y, context=context)
        y_hat = np.reshape(estimator.predict(X), labels.shape)
        found = regret(problem, y_hat, labels, context=check_context(context, len(labels)))
        return -float(found.mean())

    def __repr__(self) -> str:
        return f"regret_scorer({'' if self.problem is None else self.problem!r})"
