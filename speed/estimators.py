"""CPU time of `fit` for each estimator, as a multiple of the estimator's own `fit` or of SPO+.

    OMP_NUM_THREADS=1 python speed/estimators.py                # all rows
    OMP_NUM_THREADS=1 python speed/estimators.py network-100 lightgbm steps

Paths of degree 4 on a 5x5 grid, data seed 1001, a vectorised solver, one thread. A network of two
hidden layers of 64 is compared with one SPO+ network of 20 epochs, which calls the same solver;
trees with a plain `fit` of the same estimator to the same 400 instances. "training" is the part of
`DecisionFocusedRegressor.fit` that its learner takes; the rest is solver calls, losses and choices.
Regrets are relative, on 1,000 test instances: of the plain estimator or SPO+, and of ours.

Numbers are medians of three repetitions, or of as many as start within a minute.

"steps" compares a step of a linear model on batches of 256 with the same step on `MSELoss`.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lodl import DecisionFocusedRegressor
from lodl._typing import Array
from lodl.domains import Domain, shortest_path
from lodl.learning._folds import Trainer
from lodl.losses import (
    DecisionHinges,
    DirectedQuadratic,
    Family,
    FitErrors,
    LearnedLoss,
    Quadratic,
)
from lodl.training import learner_for
from lodl.training.torch import LearnedLossModule, mlp

SEED, N_TEST, N_EPOCHS, BATCH = 1001, 1000, 20, 32
N_REPETITIONS, MAX_REPEATED = 3, 60.0  # seconds after which nothing is repeated
N_FEATURES, STEP_BATCH, N_STEPS, MAX_SECONDS = 10, 256, 100, 20.0
STEPS = (  # a family, the size of labels, the number of instances: 300 factors of 264 take 330 MB
    (DecisionHinges(max_decisions=50), 50, 1000),
    (DecisionHinges(max_decisions=50), 264, 1000),
    (Quadratic(), 264, 300),
    (DirectedQuadratic(), 264, 300),
)


def domain_of(n: int) -> Domain:
    return shortest_path(SEED, sizes=(n, 1, N_TEST), degree=4, noise=0.5)


def network(domain: Domain) -> Any:
    x, y = domain.splits.train.x, domain.splits.train.y
    return mlp(x.shape[1], y.shape[1:], hidden=(64, 64))


def spo_plus(domain: Domain) -> Callable[[Array], Array]:
    """Train one network on SPO+, with standardised features and labels, and the solver in its loop.

    The gradient of SPO+ by a prediction is 2 (z* - z(2 y_hat - y)).
    """
    x, y, solve = domain.splits.train.x, domain.splits.train.y, domain.problem.solve_many
    centre, spread = x.mean(axis=0), x.std(axis=0)
    features = torch.as_tensor((x - centre) / spread, dtype=torch.float32)
    mean, scale = (torch.as_tensor(of, dtype=torch.float32) for of in (y.mean(0), y.std(0)))
    labels = torch.as_tensor(y, dtype=torch.float32)
    best = torch.as_tensor(np.asarray(solve(y, None)), dtype=torch.float32)
    module = network(domain)
    optimiser = torch.optim.Adam(module.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    for _ in range(N_EPOCHS):
        for index in np.array_split(rng.permutation(len(y)), max(1, len(y) // BATCH)):
            y_hat = mean + scale * module(features[index])
            moved = (2 * y_hat - labels[index]).detach().numpy().astype(np.float64)
            z = torch.as_tensor(np.asarray(solve(moved, None)), dtype=torch.float32)
            optimiser.zero_grad()
            ((best[index] - z) * 2 * y_hat).sum(dim=1).mean().backward()
            optimiser.step()

    def predict(rows: Array) -> Array:
        with torch.no_grad():
            scaled = torch.as_tensor((rows - centre) / spread, dtype=torch.float32)
            return (mean + scale * module(scaled)).double().numpy()

    return predict


def estimators() -> dict[str, Any]:
    from catboost import CatBoostRegressor
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from xgboost import XGBRegressor

    return {
        "lightgbm": LGBMRegressor(verbosity=-1, n_jobs=1),
        "xgboost": XGBRegressor(n_jobs=1),
        "forest": RandomForestRegressor(random_state=0),
        "catboost": CatBoostRegressor(verbose=False, thread_count=1, allow_writing_files=False),
        "histogram": HistGradientBoostingRegressor(random_state=0),
    }


def plain_fit(estimator: Any, domain: Domain) -> Callable[[Array], Array]:
    """Fit an estimator as its user would: one model for all outputs if it takes them, else each."""
    from sklearn.base import clone
    from sklearn.multioutput import MultiOutputRegressor

    x, y = domain.splits.train.x, domain.splits.train.y
    name = type(estimator).__name__
    model = clone(estimator)
    if name == "CatBoostRegressor":
        model.set_params(loss_function="MultiRMSE")
    elif name in ("LGBMRegressor", "HistGradientBoostingRegressor"):
        model = MultiOutputRegressor(model)
    return model.fit(x, y).predict


class _Clock:
    """CPU seconds inside the learner."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in ("train", "train_plainly", "__post_init__", "final"):
            setattr(Trainer, name, self.timed(getattr(Trainer, name)))

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                return function(*args, **options)
            finally:
                self.seconds += time.process_time() - started

        return run


