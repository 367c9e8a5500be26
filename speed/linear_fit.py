"""CPU seconds of a linear `fit` with shared decisions, by part, over one SPO+ model.

    OMP_NUM_THREADS=1 python speed/linear_fit.py                       # five tasks, data seed 1001
    OMP_NUM_THREADS=1 python speed/linear_fit.py --seeds 10 path-100 grid12-200
    OMP_NUM_THREADS=1 python speed/linear_fit.py --sklearn path-1000   # LinearRegression()
    OMP_NUM_THREADS=1 python speed/linear_fit.py --no-spo path-100000  # and its peak memory
    OMP_NUM_THREADS=1 python speed/linear_fit.py --no-spo --seeds 5 context-1000

SPO+ is one linear model, trained by torch for 20 epochs with the same vectorised solver in its
loop. Both times exclude imports. "over a batch" is the time of all calls, checks included, over
that of as many labels in a single `solve_many`. Regrets are in per cent of the optimum of 1,000
test instances, which select nothing. Ratios are means over data seeds. "context" is a knapsack of
ten items in which every instance has its own capacity, so that no two share a call; with "alone"
they do not share decisions either.
"""

import argparse
import resource
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LinearRegression

from lodl import DecisionFocusedRegressor
from lodl._typing import Array
from lodl.domains import Domain, knapsack, shortest_path
from lodl.learning import _rounds
from lodl.learning._folds import Trainer
from lodl.oracle import DecisionPool, Oracle, Samples
from lodl.problems import LinearProblem, Problem

N_TEST, FIRST_SEED = 1000, 1001
N_EPOCHS, BATCH_SIZE, LEARNING_RATE = 20, 32, 0.01  # of SPO+
TASKS = "path-100", "path-1000", "path-5000", "knapsack-500", "grid12-200"
PARTS = "calls", "losses", "training", "rest"


class Sacks(LinearProblem):
    """The best set of ten items whose weight is at most the context."""

    sense = "max"

    def __init__(self, weights: Array, *, shares: bool) -> None:
        self.weights, self.shares, n = weights, shares, len(weights)
        self._sets = (np.arange(2**n)[:, np.newaxis] >> np.arange(n) & 1).astype(float)

    def solve_many(self, y_hats: Array, context: Any) -> Array:
        sets = self._sets[self._sets @ self.weights <= context]
        return sets[(y_hats @ sets.T).argmax(axis=1)]

    def are_feasible(self, zs: Array, context: Any) -> Any:
        return zs @ self.weights <= context if self.shares else None


def sacks(seed: int, sizes: tuple[int, int, int], *, shares: bool) -> Domain:
    """Return knapsacks whose capacity is 20 to 60% of the weight of all items."""
    splits, rng = knapsack(seed, sizes=sizes, n_items=10).splits, np.random.default_rng(seed)
    parts = splits.train, splits.validation, splits.test
    x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "xy")
    weights = rng.uniform(3.0, 8.0, 10)
    problem, room = Sacks(weights, shares=shares), rng.uniform(0.2, 0.6, len(y)) * weights.sum()
    return Domain.in_order(problem, sizes, x, y, room)


def domain_of(task: str, seed: int) -> Any:
    """Return the data of a task: its kind, then its number of training instances."""
    kind, n = task.split("-")
    sizes = int(n), 1, N_TEST
    if kind in ("context", "alone"):
        return sacks(seed, sizes, shares=kind == "context")
    if kind == "knapsack":
        return knapsack(seed, sizes=sizes, n_items=16)
    grid, degree = ((12, 12), 6) if kind == "grid12" else ((5, 5), 4)
    return shortest_path(seed, sizes=sizes, grid=grid, degree=degree, noise=0.5)


