"""Test regret of `DecisionFocusedRegressor` beside 2-stage trained with equal care.

    python speed/learner.py [DATA_SEED ...]

Linear models, defaults throughout. 2-stage is the learner without any other loss: the same folds
choose its number of steps, and the same initial states are averaged. Nothing is chosen on test
data. Regrets are relative to the optimum.
"""

import sys
import time

import numpy as np

from lodl import DecisionFocusedRegressor
from lodl.domains import Domain, knapsack, linear_model, newsvendor, shortest_path
from lodl.evaluation import decision_loss

TASKS = {
    "path, n = 100": lambda seed: shortest_path(seed, sizes=(80, 20, 1000), degree=6),
    "path, n = 320": lambda seed: shortest_path(seed, sizes=(256, 64, 1000), degree=6),
    "knapsack 16, n = 300": lambda seed: knapsack(seed, sizes=(250, 50, 1000)),
    "newsvendor, n = 300": lambda seed: newsvendor(seed, sizes=(240, 60, 1000)),
    "Linear Model, n = 100": lambda seed: linear_model(seed, sizes=(80, 20, 400)),
}


def main() -> None:
    seeds = [int(seed) for seed in sys.argv[1:]] or [1, 2, 3]
    print("task                   seed  2-stage  learner     gain  std.err.   calls  seconds")
    for name, make in TASKS.items():
        for seed in seeds:
            print(f"{name:21}  {seed:4}  {compare(make(seed))}", flush=True)


def compare(domain: Domain) -> str:
    data, test = domain.splits.train_and_validation, domain.splits.test
    optimum = decision_loss(domain.problem, test.y, test.y, progress=False)
    started = time.perf_counter()
    model = DecisionFocusedRegressor(domain.problem).fit(data.x, data.y)
    seconds = time.perf_counter() - started
    two_stage = DecisionFocusedRegressor(domain.problem, families=(), n_rounds=0)
    two_stage.fit(data.x, data.y)
    two_stage.kept_ = 1.0  # as it is, not drawn to the mean
    before, after = (
        one.regret(test.x, test.y) / np.abs(optimum.mean()) for one in (two_stage, model)
    )
    gain = before - after
    error = gain.std() / np.sqrt(len(gain))
    return (
        f"{before.mean():7.4f}  {after.mean():7.4f}  {gain.mean():7.4f}  {error:8.4f}  "
        f"{model.n_oracle_calls_:6}  {seconds:7.0f}   {model.chosen_}"
    )


if __name__ == "__main__":
    main()
