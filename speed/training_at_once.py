"""Time to train ten initialisations at once and one after another, on one core."""

import time

import numpy as np
import torch

from lodl.domains import Domain
from lodl.training.torch import TrainingSettings
from lodl_benchmarks.domains import linear_model, web_advertising
from lodl_benchmarks.runner import initialisations, squared_error, train

N_MODELS = 10


def seconds(domain: Domain, n_at_once: int, n_steps: int) -> float:
    splits, models = domain.splits, initialisations(domain, N_MODELS)
    started = time.perf_counter()
    for start in range(0, N_MODELS, n_at_once):
        train(
            models[start : start + n_at_once],
            splits.train.x,
            squared_error(splits.train.y),
            splits.validation.x,
            squared_error(splits.validation.y),
            TrainingSettings(n_steps=n_steps, patience=n_steps),
        )
    return time.perf_counter() - started


def main() -> None:
    torch.set_num_threads(1)
    print(f"{N_MODELS} models, {'domain':<18}{'one by one':>12}{'at once':>12}{'gain':>8}")
    for build, n_steps in [(linear_model, 200), (web_advertising, 50)]:
        domain = build(0)
        one_by_one, at_once = (
            float(np.median([seconds(domain, n, n_steps) for _ in range(3)])) for n in (1, N_MODELS)
        )
        print(
            f"{n_steps:>4} steps  {build.__name__:<18}{one_by_one:>10.2f} s{at_once:>10.2f} s"
            f"{one_by_one / at_once:>7.1f}x"
        )


if __name__ == "__main__":
    main()
