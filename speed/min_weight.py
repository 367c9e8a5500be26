"""What `min_weight` trades: decisions of models for each of its values, in six domains.

    python speed/min_weight.py > results/min_weight.md

Models are trained on losses from 20 samples (`DecisionHinges` and `DecisionRanking`, made of
decisions) or 50 (`DirectedWeightedMSE`, which sees regrets only) per instance, with one learning
rate and three initialisations, whose predictions are averaged. They are judged by the decisions on
the test instances of data seeds 1001 and 1002, which no table shows: these are the data that
defaults may be chosen on. Regret is a share of the cost of the best decisions. Training is shorter
than in the tables. In brackets stands the share of predictions that drifted off, where there are
any: they are more than ten deviations of the labels from their mean. Portfolios have a learning
rate of 0.001, since at the 0.01 of the tables networks saturate
(results/portfolio_saturation.py). Names of domains may follow the command. It takes some twenty
minutes.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from lodl._typing import Array
from lodl.domains import Domain
from lodl.evaluation import decision_loss, regret
from lodl.losses import DecisionHinges, DecisionRanking, DirectedWeightedMSE, Family, fit
from lodl.oracle import Oracle, Samples
from lodl.training.torch import LearnedLossModule
from lodl_benchmarks.experiments import SETUPS
from lodl_benchmarks.rounds import TASKS, RoundsTask
from lodl_benchmarks.rounds._loop import Loop
from lodl_benchmarks.runner import squared_error

DOMAINS = ("path", "knapsack", "newsvendor", "linear", "web", "portfolio")
SEEDS = (1001, 1002)
FLOORS = (1e-3, 1e-2, 0.1, 0.3)
FAMILIES = (DecisionHinges, DecisionRanking, DirectedWeightedMSE)
N_STEPS = {"web": 1000, "portfolio": 300}
LEARNING_RATES = {"web": 3e-4, "portfolio": 1e-3, "linear": 0.1}
FAR = 10  # deviations of the labels


def tasks() -> Iterator[tuple[str, RoundsTask]]:
    for name in sys.argv[1:] or DOMAINS:
        task = TASKS.get(name)
        if task is None:
            setup = SETUPS[name]
            task = RoundsTask(
                setup.title,
                setup.build,
                training=setup.training,
                is_scaled=False,
                sampler=setup.sampler,
            )
        training = replace(task.training, n_steps=N_STEPS.get(name, 500))
        yield (
            name,
            replace(task, training=training, learning_rates=(LEARNING_RATES.get(name, 0.1),)),
        )


class Data:
    """One data set of a task, with the oracle's answers."""

    def __init__(self, task: RoundsTask, seed: int) -> None:
        self.task, self.domain = task, task.build(seed)
        self._samples: dict[int, Samples] = {}

    def of_constant(self) -> float:
        mean = self.domain.splits.train.y.mean(axis=0)
        return unseen_regret(self.domain, np.broadcast_to(mean, self.domain.splits.test.y.shape))

    def of_squared_error(self) -> float:
        splits = self.domain.splits
        loop = Loop(self.task, self.domain)
        y_hat = loop.fit(squared_error(splits.train.y), squared_error(splits.validation.y))
        return unseen_regret(self.domain, y_hat.test)

    def of_family(self, family: Family) -> tuple[float, float]:
        """Return the regret, and the share of predictions that drifted off."""
        samples = self._ask(20 if family.uses_slopes else 50)
        loss = fit(samples, family, progress=False)
        parts = np.split(np.arange(loss.n_instances), [len(self.domain.splits.train.y)])
        modules = (LearnedLossModule(loss.subset(part), reduction="none") for part in parts)
        y_hat = Loop(self.task, self.domain).fit(*modules).test
        y = self.domain.splits.train.y
        is_far = np.abs(y_hat - y.mean(axis=0)) > FAR * y.std()
        return unseen_regret(self.domain, y_hat), float(is_far.mean())

    def _ask(self, n_samples: int) -> Samples:
        part = self.domain.splits.train_and_validation
        if n_samples not in self._samples:
            self._samples[n_samples] = Oracle(self.domain.problem, progress=False).sample(
                part.y, self.task.sampler, n_samples, context=part.context, slopes=n_samples == 20
            )
        return self._samples[n_samples]


def unseen_regret(domain: Domain, y_hat: Array) -> float:
    part = domain.splits.test
    options = {"context": part.context}
    costs = regret(domain.problem, y_hat, part.y, **options)
    best = decision_loss(domain.problem, part.y, part.y, **options)
    return float(costs.mean() / np.abs(best).mean())


def main() -> None:
    torch.set_num_threads(1)
    print(f"# min_weight\n\n{__doc__}")
    floors = " | ".join(f"{floor:g}" for floor in FLOORS)
    print(f"| domain | family | {floors} | squared error | constant |")
    print("|---|---|" + "---|" * (len(FLOORS) + 2))
    for name, task in tasks():
        data = [Data(task, seed) for seed in SEEDS]
        plain = np.mean([one.of_squared_error() for one in data])
        constant = np.mean([one.of_constant() for one in data])
        for make in FAMILIES:
            found = [
                np.mean([one.of_family(make(min_weight=floor)) for one in data], axis=0)
                for floor in FLOORS
            ]
            cells = " | ".join(
                f"{value:.4f}" + (f" ({share:.0%})" if share > 0.005 else "")
                for value, share in found
            )
            print(
                f"| {name} | {make.__name__} | {cells} | {plain:.4f} | {constant:.4f} |", flush=True
            )


if __name__ == "__main__":
    main()
