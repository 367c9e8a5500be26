"""Forests, which cannot be trained on a loss: kept as they are, and corrected.

    python results/learner/forests.py [FIRST_SEED]

Forests of 50 trees, three data seeds from 3001 on by default, 300 instances, 1,000 new ones. Test
regret in the unit of each task, mean over seeds: the forest as its user fits it; the forest plus a
linear fit of its out-of-fold residuals, which knows no decisions; the regressor with its defaults,
which trains such a correction on learned losses; and CPU seconds of its `fit`.
"""

import sys
import time
from functools import partial

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

from lodl import DecisionFocusedRegressor
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.domains import knapsack, newsvendor, shortest_path
from lodl.evaluation import regret
from lodl_benchmarks.domains import assignment

N_SEEDS, SIZES = 3, (240, 60, 1000)
DOMAINS = {
    "path": partial(shortest_path, degree=6, sizes=SIZES),
    "knapsack": partial(knapsack, sizes=SIZES),
    "assignment": partial(assignment, sizes=SIZES),
    "newsvendor": partial(newsvendor, sizes=SIZES),
}


def regrets(name: str, seed: int) -> list[float]:
    """Return the regret of the forest, with a linear fit, and of the regressor, and CPU seconds."""
    domain, forest = DOMAINS[name](seed), RandomForestRegressor(50, min_samples_leaf=3)
    forest.set_params(random_state=0)
    data, test = domain.splits.train_and_validation, domain.splits.test
    y, folds = data.y.reshape(len(data.y), -1), KFold(5, shuffle=True, random_state=0)
    line = LinearRegression().fit(data.x, y - cross_val_predict(forest, data.x, y, cv=folds))
    started = time.process_time()
    model = DecisionFocusedRegressor(domain.problem, forest).fit(data.x, data.y)
    seconds = time.process_time() - started

    def mean(y_hat: Array) -> float:
        return float(regret(domain.problem, y_hat, test.y).mean())

    plain = model.plain_.predict(test.x)
    ways = (plain, plain + line.predict(test.x).reshape(plain.shape), model.predict(test.x))
    return [*map(mean, ways), seconds]


def main() -> None:
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 3001
    print("| task | forest | with a linear fit | the regressor | CPU s |\n|---|---|---|---|---|")
    with one_blas_thread():
        for name in DOMAINS:
            found = np.array([regrets(name, seed) for seed in range(first, first + N_SEEDS)])
            print(f"| {name} | {' | '.join(f'{v:.4g}' for v in found.mean(axis=0))} |", flush=True)


if __name__ == "__main__":
    main()
