"""Portfolio: do networks learn anything from losses made of decisions, or do they saturate?

    python results/portfolio_saturation.py [PRICES.csv]   # simulated prices unless a file is named

The domain, the network (tanh at its end) and the training of table 1, with 20 samples an instance,
on data seeds 1001 and 1002, which no table shows, and two initialisations each. Labels have a
deviation of 0.02; outputs beyond 0.99 are saturated. It takes about five minutes.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.domains import Domain
from lodl.losses import DecisionHinges, DecisionRanking, fit
from lodl.oracle import Oracle
from lodl.training.torch import LearnedLossModule
from lodl_benchmarks.experiments import SETUPS, setups_with_prices
from lodl_benchmarks.quality import decision_quality, quality_scale
from lodl_benchmarks.runner import Criterion, initialisations, predict, squared_error, train

SEEDS, N_INITIALISATIONS, N_SAMPLES = (1001, 1002), 2, 20
LEARNING_RATES = (0.01, 0.001)
SETUP = setups_with_prices(sys.argv[1])["portfolio-prices"] if sys.argv[1:] else SETUPS["portfolio"]
FAMILIES = {
    "DecisionHinges": DecisionHinges(),
    "DecisionHinges, squared error 10": DecisionHinges(squared_error=10.0),
    "DecisionRanking": DecisionRanking(),
    "DecisionRanking, squared error 1": DecisionRanking(squared_error=1.0),
}


def predictions(domain: Domain) -> Iterator[tuple[str, float | None, Array]]:
    """Yield what is trained, the learning rate, and predictions for test instances."""
    splits, part = domain.splits, domain.splits.train_and_validation
    shape = (1, *splits.test.y.shape)
    yield "constant", None, np.broadcast_to(splits.train.y.mean(axis=0), shape)
    yield "all outputs 1", None, np.ones(shape)
    criteria: dict[str, tuple[Criterion, ...]] = {
        "2-stage": (squared_error(splits.train.y), squared_error(splits.validation.y))
    }
    samples = Oracle(domain.problem, progress=False).sample(
        part.y, SETUP.sampler, N_SAMPLES, context=part.context, slopes=True
    )
    for name, family in FAMILIES.items():
        loss = fit(samples, family, progress=False)
        halves = np.split(np.arange(loss.n_instances), [len(splits.train.y)])
        criteria[name] = tuple(
            LearnedLossModule(loss.subset(half), reduction="none") for half in halves
        )
    for name, (criterion, stopping) in criteria.items():
        for rate in LEARNING_RATES:
            trained = train(
                initialisations(domain, N_INITIALISATIONS),
                splits.train.x,
                criterion,
                splits.validation.x,
                stopping,
                replace(SETUP.training, learning_rate=rate),
            )
            yield name, rate, predict(trained.models, splits.test.x)


def main() -> None:
    torch.set_num_threads(1)
    found: dict[tuple[str, float | None], list[tuple[float, float]]] = {}
    with one_blas_thread():
        for seed in SEEDS:
            domain = SETUP.build(seed)
            problem, test = domain.problem, domain.splits.test
            scale = quality_scale(problem, test.y, context=test.context, random_state=seed)
            for name, rate, y_hat in predictions(domain):
                quality = decision_quality(problem, y_hat, test.y, context=test.context)
                share = float((np.abs(y_hat) > 0.99).mean())
                row = (share, float(scale.normalise(quality).mean()))
                found.setdefault((name, rate), []).append(row)
    print("| prediction | learning rate | saturated outputs | quality |\n|---|---|---|---|")
    for (name, rate), rows in found.items():
        share, quality = np.mean(rows, axis=0)
        print(f"| {name} | {rate or ''} | {share:.0%} | {quality:.2f} |")


if __name__ == "__main__":
    main()
