"""What the engine adds to a fast vectorised oracle.

    python speed/sampling_overhead.py

Web advertising, 100 labels of 5 websites x 10 users, 5,000 samples each, one worker. Bare is the
time of `solve_many` and `objective_many` on candidates that are there already, in the batch size
that is fastest for it; the engine also draws the candidates, checks, and keeps the outcomes. All
seconds are of processor time, so that other work on the machine does not count.
"""

import tempfile
from statistics import median
from time import process_time

import numpy as np

from lodl.domains import WebAdvertising
from lodl.oracle import evaluate
from lodl.problems._regret import decision_losses
from lodl.samplers import AllPerturbed

N, K, ROUNDS, TARGET = 100, 5_000, 3, 2.0


def bare_seconds(y: np.ndarray, batch: int) -> float:
    problem, rng, seconds = WebAdvertising(), np.random.default_rng(1), 0.0
    for label in y:
        y_hats = problem.project(label + y.std() * rng.normal(size=(K, *label.shape)))
        start = process_time()
        for first in range(0, K, batch):
            decision_losses(problem, y_hats[first : first + batch], label)
        seconds += process_time() - start
    return seconds


def engine_seconds(y: np.ndarray, *, keep: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/samples.zarr" if keep else None
        start = process_time()
        evaluate(WebAdvertising(), y, sampler=AllPerturbed(), n_samples=K, store=store)
        return process_time() - start


def main() -> None:
    rng = np.random.default_rng(0)
    y = rng.uniform(0, 0.2, size=(N, 5, 10)) * (rng.random((N, 5, 10)) < 0.3)
    engine_seconds(y[:2], keep=True)  # imports
    rounds = []
    for _ in range(ROUNDS):
        bare = min(bare_seconds(y, batch) for batch in (500, 5_000))
        rounds.append((bare, engine_seconds(y, keep=False), engine_seconds(y, keep=True)))
    bare, memory, kept = (median(column) for column in zip(*rounds, strict=True))
    print(f"{N * K:,} calls on one worker, median of {ROUNDS} rounds\n")
    print(
        f"{'':16}{'seconds':>9}{'us a call':>11}{'total/bare':>12}{'added/bare':>12}{'target':>8}"
    )
    for name, seconds in (("bare oracle", bare), ("in memory", memory), ("in a store", kept)):
        target = f"<= {TARGET:g}" if name == "in a store" else ""
        print(
            f"{name:16}{seconds:9.2f}{seconds / (N * K) * 1e6:11.2f}{seconds / bare:12.2f}"
            f"{seconds / bare - 1:12.2f}{target:>8}"
        )


if __name__ == "__main__":
    main()
