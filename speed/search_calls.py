"""Solver calls of a search over 20 settings, in calls of one fit: what `regret_scorer` says.

    python speed/search_calls.py

`GridSearchCV` in 3 folds over the penalty of `Ridge`, on a knapsack of 60 instances, with a store.
Searches over 1 and 4 settings are run, and 20 are extrapolated. About a minute.
"""

import tempfile
from typing import Any

from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import lodl
from lodl import DecisionFocusedRegressor, DecisionHinges
from lodl._typing import Array
from lodl.domains import Knapsack, knapsack
from lodl.oracle import Oracle

CALLS = [0]


class Counted(Knapsack):
    """Counts its calls."""

    def solve_many(self, y_hats: Array, context: Any = None) -> Array:
        CALLS[0] += len(y_hats)
        return super().solve_many(y_hats, context)


WAYS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "n_rounds=0, one family": {"n_rounds": 0, "families": [DecisionHinges(squared_error=10.0)]},
    "n_rounds=0, families=[], n_samples=1": {"n_rounds": 0, "families": [], "n_samples": 1},
}


def main() -> None:
    """Print calls of 20 settings over those of one fit, for each way to search."""
    domain = knapsack(sizes=(60, 1, 1))
    known: Any = domain.problem
    problem = Counted(known.capacity, known.weights)
    x, y = domain.splits.train.x, domain.splits.train.y

    def search(alphas: list[float], **options: Any) -> int:
        CALLS[0] = 0
        with tempfile.TemporaryDirectory() as folder:
            oracle = Oracle(problem, store=f"{folder}/answers.db")
            model = DecisionFocusedRegressor(oracle, Ridge(), **options)
            grid = {"estimator__alpha": alphas}
            scorer = lodl.evaluation.regret_scorer()
            GridSearchCV(model, grid, scoring=scorer, cv=3, refit=False).fit(x, y)
        return CALLS[0]

    DecisionFocusedRegressor(problem, Ridge()).fit(x, y)
    one_fit = CALLS[0]
    print(f"one fit: {one_fit:,} calls")
    for name, options in WAYS.items():
        one, four = search([1.0], **options), search([1.0, 10.0, 100.0, 1000.0], **options)
        twenty = one + 19 * (four - one) / 3
        print(f"{name}: {one:,} calls for one setting, {twenty / one_fit:.1f} fits for 20")


if __name__ == "__main__":
    main()