class Clock:
    """CPU seconds of functions by part, without the functions that they call."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.inner: list[float] = []

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            self.inner.append(0.0)
            try:
                return call(*args, **options)
            finally:
                seconds = time.process_time() - start
                self.seconds[part] += seconds - self.inner.pop()
                if self.inner:
                    self.inner[-1] += seconds

        return timed

    def wrap(self, part: str, owner: Any, name: str) -> None:
        setattr(owner, name, self.timed(part, getattr(owner, name)))


def spo_plus(problem: Any, x: Array, y: Array) -> Callable[[Array], Array]:
    """Train a linear model on the SPO+ loss, and return its predictions of features."""
    torch.manual_seed(0)
    sign = 1.0 if problem.sense == "min" else -1.0
    spread = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)

    def scaled(rows: Array) -> torch.Tensor:
        return torch.tensor((rows - x.mean(axis=0)) / x.std(axis=0), dtype=torch.float32)

    def solved(costs: Array) -> torch.Tensor:
        return torch.tensor(problem.solve_many(sign * costs, None), dtype=torch.float32)

    features, labels = scaled(x), torch.tensor(sign * y, dtype=torch.float32)
    centre, scale = (torch.tensor(part, dtype=torch.float32) for part in (y.mean(axis=0), spread))
    model, best = torch.nn.Linear(x.shape[1], y.shape[1]), solved(labels.double().numpy())
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for _ in range(N_EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH_SIZE):
            y_hat = sign * centre + scale * model(features[rows])
            beyond = 2 * y_hat - labels[rows]
            gap = best[rows] - solved(beyond.detach().double().numpy())
            optimiser.zero_grad()
            (gap * beyond).sum(dim=1).mean().backward()
            optimiser.step()

    def predict(rows: Array) -> Array:
        with torch.no_grad():
            outputs = sign * centre + scale * model(scaled(rows))
        return sign * outputs.double().numpy()

    return predict


def decisions(problem: Problem, y_hats: Array, context: Any) -> Array:
    """Return decisions: in one batch if instances have no contexts."""
    if context is None:
        return np.asarray(problem.solve_many(y_hats.copy(), None))
    pairs = zip(y_hats, context, strict=True)
    return np.stack([problem.solve_many(y_hat[np.newaxis], own)[0] for y_hat, own in pairs])


def regret(problem: Problem, y_hat: Array, test: Any) -> float:
    """Return the mean regret in per cent of the mean optimum."""
    costs = [(decisions(problem, at, test.context) * test.y).sum() for at in (y_hat, test.y)]
    return 100 * abs(costs[0] - costs[1]) / abs(costs[1])


def measure(task: str, seed: int, estimator: Any, *, with_spo: bool) -> dict[str, float]:
    """Return the CPU seconds and the test regrets of one fit and of one SPO+ model."""
    domain = domain_of(task, seed)
    problem, train, test = domain.problem, domain.splits.train, domain.splits.test
    CLOCK.seconds.clear()
    model = DecisionFocusedRegressor(problem, estimator)
    CLOCK.timed("rest", model.fit)(train.x, train.y, context=train.context)
    row = {part: CLOCK.seconds[part] for part in PARTS}
    row["fit"] = sum(row.values())
    row["n_calls"] = model.result_.n_calls / len(train.y)
    n_calls, context = model.result_.n_calls, train.context
    rows = np.resize(train.y, (n_calls, train.y.shape[1]))
    contexts = None if context is None else np.resize(context, n_calls)
    batches = list[float]()
    for _ in range(5):  # the shortest: the rest waited for other work
        start = time.process_time()
        decisions(problem, rows, contexts)
        batches.append(time.process_time() - start)
    row["over_batch"] = row["calls"] / min(batches)
    row["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row["regret"] = regret(problem, model.predict(test.x), test)
    row["baseline"] = regret(problem, model.baseline_.predict(test.x), test)
    if with_spo:
        start = time.process_time()
        predict = spo_plus(problem, train.x, train.y)
        row["spo"] = time.process_time() - start
        row["ratio"] = row["fit"] / row["spo"]
        row["spo_regret"] = regret(problem, predict(test.x), test)
    return row


CLOCK = Clock()
CLOCK.wrap("calls", Oracle, "sample")
CLOCK.wrap("calls", Oracle, "objective_kind")
CLOCK.wrap("losses", Samples, "pool")
CLOCK.wrap("losses", DecisionPool, "regrets_at")
CLOCK.wrap("losses", _rounds, "fit")
CLOCK.wrap("losses", _rounds, "fit_shared")
CLOCK.wrap("training", Trainer, "train")
CLOCK.wrap("training", Trainer, "final")


def main() -> None:
    """Print a line for each task."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=TASKS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sklearn", action="store_true")
    parser.add_argument("--no-spo", dest="spo", action="store_false")
    options = parser.parse_args()
    torch.set_num_threads(1)
    estimator = LinearRegression() if options.sklearn else None
    measure("path-50", 1, estimator, with_spo=options.spo)  # imports
    times = "fit", *PARTS, "SPO+", "ratio", "calls per instance", "over a batch"
    print(f"| {' | '.join(('task', *times, 'regret', 'SPO+', 'squared error', 'peak MB'))} |")
    print(f"|{'---|' * 14}")
    for task in options.tasks:
        seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
        rows = [measure(task, seed, estimator, with_spo=options.spo) for seed in seeds]
        mean = defaultdict(
            lambda: np.nan, {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}
        )
        seconds = " | ".join(f"{mean[part]:.2f}" for part in ("fit", *PARTS, "spo", "ratio"))
        regrets = " | ".join(f"{mean[name]:.2f}" for name in ("regret", "spo_regret", "baseline"))
        print(
            f"| {task} | {seconds} | {mean['n_calls']:.1f} "
            f"| {mean['over_batch']:.1f} | {regrets} | {mean['peak']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
