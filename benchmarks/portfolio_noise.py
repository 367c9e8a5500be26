"""What features tell in Portfolio: predictions drawn towards a constant, with 200 and 800 days.

`python benchmarks/portfolio_noise.py [PRICES.csv]`: simulated prices unless a file is named.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from lodl.baselines import constant_predictions
from lodl.datasets import Prices, read_prices
from lodl.domains import Domain, portfolio
from lodl.evaluation import decision_quality, quality_scale
from lodl.experiments import METHODS, SETUPS, Task, keep_freed_memory
from lodl.oracle import evaluate
from lodl.typing import Array

SEED, N_INITIALISATIONS, N_SAMPLES = 1000, 3, 1000  # the seed is of no table
N_DAYS = (200, 800)
SHOWN = ("2-stage", "DFL", "WeightedMSE", "Quadratic", "ConvexDirectedQuadratic")
KEPT = (1.0, 0.5, 0.25, 0.1, 0.0)


def test_predictions(domain: Domain) -> dict[str, Array]:
    """Returns, for each method, what its models predict on the test days."""
    setup, part = SETUPS["portfolio"], domain.splits.with_losses
    samples = evaluate(
        domain.problem,
        part.y,
        context=part.context,
        sampler=setup.sampler,
        n_samples=N_SAMPLES,
        seed=SEED,
    )
    with tempfile.TemporaryDirectory() as folder:
        return {
            name: METHODS[name]
            .run(
                Task(
                    domain=domain,
                    surrogate=setup.surrogate,
                    settings=setup.training,
                    n_initialisations=N_INITIALISATIONS,
                    samples=samples,
                    loss_path=Path(folder, f"{name}.safetensors"),
                )
            )
            .y_hat_test
            for name in SHOWN
        }


def qualities(domain: Domain, y_hat: Array) -> list[float]:
    """Returns mean quality with ever less of what sets the predictions off from a constant."""
    train, test = domain.splits.train, domain.splits.test
    constant = constant_predictions(train.y, len(test.y))
    scale = quality_scale(domain.problem, test.y, context=test.context, seed=SEED)
    drawn = [constant + kept * (y_hat - constant) for kept in KEPT]
    worth = [decision_quality(domain.problem, y, test.y, context=test.context) for y in drawn]
    return [float(scale.normalise(quality).mean()) for quality in worth]


def show(n_days: int, prices: Prices | None) -> None:
    domain = portfolio(SEED, prices=prices, sizes=(n_days, 200, 400))
    print(f"\n{n_days} days of training: test quality with a share of the prediction kept")
    print(f"{'':24}  deviation" + "".join(f"{kept:>7.0%}" for kept in KEPT))
    for name, y_hat in test_predictions(domain).items():
        shown = "".join(f"{quality:7.2f}" for quality in qualities(domain, y_hat))
        print(f"{name:24} {np.std(y_hat):10.4f}{shown}", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    prices = read_prices(sys.argv[1]) if len(sys.argv) > 1 else None
    for n_days in N_DAYS:
        show(n_days, prices)


if __name__ == "__main__":
    main()
