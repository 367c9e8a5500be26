"""Which numbers of a summary tell whether a loss made of decisions trains a good model.

    python speed/decision_summaries.py > results/decision_summaries.md

Every domain of `lodl benchmark learner`, data seeds 1001 and 1002, which no table shows. Losses of
20 samples at labels train linear models (`LinearLearner`); then three rounds of 4 samples each, of
which validation decisions choose the best. Regret is a share of the cost of the best decisions of
the test instances. Beside it stand the numbers of `summarise(loss)` for the loss at labels:

- rank: rank correlation with the regret on held-out samples, mean over instances;
- met: share of the costly decisions of held-out samples that the other samples met, mean;
- slopes: share of held-out samples whose decision is the cheapest of those met, by the slopes.

Names of tasks may follow the command. It takes some ten minutes.
"""

import sys
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.domains import Domain
from lodl.evaluation import decision_loss, regret, summarise
from lodl.learning import Schedule, learn_in_rounds
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    Family,
    LearnedLoss,
    fit,
    squared_error_loss,
)
from lodl.oracle import ObjectiveKind, Oracle
from lodl.training.linear import LinearLearner, LinearPredictor
from lodl_benchmarks.learner import TASKS

SEEDS = (1001, 1002)
FAMILIES = (DecisionHinges(), DecisionRanking())
N_SAMPLES = 20
SCHEDULE = Schedule(n_samples=N_SAMPLES, n_rounds=3, n_per_round=4)
COLUMNS = ("domain", "family", "2-stage", "at labels", "rounds", "rank", "met", "slopes")


class OwnDecisions(Oracle):
    """An oracle of instances that do not share their decisions."""

    def objective_kind(self, *_: object, **__: object) -> ObjectiveKind:
        return ObjectiveKind.SMOOTH


def train(domain: Domain, loss: LearnedLoss) -> LinearPredictor:
    is_first = np.arange(loss.n_instances) < len(domain.splits.train.y)
    x = domain.splits.train_and_validation.x
    (model,) = LinearLearner().train(x, loss, masks=is_first[np.newaxis])
    return model


def unseen_regret(domain: Domain, model: LinearPredictor) -> float:
    part = domain.splits.test
    options = {"context": part.context}
    costs = regret(domain.problem, model.predict(part.x), part.y, **options)
    best = decision_loss(domain.problem, part.y, part.y, **options)
    return float(costs.mean() / np.abs(best).mean())


def measure(domain: Domain, family: Family, seed: int) -> list[float]:
    """Return regrets at labels and in rounds, then the numbers of the summary."""
    part, n_train = domain.splits.train_and_validation, len(domain.splits.train.y)

    def train_all(loss: LearnedLoss) -> tuple[LinearPredictor, Array]:
        model = train(domain, loss)
        return model, model.predict(part.x)

    oracle = OwnDecisions(domain.problem, progress=False)
    how: Any = {"context": part.context, "random_state": seed}
    samples = oracle.sample(part.y, SCHEDULE.sampler, N_SAMPLES, slopes=True, **how)
    rounds = learn_in_rounds(
        oracle,
        part.y,
        train_all,
        family=family,
        schedule=SCHEDULE,
        validation=np.arange(n_train, len(part.y)),
        **how,
    )
    at_labels = rounds.rounds[0]
    found = summarise(fit(samples, family))
    regrets = [unseen_regret(domain, one.model) for one in (at_labels, rounds.best)]
    return [*regrets, found.rank_correlation, found.decisions_met, found.decisions_explained]


def main() -> None:
    print(f"# Summaries of losses made of decisions\n\n{__doc__}")
    print("|", " | ".join(COLUMNS), "|\n" + "|---" * len(COLUMNS) + "|")
    for name in sys.argv[1:] or TASKS:
        domains = [TASKS[name].build(seed) for seed in SEEDS]
        plain = [
            unseen_regret(one, train(one, squared_error_loss(one.splits.train_and_validation.y)))
            for one in domains
        ]
        for family in FAMILIES:
            pairs = zip(domains, SEEDS, strict=True)
            numbers = np.mean([measure(one, family, seed) for one, seed in pairs], axis=0)
            cells = [f"{np.mean(plain):.4f}", *(f"{value:.4f}" for value in numbers[:2])]
            cells += [f"{value:.2f}" for value in numbers[2:]]
            print("|", " | ".join([name, type(family).__name__, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
