"""What no model can do better than: the decisions of someone who knows everything but the noise.

    python results/rounds/floor.py

The objectives of these tasks are linear in the label, so the decision with the least expected
regret, given the features, is the one for the expected label. The generators are known, and with
them the expected label of every test instance. Its regret is what the noise alone costs: no model,
however trained and on however many instances, has less on average over the noise. Data seeds 1 to
3, as in rounds.md.
"""

import numpy as np

from lodl._typing import Array
from lodl.domains import shortest_path
from lodl.domains._domain import legacy_rng, polynomials
from lodl.evaluation import decision_loss, regret
from lodl_benchmarks.rounds import TASKS

SEEDS = (1, 2, 3)
PATHS = {
    "path": {"sizes": (256, 64, 1000)},
    "large-path": {"sizes": (240, 60, 1000), "grid": (12, 12)},
}
KNAPSACKS = {"knapsack": (2, 4, 0.5), "plain-knapsack": (1, 6, 0.3)}  # dimensions, degree, noise


def expected_costs(name: str, seed: int) -> Array:
    """Return the expected test labels of a path: those without noise, whose mean is 1."""
    return shortest_path(seed, degree=6, noise=0.0, **PATHS[name]).splits.test.y


def expected_values(name: str, seed: int) -> Array:
    """Return the expected test labels of a knapsack, whose values are rounded up after noise."""
    n_dimensions, degree, noise = KNAPSACKS[name]
    rng = legacy_rng(seed)
    rng.choice(range(300, 800), size=(n_dimensions, 16))  # the weights, which are drawn first
    _, y = polynomials(rng, (1300, 5, 16), degree=degree, noise=0.0, scale=5)
    low, high = (1 - noise) * y[300:], (1 + noise) * y[300:]
    return (integral_of_ceil(high) - integral_of_ceil(low)) / (high - low)


def integral_of_ceil(t: Array) -> Array:
    """Return the integral of the rounded-up number from 0 to t."""
    whole = np.floor(t)
    return whole * (whole + 1) / 2 + (t - whole) * (whole + 1)


def main() -> None:
    print("| task | " + " | ".join(f"seed {seed}" for seed in SEEDS) + " |")
    print("|---|" + "---|" * len(SEEDS))
    for name in (*PATHS, *KNAPSACKS):
        print(f"| {name} | " + " | ".join(floor(name, seed) for seed in SEEDS) + " |")


def floor(name: str, seed: int) -> str:
    """Return the regret of the expected labels, relative, with its standard error."""
    domain = TASKS[name].build(seed)
    problem, y = domain.problem, domain.splits.test.y
    y_mean = (expected_costs if name in PATHS else expected_values)(name, seed)
    best = np.abs(decision_loss(problem, y, y)).mean()
    lost = regret(problem, y_mean, y) / best
    return f"{lost.mean():.4f} ± {lost.std() / np.sqrt(len(lost)):.4f}"


if __name__ == "__main__":
    main()
