"""The scorer that `regret_scorer` returns, apart from `_scores`: it brings scikit-learn."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from lodl._arrays import Features, check_same_rows, in_columns, labels_of
from lodl._typing import Context
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle
from lodl.problems._problem import label_columns


class RegretScorer(BaseEstimator):  # type: ignore[misc]
    """The negative mean regret of an estimator's decisions, in the objective's unit."""

    # Once routing is on, scikit-learn passes a context on by default, as `score` has it.
    __metadata_request__score = {"context": True, "estimator": UNUSED}  # noqa: RUF012

    def __init__(self, oracle: Oracle | None = None) -> None:
        self.oracle = oracle

    def score(self, estimator: Any, X: Features, Y: Any, context: Context = None) -> float:
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
        return -float(oracle.regret(y_hat, labels, context=context).mean())

    __call__ = score
