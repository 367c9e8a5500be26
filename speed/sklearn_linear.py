"""Linear models of scikit-learn: trained on the loss itself, or refitted to shifted labels.

    python speed/sklearn_linear.py > results/learner/sklearn_linear.md

The regressor with its defaults on tasks of `lodl benchmark learner`, data seeds 1001 to 1003, which
no table shows. Regret of the test instances, as a share of the cost of the best decisions, mean
over seeds; 2-stage is the plain `fit` of the same model. Names of tasks may follow the command. It
takes some ten minutes.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from lodl import DecisionFocusedRegressor
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.domains import Domain
from lodl.evaluation import decision_loss, regret
from lodl.training.sklearn._linear_form import LinearForm
from lodl_benchmarks.learner import TASKS

SEEDS = (1001, 1002, 1003)
NAMES = ("small-path", "path", "knapsack", "item-knapsack", "newsvendor", "assignment", "energy")
MODELS: dict[str, Callable[[], Any]] = {
    "Ridge(1)": lambda: Ridge(1.0),
    "Lasso(0.05)": lambda: Lasso(0.05),
    "StandardScaler, PolynomialFeatures(2), Ridge(1)": lambda: make_pipeline(
        StandardScaler(), PolynomialFeatures(2), Ridge(1.0)
    ),
}


@contextmanager
def refitted() -> Iterator[None]:
    """Treat linear models as all others are."""
    with patch.object(LinearForm, "of", lambda *_: None):
        yield


def relative_regret(domain: Domain, y_hat: Array) -> float:
    test = domain.splits.test
    how: dict[str, Any] = {"context": test.context}
    best = np.abs(decision_loss(domain.problem, test.y, test.y, **how).mean())
    return float(regret(domain.problem, y_hat, test.y, **how).mean() / best)


def regrets(name: str, seed: int, make: Callable[[], Any]) -> list[float]:
    """Return the regret of squared error, of shifted labels, and of the loss itself."""
    task = TASKS[name]
    domain = task.build(seed)
    data, test = domain.splits.train_and_validation, domain.splits.test

    def fitted() -> DecisionFocusedRegressor:
        model = DecisionFocusedRegressor(domain.problem, make())
        return model.fit(data.x, data.y, context=data.context, validation=task.validation)

    with refitted():
        shifted = fitted()
    models = (shifted.baseline_, shifted, fitted())
    return [relative_regret(domain, model.predict(test.x)) for model in models]


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")  # a lasso that has not converged
    print(f"# Linear models of scikit-learn\n\n{__doc__}")
    print("| task | model | 2-stage | shifted labels | the loss itself |\n|---|---|---|---|---|")
    with one_blas_thread():
        for name in names:
            for title, make in MODELS.items():
                found = np.mean([regrets(name, seed, make) for seed in SEEDS], axis=0)
                cells = " | ".join(f"{one:.4f}" for one in found)
                print(f"| {name} | {title} | {cells} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(NAMES))
