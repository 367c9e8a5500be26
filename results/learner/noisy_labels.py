"""Labels drawn half of the way to a flexible model: do losses of less noisy labels decide better?

    python results/learner/noisy_labels.py

For an affine objective only the expected label matters, so a label's noise is noise in its loss.
Labels are moved half of the way to out-of-fold predictions of a kernel ridge regression, whose
width and penalty are selected by folds, and the learner is fitted with its defaults to them and to
the labels as they are. Six tasks of `lodl benchmark peers`, data seeds 1001 to 1012. Numbers are
regrets of true test labels over that of squared error. "Selected" takes the moved labels if
out-of-fold predictions then decide better for the true labels by more than a standard error.
"""

from unittest import mock

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lodl import DecisionFocusedRegressor
from lodl._threads import one_blas_thread
from lodl.domains import Domain
from lodl.evaluation import regret
from lodl.learning import _regressor
from lodl.learning._fit import search
from lodl.report import Estimate
from lodl_benchmarks.peers import TASKS

SEEDS = range(1001, 1013)
NAMES = ("path-100-1", "path-100-4", "path-100-6", "path-100-8", "knapsack-32", "knapsack-16")


def less_noisy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return labels half of the way to out-of-fold predictions of a flexible model."""
    widths = [scale / x.shape[1] for scale in (0.1, 0.5, 1.5)]
    grid = {"alpha": [0.03, 0.1, 0.3, 1.0], "gamma": widths}
    flexible = make_pipeline(StandardScaler(), GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=4))
    folds, mean = KFold(10, shuffle=True, random_state=0), y.mean(axis=0)
    return (y + mean + cross_val_predict(flexible, x, y - mean, cv=folds)) / 2


def fitted(domain: Domain, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the test regret over that of squared error, and regrets out of fold."""
    data, test = domain.splits.train_and_validation, domain.splits.test
    outcomes = []

    def kept(*arguments: object, **options: object) -> object:
        outcomes.append(search(*arguments, **options))
        return outcomes[-1]

    with mock.patch.object(_regressor, "search", kept):
        model = DecisionFocusedRegressor(domain.problem).fit(data.x, y)
    ours, squared_error = (
        regret(domain.problem, of.predict(test.x), test.y).mean() for of in (model, model.baseline_)
    )
    return ours / squared_error, regret(domain.problem, outcomes[0].selected.y_hat, data.y)


def main() -> None:
    print("| task | labels as they are | moved | difference | selected | times selected |")
    print("|---|---|---|---|---|---|")
    for name in NAMES:
        rows = []
        for seed in SEEDS:
            domain = TASKS[name].build(seed)
            data = domain.splits.train_and_validation
            as_they_are, before = fitted(domain, data.y)
            moved, after = fitted(domain, less_noisy(data.x.reshape(len(data.x), -1), data.y))
            gain = Estimate.of(before - after)
            is_selected = gain.mean > gain.standard_error
            rows.append((as_they_are, moved, moved if is_selected else as_they_are, is_selected))
        values = np.array(rows)
        mean, difference = values.mean(axis=0), values[:, 1] - values[:, 0]
        error = difference.std(ddof=1) / np.sqrt(len(rows))
        print(
            f"| {TASKS[name].title} | {mean[0]:.3f} | {mean[1]:.3f} | {difference.mean():+.3f} ± "
            f"{error:.3f} | {mean[2]:.3f} | {values[:, 3].sum():.0f} of {len(rows)} |",
            flush=True,
        )


if __name__ == "__main__":
    with one_blas_thread():
        main()
