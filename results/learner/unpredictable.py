"""Labels that cannot be predicted: does the regressor keep something worse than their mean?

    python results/learner/unpredictable.py

Rows of features and labels are put together at random, so no model can know anything. Linear models
with defaults, 120 instances, 1,000 new ones, data seeds 3001 to 3020. The regressor is fitted with
its rule (the mean label is kept where 2-stage predicts no better than it, unless 2-stage or,
clearly, the best model decides better) and without it. Regrets are shares of the cost of the best
decisions; "worse" counts the data sets on which the mean decides better than what was kept, "use"
those on which the verdict with the rule is to use the model.
"""

from unittest.mock import patch

import numpy as np

from lodl import DecisionFocusedRegressor
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.domains import Domain, knapsack, shortest_path
from lodl.evaluation import decision_loss, regret
from lodl.learning import _search
from lodl_benchmarks.domains import assignment

SEEDS = range(3001, 3021)
DOMAINS = {"path": shortest_path, "knapsack": knapsack, "assignment": assignment}


def relative(domain: Domain, y_hat: Array, y: Array) -> float:
    best = np.abs(decision_loss(domain.problem, y, y)).mean()
    return float(regret(domain.problem, y_hat, y).mean() / best)


def regrets(name: str, seed: int) -> list[float]:
    """Return the regret of 2-stage, the mean, and the regressor without and with its rule.

    The last number is whether its verdict with the rule is to use the model.
    """
    domain = DOMAINS[name](seed, sizes=(120, 1, 1000))
    train, test = domain.splits.train, domain.splits.test
    rng = np.random.default_rng(seed)
    y, y_test = (rng.permutation(part.y) for part in (train, test))

    def fitted() -> DecisionFocusedRegressor:
        return DecisionFocusedRegressor(domain.problem).fit(train.x, y)

    with patch.object(_search, "predicts", lambda *_: True):
        without = fitted()
    with_rule = fitted()
    mean = np.broadcast_to(y.mean(axis=0), y_test.shape)
    predictions = [
        without.baseline_.predict(test.x),
        mean,
        *(model.predict(test.x) for model in (without, with_rule)),
    ]
    is_to_be_used = with_rule.result_.verdict.startswith("Use this model")
    return [*(relative(domain, y_hat, y_test) for y_hat in predictions), float(is_to_be_used)]


def main() -> None:
    print("| task | 2-stage | mean | without the rule | worse | with the rule | worse | use |")
    print("|---|---|---|---|---|---|---|---|")
    with one_blas_thread():
        for name in DOMAINS:
            found = np.array([regrets(name, seed) for seed in SEEDS])
            two_stage, mean, without, with_rule, used = found.mean(axis=0)
            n_without, n_with = ((found[:, [2, 3]] > found[:, [1]] + 1e-12).sum(axis=0)).tolist()
            print(
                f"| {name} | {two_stage:.3f} | {mean:.3f} | {without:.3f} | {n_without} of 20 "
                f"| {with_rule:.3f} | {n_with} of 20 | {used * len(SEEDS):.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
