"""What features add in Portfolio: predictions drawn towards a constant, with 200 and 800 days.

`python results/portfolio_noise.py [PRICES.csv]`: simulated prices unless a file is named.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from lodl._typing import Array
from lodl.domains import Domain
from lodl.oracle import Oracle
from lodl_benchmarks.domains import portfolio, read_prices, synthetic_prices
from lodl_benchmarks.experiments import SETUPS
from lodl_benchmarks.quality import decision_quality, quality_scale
from lodl_benchmarks.runner import METHODS, Run, keep_freed_memory

SEED, N_INITIALISATIONS, N_SAMPLES = 1000, 3, 1000  # no table shows this seed
N_DAYS = (200, 800)
SHOWN = ("2-stage", "DFL", "WeightedMSE", "Quadratic", "ConvexDirectedQuadratic")
KEPT = (1.0, 0.5, 0.25, 0.1, 0.0)


def domain_of(prices: Array, n_days: int) -> Domain:
    """Return the domain with the last `n_days` before validation days that are always the same."""
    later = prices[max(N_DAYS) - n_days :]
    return portfolio(SEED, prices=later, sizes=(n_days, 200, 400))


def predictions_by_method(domain: Domain) -> dict[str, Array]:
    """Return, for each method, what its models predict for the test days."""
    setup, part = SETUPS["portfolio"], domain.splits.train_and_validation
    oracle = Oracle(domain.problem)
    instances = oracle.instances(part.y, part.context, keys=range(len(part.y)))
    samples = oracle.sample(instances, setup.sampler, N_SAMPLES, random_state=SEED)
    with tempfile.TemporaryDirectory() as folder:
        return {
            name: METHODS[name]
            .run(
                Run(
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


def qualities(domain: Domain, constant: Array, deviation: Array) -> list[float]:
    """Return mean quality with less and less of what predictions add to a constant."""
    test = domain.splits.test
    scale = quality_scale(domain.problem, test.y, context=test.context, random_state=SEED)
    drawn = [constant + kept * deviation for kept in KEPT]
    worth = [decision_quality(domain.problem, y, test.y, context=test.context) for y in drawn]
    return [float(scale.normalise(quality).mean()) for quality in worth]


def show(domain: Domain) -> None:
    train, test = domain.splits.train, domain.splits.test
    print(f"\n{len(train.y)} days of training: test quality with a share of the prediction kept")
    print(f"{'':24}  deviation" + "".join(f"{kept:>7.0%}" for kept in KEPT))
    constant = np.broadcast_to(train.y.mean(axis=0), test.y.shape)
    for name, y_hat in predictions_by_method(domain).items():
        deviation = y_hat - constant
        shown = "".join(f"{quality:7.2f}" for quality in qualities(domain, constant, deviation))
        print(f"{name:24} {np.sqrt(np.square(deviation).mean()):10.4f}{shown}", flush=True)


def main() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    prices = (
        read_prices(sys.argv[1]).close if len(sys.argv) > 1 else synthetic_prices(SEED, n_days=1766)
    )
    for n_days in N_DAYS:
        show(domain_of(prices, n_days))


if __name__ == "__main__":
    main()