def relative_regret(domain: Domain, y_hat: Array) -> float:
    y, solve = domain.splits.test.y, domain.problem.solve_many
    taken, best = ((np.asarray(solve(of, None)) * y).sum() for of in (y_hat, y))
    return float((taken - best) / best)


def row(name: str, clock: _Clock) -> None:
    kind, *size = name.split("-")
    domain = domain_of(int(size[0]) if size else 400)
    estimator = network(domain) if kind == "network" else estimators()[kind]

    def fit() -> Callable[[Array], Array]:
        return spo_plus(domain) if kind == "network" else plain_fit(estimator, domain)

    def ours() -> DecisionFocusedRegressor:
        x, y = domain.splits.train.x, domain.splits.train.y
        return DecisionFocusedRegressor(domain.problem, learner_for(estimator)).fit(x, y)

    fit()  # frameworks load parts of themselves on first use
    plain, predict = repeated(fit)
    clock.seconds = 0.0
    taken, model = repeated(ours)
    x, seconds = domain.splits.test.x, [float(np.median(times)) for times in (plain, taken)]
    regrets = [relative_regret(domain, of(x)) for of in (predict, model.predict)]
    training = clock.seconds / len(taken) / seconds[0]
    columns = f"{seconds[0]:>9.2f} s{seconds[1]:>9.2f} s{seconds[1] / seconds[0]:>8.1f}"
    print(f"{name:<14}{columns}{training:>10.1f}{regrets[0]:>12.4f}{regrets[1]:>9.4f}", flush=True)


def repeated(function: Callable[[], Any]) -> tuple[list[float], Any]:
    """Return the CPU seconds of several calls, and what the last one returned."""
    times: list[float] = []
    while len(times) < N_REPETITIONS and sum(times) < MAX_REPEATED:
        started = time.process_time()
        result = function()
        times.append(time.process_time() - started)
    return times, result


def training_step(family: Family | None, dim: int, n: int) -> Callable[[], None]:
    """Return a step of Adam on the loss of a batch: a family's, or squared error."""
    rng, model = np.random.default_rng(0), torch.nn.Linear(N_FEATURES, dim)
    x, y = torch.randn(n, N_FEATURES), rng.random((n, dim))
    optimiser, squared_error = torch.optim.Adam(model.parameters()), torch.nn.MSELoss()
    labels = torch.as_tensor(y, dtype=torch.float32)
    if family is not None:
        shapes = family.parameter_shapes(dim)
        phi: Any = {name: rng.random((n, *shapes[name]), dtype=np.float32) for name in shapes}
        criterion = LearnedLossModule(LearnedLoss(family, y, phi, FitErrors.empty(n), {}))

    def step() -> None:
        index = torch.randint(n, (STEP_BATCH,))
        optimiser.zero_grad()
        y_hat = model(x[index])
        loss = squared_error(y_hat, labels[index]) if family is None else criterion(y_hat, index)
        loss.backward()
        optimiser.step()

    return step


def print_steps() -> None:
    """Print the ratios of the fastest steps, taken in turns: slower ones wait for other work."""
    for family, dim, n in STEPS:
        steps = [training_step(None, dim, n), training_step(family, dim, n)]
        times: list[list[float]] = [[], []]
        started = time.perf_counter()
        while len(times[0]) < N_STEPS and time.perf_counter() - started < MAX_SECONDS:
            for step, taken in zip(steps, times, strict=True):
                before = time.process_time()
                step()
                taken.append(time.process_time() - before)
        plain, ours = map(min, times)
        name = f"{type(family).__name__}, D = {dim}"
        print(f"{name:<28}{1e3 * plain:>8.2f} ms{1e3 * ours:>9.2f} ms{ours / plain:>9.1f}")


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    if "steps" in names:
        print_steps()
    if not (rows := [name for name in names if name != "steps"]):
        return
    print(f"{'':<14}{'plain':>11}{'fit':>11}{'ratio':>8}{'training':>10}{'regret':>12}{'ours':>9}")
    clock = _Clock()
    for name in rows:
        row(name, clock)


if __name__ == "__main__":
    main(sys.argv[1:] or ["steps", "network-100", "network-1000", *estimators()])
