"""What asking adds to the oracle itself, for oracles that are quick.

    python speed/sampling_overhead.py

A scalar oracle of about a microsecond (the best of ten items, found by a Python function), two
vectorised ones (`TopK`, which is trivial, and `WebAdvertising`), and slopes by differences. Bare is
the time of the calls alone, on points that are there already. Seconds of processor time, so
that other work on the machine counts little; medians of several rounds.

For top-1 the bare calls take 12 us an instance, so that three times as much cannot be reached: to
draw the 20 points takes 26 us, to check and score what comes back 25 us, and to name the
instance, keep its answers and count them 12 us. For an oracle of 100 us an instance that is 1.6 x.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import lodl
from lodl.domains import TopK
from lodl.oracle import Oracle
from lodl.problems import VectorisedProblem
from lodl_benchmarks.domains import WebAdvertising

ROUNDS = 3


def best(y_hat: np.ndarray) -> int:
    return int(y_hat.argmax())


def value(z: int, y: np.ndarray) -> float:
    return y[z]


class Squares(VectorisedProblem):
    """Picks the best item; its objective, which is not linear, has no slope of its own."""

    sense = "max"

    def solve_many(self, y_hats: np.ndarray, context: None) -> np.ndarray:
        return np.eye(y_hats.shape[1])[y_hats.argmax(axis=1)]

    def objective_many(self, zs: Any, y: np.ndarray, context: None) -> np.ndarray:
        return zs @ (y * y)


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        work()
        times.append(process_time() - start)
    return median(times)


def ask(problem: lodl.Problem, y: np.ndarray, k: int, *, keep: bool, **options: Any) -> int:
    """Sample, and return how many files a store has."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store" if keep else None
        Oracle(problem, store=store).sample(y, n_samples=k, **options)
        return len(list(Path(folder).rglob("*.*")))


def print_scalar() -> None:
    problem = lodl.problem(best, value, sense="max")
    for n, k, target in ((1_000, 20, 10), (50, 1_000, 5)):
        y = np.random.default_rng(0).normal(size=(n, 10))
        y_hats = np.random.default_rng(1).normal(size=(k, 10))
        bare = seconds(lambda: [value(best(y_hat), y[0]) for _ in range(n) for y_hat in y_hats])  # noqa: B023
        asked = seconds(lambda: ask(problem, y, k, keep=False))  # noqa: B023
        micro = (asked - bare) / (n * k) * 1e6
        print(
            f"scalar oracle, K = {k:5,}: bare {bare / (n * k) * 1e6:.2f} us a call, "
            f"{micro:.1f} us around it (target {target})"
        )


def print_vectorised() -> None:
    n, k = 1_000, 20
    rng = np.random.default_rng(0)
    for problem, shape in ((TopK(), (50,)), (WebAdvertising(budget=2), (5, 10))):
        y, y_hats = rng.uniform(0, 0.2, (n, *shape)), rng.uniform(0, 0.2, (n, k + 1, *shape))
        sampler, scale = lodl.AllPerturbed(), np.full(shape, 0.1)

        def bare() -> None:
            for label, points in zip(y, y_hats, strict=True):  # noqa: B023
                problem.objective_many(problem.solve_many(points, None), label, None)  # noqa: B023

        def draw() -> None:
            for key, label in enumerate(y):  # noqa: B023
                sampler.draw(label, label, scale, seed=0, key=key, block=0, n=k)  # noqa: B023

        alone, drawn = seconds(bare), seconds(draw)
        kept = seconds(lambda: ask(problem, y, k, keep=True))  # noqa: B023
        print(
            f"{type(problem).__name__}, N = {n:,}, K = {k}, in a store: {kept:.2f} s, "
            f"{kept / alone:.1f} x the bare calls (target 3); drawing the points alone takes "
            f"{drawn / alone:.1f} x; {ask(problem, y, k, keep=True)} files"
        )


def print_slopes() -> None:
    n, k, dim = 100, 60, 50
    y = np.random.default_rng(0).normal(size=(n, dim))
    without = seconds(lambda: ask(Squares(), y, k, keep=False))
    with_slopes = seconds(lambda: ask(Squares(), y, k, keep=False, slopes=True))
    samples = Oracle(Squares()).sample(y, lodl.AllPerturbed(), k, slopes=True)
    distinct = np.mean([len(answers.slope) for answers in samples if answers.slope is not None])
    each = (with_slopes - without) / n * 1e3 * 20 / distinct
    print(f"slopes by differences, 20 distinct decisions, D = {dim}: {each:.2f} ms (target 5)")


def print_small() -> None:
    y = np.random.default_rng(0).normal(size=(10, 5))
    problem = lodl.problem(best, value, sense="max")
    start = process_time()
    lodl.learn_loss(Oracle(problem, n_jobs=1), y, n_samples=50)
    first = process_time() - start
    print(f"first learn_loss, 10 instances x 50 samples: {first:.2f} s (target 0.3)")


if __name__ == "__main__":
    print_small()
    print_scalar()
    print_vectorised()
    print_slopes()
