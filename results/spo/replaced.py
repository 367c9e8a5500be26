"""SPO+ on portfolios, with one part after another replaced by ours: what makes the difference?

    python results/spo/replaced.py 16 32       # degrees; n = 100, noise 1, data seeds 1001 to 1003

The exact loss calls the solver at 2 y_hat - y in every step of our training. Losses of known
decisions call it once an instance and round. "Equal" steps are of one size for all outputs, others
are shares of each output's deviation.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from lodl._typing import Array
from lodl.learning._data import Data
from lodl.learning._folds import Folds, Trainer
from lodl.losses import DecisionHinges, FitErrors, LearnedLoss, squared_error_loss
from lodl.losses._shared_slopes import SharedSlopes
from lodl.training import linear
from lodl_benchmarks.spo._methods import METHODS, mean_cost
from lodl_benchmarks.spo._portfolio import founding_portfolio

N_ROUNDS = 7
SEEDS = (1001, 1002, 1003)


@dataclass(frozen=True)
class ExactHinges(DecisionHinges):
    """SPO+ of a linear gain: the worst of all decisions, found by the solver."""

    solve: ClassVar[Callable[[Array], Array]]
    padded: ClassVar[dict[str, float]] = {}
    non_negative: ClassVar[tuple[str, ...]] = ()

    def parameter_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        return {"best": (dim,), "label": (dim,)}

    def _worst(self, phi: Any, d: Array) -> tuple[Array, Array]:
        beyond = phi["label"][:, None] + 2.0 * d.astype(float)
        z = type(self).solve(beyond.reshape(-1, d.shape[-1])).reshape(d.shape)
        return beyond, z - phi["best"][:, None]

    def value(self, phi: Any, d: Array) -> Array:
        beyond, gap = self._worst(phi, d)
        return np.maximum((beyond * gap).sum(-1), 0.0).astype(d.dtype)

    def gradient(self, phi: Any, d: Array) -> Array:
        return (2 * self._worst(phi, d)[1]).astype(d.dtype)


def exact_loss(y: Array, best: Array) -> LearnedLoss:
    return LearnedLoss(ExactHinges(), y, {"best": best, "label": y}, FitErrors.empty(len(y)), {})


def known_loss(y: Array, best: Array, others: Array) -> LearnedLoss:
    gradient = -np.concatenate([best, *others])
    regret = np.maximum(y @ gradient.T + (y * best).sum(axis=1)[:, None], 0.0)
    slope = SharedSlopes(gradient, np.arange(len(y))[:, None])
    family = DecisionHinges(max_decisions=len(gradient))
    phi: Any = {"regret": regret, "slope": slope, "w": np.zeros_like(y)}
    return LearnedLoss(family, y, phi, FitErrors.empty(len(y)), {})


def in_rounds(trainer: Trainer, y: Array, best: Array, solve: Any, where: str) -> Any:
    models, y_hat = trainer.train(squared_error_loss(y))
    decisions: list[Array] = []
    for turn in range(N_ROUNDS):
        at = y_hat if where == "held out" else trainer.in_turn(models, turn)
        decisions.append(solve(2 * at - y))
        models, y_hat = trainer.train(known_loss(y, best, np.array(decisions)))
    return models


def _always(is_own: bool, _: Any) -> bool:
    return is_own


def measure(degree: int, seed: int) -> dict[str, float]:
    domain = founding_portfolio(seed, n=100, degree=degree, noise=1.0)
    data, test = domain.splits.train_and_validation, domain.splits.test
    x, y, solve = data.x, data.y, domain.problem.solve_many  # type: ignore[attr-defined]
    ExactHinges.solve = staticmethod(solve)
    of_data = Data.of(x, y, None, takes_frames=False)
    folds = Folds.of(of_data, None, None, seed=0, rows=x)
    trainer, best = Trainer(linear.LinearLearner(), of_data, folds), solve(y)
    optimum = mean_cost(domain, test.y, test.y)

    def regret(y_hat: Array) -> float:
        return 100 * (mean_cost(domain, y_hat, test.y) - optimum) / abs(optimum)

    def mean_of(models: Any) -> Array:
        return np.mean([model.predict(test.x) for model in models], axis=0)

    row = {"squared error": regret(mean_of(trainer.train(squared_error_loss(y))[0]))}
    row["SPO+"] = regret(METHODS["SPO+"](domain).y_hat)
    for kind, is_own, most in (
        ("shares", False, 1000),
        ("equal", True, 1000),
        ("equal, 10", True, 10),
    ):
        linear._are_own = partial(_always, is_own)  # type: ignore[assignment]
        trainer.learner = linear.LinearLearner(n_steps=most)
        linear._MOST_APART = 1000
        row[f"exact, {kind}"] = regret(mean_of(trainer.train(exact_loss(y, best))[0]))
        for where in ("held out", "in turn"):
            models = in_rounds(trainer, y, best, solve, where)
            row[f"known, {where}, {kind}"] = regret(mean_of(models))
    return row


def main() -> None:
    for degree in map(int, sys.argv[1:]):
        rows = [measure(degree, seed) for seed in SEEDS]
        print(f"\n| degree {degree} | regret, % | less SPO+ |\n|---|---|---|")
        for name in rows[0]:
            less = np.array([row[name] - row["SPO+"] for row in rows])
            error = less.std(ddof=1) / np.sqrt(len(less))
            mean = np.mean([row[name] for row in rows])
            print(f"| {name} | {mean:.3f} | {less.mean():+.3f} ± {error:.3f} |", flush=True)


if __name__ == "__main__":
    main()
