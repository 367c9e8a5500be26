"""What regularised fits gain: on samples they have not seen, and in the decisions of models.

    python speed/regularisation.py > results/regularisation.md

The four domains are the paper's and a 5 x 5 path of degree 6 (256 training instances). The first
table fits twenty instances and judges them on 1,000 further samples of each; "squared error" is the
best multiple of it for each instance, with a single parameter. The second one trains models on two
data sets each and judges them by the decisions on validation instances, whose learned loss also
stops the training; test data is not looked at. "samples" or "decisions" after the command runs one
part. It takes about an hour.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from lodl._arrays import rank_correlation
from lodl._threads import one_blas_thread
from lodl.domains import shortest_path
from lodl.evaluation import decision_loss, regret
from lodl.losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    Family,
    Quadratic,
    WeightedMSE,
    fit,
)
from lodl.oracle import Answers, Oracle
from lodl.samplers import AllPerturbed
from lodl.training.torch import LearnedLossModule, TrainingSettings
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic
from lodl_benchmarks.experiments import SETUPS
from lodl_benchmarks.runner import (
    Criterion,
    Setup,
    initialisations,
    predict,
    squared_error,
    train,
)

FAMILIES = (WeightedMSE, DirectedWeightedMSE, Quadratic, ConvexDirectedQuadratic)
TRAINED = (DirectedWeightedMSE, ConvexDirectedQuadratic)
DOMAINS = ("linear", "web", "portfolio", "path")
N_INSTANCES, N_UNSEEN = 20, 1000
COUNTS = (50, 500, 5000)
SEEDS, N_INITIALISATIONS = (1001, 1002), 1  # seeds that no table shows

PATH = replace(
    SETUPS["linear"],
    title="5 x 5 path",
    build=partial(shortest_path, sizes=(256, 64, 1000), degree=6, noise=0.3),
    sampler=AllPerturbed("auto"),
    training=TrainingSettings(
        learning_rate=0.03, n_steps=2000, validate_every=10, patience=100, batch_size=32
    ),
)


def setup_of(name: str) -> Setup:
    return PATH if name == "path" else SETUPS[name]


def answers_of(name: str) -> list[Answers]:
    """Return the answers about a few instances whose predictions can cost anything."""
    setup = setup_of(name)
    domain = setup.build(SEEDS[0])
    part = domain.splits.train
    first = slice(0, 2 * N_INSTANCES)  # of some instances nothing is lost
    samples = Oracle(domain.problem, progress=False).sample(
        part.y[first],
        setup.sampler,
        max(COUNTS) + N_UNSEEN,
        context=None if part.context is None else part.context[first],
    )
    every = list(samples)
    return [answers for answers in every if answers.regret[: min(COUNTS)].any()][:N_INSTANCES]


def unseen_errors(family: Family | None, answers: Answers, n_samples: int) -> tuple[float, float]:
    """Return R2 and rank correlation of a fit to the first samples, on the last ones."""
    seen, unseen = answers.take(slice(n_samples)), answers.take(slice(-N_UNSEEN, None))
    if family is None:
        size, unseen_size = (np.square(one.d).sum(axis=1) for one in (seen, unseen))
        value = max(size @ seen.regret / (size @ size), 0.0) * unseen_size
    else:
        rows = {name: array[np.newaxis] for name, array in family.fit(seen).items()}
        value = family.value(rows, unseen.d[np.newaxis])[0]
    r2 = 1 - np.square(value - unseen.regret).mean() / unseen.regret.var()
    return float(r2), rank_correlation(value, unseen.regret)


def print_unseen_errors() -> None:
    """Print a row per domain and family: median R2 and rank correlation, before and after."""
    columns = [f"K = {n}" for n in COUNTS]
    print("| domain | family | ridge |", " | ".join(f"R2, {c} | rank, {c}" for c in columns), "|")
    print("|---|---|---|" + "---|---|" * len(columns))
    fits: list[tuple[str, str, Family | None]] = [
        ("squared error", "", None),
        *((make.__name__, f"{r:g}", make(ridge=r)) for make in FAMILIES for r in (0.0, 1.0)),
        ("DirectedQuadratic", "", DirectedQuadratic()),
    ]
    for name in DOMAINS:
        instances = answers_of(name)
        for title, ridge, family in fits:
            found = [
                np.median([unseen_errors(family, one, n) for one in instances], axis=0)
                for n in COUNTS
            ]
            cells = " | ".join(f"{r2:.2f} | {rank:.2f}" for r2, rank in found)
            print(f"| {name} | {title} | {ridge} | {cells} |", flush=True)


class Decisions:
    """Models of one data set, judged by the relative regret of their validation decisions."""

    def __init__(self, name: str, seed: int) -> None:
        self.setup = setup_of(name)
        self.domain = self.setup.build(seed)
        part = self.domain.splits.train_and_validation
        self._oracle = Oracle(self.domain.problem, progress=False)
        self._instances = self._oracle.instances(part.y, part.context)

    def of_squared_error(self) -> float:
        splits = self.domain.splits
        return self._train(squared_error(splits.train.y), squared_error(splits.validation.y))

    def of_family(self, family: Family, n_samples: int) -> float:
        samples = self._oracle.sample(self._instances, self.setup.sampler, n_samples)
        loss = fit(samples, family, progress=False)
        n_train = len(self.domain.splits.train.y)
        parts = np.split(np.arange(loss.n_instances), [n_train])
        return self._train(*(LearnedLossModule(loss.subset(p), reduction="none") for p in parts))

    def _train(self, training: Criterion, stopping: Criterion) -> float:
        problem, part = self.domain.problem, self.domain.splits.validation
        trained = train(
            initialisations(self.domain, N_INITIALISATIONS),
            self.domain.splits.train.x,
            training,
            part.x,
            stopping,
            self.setup.training,
        )
        options = {"context": part.context}
        costs = [
            regret(problem, y_hat, part.y, **options) for y_hat in predict(trained.models, part.x)
        ]
        best = decision_loss(problem, part.y, part.y, **options)
        return float(np.mean(costs) / np.abs(best).mean())


def print_decisions(members: Sequence[Family]) -> None:
    """Print a row per domain and family: relative regret of validation decisions."""
    print("| domain | loss |", " | ".join(f"K = {n}" for n in COUNTS), "|")
    print("|---|---|" + "---|" * len(COUNTS))
    for name in DOMAINS:
        data = [Decisions(name, seed) for seed in SEEDS]
        plain = np.mean([one.of_squared_error() for one in data])
        print(f"| {name} | squared error |" + f" {plain:.3f} |" * len(COUNTS), flush=True)
        for family in members:
            costs = [np.mean([one.of_family(family, n) for one in data]) for n in COUNTS]
            print(
                f"| {name} | {family} |" + "".join(f" {cost:.3f} |" for cost in costs), flush=True
            )


def main() -> None:
    torch.set_num_threads(1)
    parts = sys.argv[1:] or ["samples", "decisions"]
    print(f"# Regularised fits\n\n{__doc__}")
    with one_blas_thread():
        if "samples" in parts:
            print("## Samples not seen, median over instances\n")
            print_unseen_errors()
        if "decisions" in parts:
            print("\n## Decisions on validation instances, relative regret\n")
            print_decisions([make(ridge=ridge) for make in TRAINED for ridge in (0.0, 1.0)])


if __name__ == "__main__":
    main()
