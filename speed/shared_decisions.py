"""What instances gain by sharing their decisions, in one loss at labels.

    python speed/shared_decisions.py > results/shared_decisions.md

Losses of 20 samples at labels, made of each instance's own decisions (`lodl.losses.fit`) or of all
(`fit_shared`), for the same calls. Linear models (`LinearLearner`), stopped on the validation
instances' loss, data seeds 1001 and 1002, which no table shows. Regret of the test instances, as a
share of the cost of the best decisions, mean over seeds. Names of tasks may follow the command. It
takes some three minutes.
"""

import sys

import numpy as np

from lodl import AllPerturbed, DecisionHinges, DecisionRanking
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.domains import Domain
from lodl.evaluation import decision_loss, regret
from lodl.losses import LearnedLoss, fit, fit_shared, squared_error_loss
from lodl.oracle import Oracle
from lodl.training.linear import LinearLearner
from lodl_benchmarks.learner import TASKS

SEEDS = (1001, 1002)
NAMES = ("path", "small-path", "large-path", "knapsack", "assignment", "salesman", "energy")
FAMILIES = {
    "hinges": DecisionHinges(),
    "hinges, margin 1, squared error 1": DecisionHinges(margin=1.0, squared_error=1.0),
    "hinges, margin 1, squared error 3": DecisionHinges(margin=1.0, squared_error=3.0),
    "ranking, squared error 0.1": DecisionRanking(squared_error=0.1),
}


def relative_regret(domain: Domain, y_hat: Array) -> float:
    y = domain.splits.test.y
    best = np.abs(decision_loss(domain.problem, y, y).mean())
    return float(regret(domain.problem, y_hat, y).mean() / best)


def regrets(name: str, seed: int) -> list[float]:
    """Return the regret of 2-stage, then of each family with own and with shared decisions."""
    domain = TASKS[name].build(seed)
    splits, learner = domain.splits, LinearLearner()
    samples = Oracle(domain.problem, progress=False).sample(
        splits.train_and_validation.y, AllPerturbed(), 20, slopes=True
    )

    def trained(loss: LearnedLoss) -> float:
        is_first = np.arange(loss.n_instances) < len(splits.train.y)
        x = splits.train_and_validation.x
        (model,) = learner.train(x, loss, masks=is_first[np.newaxis])
        return relative_regret(domain, model.predict(splits.test.x))

    losses = [squared_error_loss(splits.train_and_validation.y)]
    for family in FAMILIES.values():
        losses += [fit(samples, family, progress=False), fit_shared(samples, family)]
    return [trained(loss) for loss in losses]


def main(names: list[str]) -> None:
    print(f"# Shared decisions\n\n{__doc__}")
    columns = [f"{title}: {whose}" for title in FAMILIES for whose in ("own", "shared")]
    print("| task | 2-stage |", " | ".join(columns), "|\n|---|---|" + "---|" * len(columns))
    with one_blas_thread():
        for name in names:
            found = np.mean([regrets(name, seed) for seed in SEEDS], axis=0)
            print(f"| {name} | " + " | ".join(f"{one:.4f}" for one in found) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(NAMES))
