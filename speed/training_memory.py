"""Time of training steps of the portfolio's networks, with freed memory returned and kept."""

import time

import numpy as np
import torch

from lodl.training.torch import TrainingSettings
from lodl_benchmarks.domains import portfolio
from lodl_benchmarks.runner import initialisations, keep_freed_memory, squared_error, train

N_MODELS, N_STEPS = 10, 40


def seconds() -> float:
    domain = portfolio(0)
    splits = domain.splits
    started = time.process_time()
    train(
        initialisations(domain, N_MODELS),
        splits.train.x,
        squared_error(splits.train.y),
        splits.validation.x,
        squared_error(splits.validation.y),
        TrainingSettings(n_steps=N_STEPS, validate_every=N_STEPS, batch_size=20),
    )
    return time.process_time() - started


def main() -> None:
    torch.set_num_threads(1)
    given_back = float(np.median([seconds() for _ in range(3)]))
    keep_freed_memory()
    kept = float(np.median([seconds() for _ in range(3)]))
    print(f"{N_MODELS} models, {N_STEPS} steps of 20 days: processor time on one core")
    print(f"memory given back {given_back:.2f} s, kept {kept:.2f} s: {given_back / kept:.1f}x")


if __name__ == "__main__":
    main()
