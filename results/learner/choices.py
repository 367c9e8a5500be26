"""How the learner should choose among its losses, on data seeds that no table shows.

    python results/learner/choices.py > results/learner/choices.md

Every linear task of `lodl benchmark peers`, data seeds 1001 to 1006: the learner's losses where
instances share their decisions, each alone and averaged, by several rules. Numbers are regrets on
1,000 test instances over that of SPO+ with its whole treatment, geometric means over data seeds.
Below 1 is better than SPO+. It takes ten minutes on one core.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from lodl import DecisionFocusedRegressor
from lodl.domains import Domain
from lodl.evaluation import decision_loss, regret
from lodl.learning import _fit
from lodl.learning._search import Contender
from lodl.report import Estimate
from lodl_benchmarks.peers import TASKS, plan, run
from lodl_benchmarks.peers._tasks import LINEAR

SEEDS = range(1001, 1007)
FOUND: list[Contender] = []


def recorded(
    _: object, baseline: Contender, others: Sequence[Contender], *__: object, **___: object
) -> Contender:
    """Hand over all models that were tried, squared error first."""
    FOUND[:] = [baseline, *others]
    return baseline


class Judge:
    """The models of one data set, and the regrets of their averages."""

    def __init__(self, domain: Domain, found: Sequence[Contender]) -> None:
        given, test = domain.splits.train_and_validation, domain.splits.test
        self.problem, self.given, self.test = domain.problem, given, test
        best = decision_loss(domain.problem, test.y, test.y)
        self.scale = float(np.abs(best.mean()))
        self.names = [one.name for one in found]
        self.held_out = np.array([one.y_hat for one in found])
        self.new = np.array(
            [
                np.mean([model.predict(test.x) for _, models in one.parts for model in models], 0)
                for one in found
            ]
        )

    def on_held_out(self, weights: np.ndarray) -> np.ndarray:
        return regret(self.problem, np.tensordot(weights, self.held_out, 1), self.given.y)

    def on_new(self, weights: np.ndarray) -> float:
        y_hat = np.tensordot(weights, self.new, 1)
        return float(regret(self.problem, y_hat, self.test.y).mean() / self.scale)

    def alone(self, i: int) -> np.ndarray:
        """Return the weights of a single model."""
        return np.eye(len(self.names))[i]

    def z(self, before: np.ndarray, after: np.ndarray) -> float:
        """Return the gain on held-out decisions in standard errors."""
        gain = Estimate.of(self.on_held_out(before) - self.on_held_out(after))
        return gain.mean / max(gain.standard_error, 1e-12)


def everything(judge: Judge) -> np.ndarray:
    weights = np.ones(len(judge.names))
    weights[0] = 0.0  # squared error
    return weights / weights.sum()


def the_best(judge: Judge) -> np.ndarray:
    models = map(judge.alone, range(1, len(judge.names)))
    return min(models, key=lambda weights: judge.on_held_out(weights).mean())


def the_best_if_better(judge: Judge, n_errors: float) -> np.ndarray:
    all_of_them, best = everything(judge), the_best(judge)
    return best if judge.z(all_of_them, best) > n_errors else all_of_them


def ramps(judge: Judge) -> np.ndarray:
    """Return weights that grow with gains, up to a standard error, instead of jumping."""
    all_of_them, best = everything(judge), the_best(judge)
    weight = np.clip(judge.z(all_of_them, best), 0, 1)
    mixed = weight * best + (1 - weight) * all_of_them
    weight = (1 - np.clip(judge.z(judge.alone(0), mixed), 0, 1)) / 2
    return weight * judge.alone(0) + (1 - weight) * mixed


RULES: dict[str, Callable[[Judge], np.ndarray]] = {
    "average of all": everything,
    "the best on held-out decisions": the_best,
    "average, or the best if better": lambda judge: the_best_if_better(judge, 0.0),
    "average, or the best if better by one error": lambda judge: the_best_if_better(judge, 1.0),
    "ramps between these and squared error": ramps,
}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        trials = plan(tuple(LINEAR), ("SPO+",), SEEDS)
        rows = run(trials, Path(folder), n_jobs=1, progress=False)
    spo_plus = {(row["task"], row["seed"]): row["test"] for row in rows}
    ratios: dict[str, dict[str, list[float]]] = {}
    for task in LINEAR:
        for seed in SEEDS:
            domain = TASKS[task].build(seed)
            part = domain.splits.train_and_validation
            with mock.patch.object(_fit, "select", recorded):
                DecisionFocusedRegressor(domain.problem, random_state=seed).fit(part.x, part.y)
            judge = Judge(domain, FOUND)
            weights = {name: judge.alone(i) for i, name in enumerate(judge.names)}
            weights |= {name: rule(judge) for name, rule in RULES.items()}
            for name, of_models in weights.items():
                of_task = ratios.setdefault(name, {}).setdefault(task, [])
                of_task.append(judge.on_new(of_models) / spo_plus[task, seed])
    print(f"# How the learner should choose\n\n{__doc__}")
    print("| model | all its tasks | worst task | " + " | ".join(LINEAR) + " |")
    print("|---" * (len(LINEAR) + 3) + "|")
    for name, of_tasks in ratios.items():
        means = {task: float(np.exp(np.log(values).mean())) for task, values in of_tasks.items()}
        overall = np.exp(np.log(list(means.values())).mean()), max(means.values())
        cells = [f"{value:.3f}" for value in overall]
        cells += [f"{means[task]:.3f}" if task in means else "" for task in LINEAR]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
