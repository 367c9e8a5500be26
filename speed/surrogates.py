"""Time of decision-focused learning through each surrogate, compared with a conic layer.

    python speed/surrogates.py

A pass is the loss of every instance and its gradient by the predictions, at the paper's sizes, for
one initialisation and for ten at once, on one thread (the tensors are small). The last column is
the cost of a domain of the paper's table on one core: 100 runs of 500 steps, without model and
validation. If cvxpylayers is installed, it solves the portfolio, too, to its default precision.
Target for the portfolio: at most twice the time of the oracle alone, which is the forward pass.
"""

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from lodl_benchmarks.domains import Portfolio
from lodl_benchmarks.surrogates import (
    MultilinearRelaxation,
    QuadraticProgram,
    SoftTopK,
    Surrogate,
    SurrogateLoss,
)

N_PASSES = 5
N_RUNS, N_STEPS = 100, 500
N_DAYS, N_STOCKS = 200, 50


@dataclass(frozen=True)
class Case:
    """A surrogate, with labels and context of the paper's size."""

    name: str
    surrogate: Surrogate
    y: torch.Tensor
    noise: float
    context: Any = None

    def predictions(self, n_initialisations: int) -> torch.Tensor:
        """Return labels with noise, one set per initialisation."""
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(n_initialisations, *self.y.shape, generator=generator)
        return (self.y + self.noise * noise).clone()


def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 50))
    click_rates = rng.uniform(0, 0.2, (80, 5, 10)) * (rng.random((80, 5, 10)) < 0.2)
    returns = 0.02 * rng.standard_normal((N_DAYS, N_STOCKS))
    history = rng.standard_normal((N_DAYS, N_STOCKS, 3)) @ rng.standard_normal((N_DAYS, 3, 60))
    history += rng.standard_normal(history.shape)
    risk = np.stack([np.corrcoef(day) for day in history]) + 0.1 * np.eye(N_STOCKS)
    return [
        Case("Linear Model, soft top-k", SoftTopK(1), _single(10 * x**3 - 6.5 * x), 1.0),
        Case("Web, multilinear", MultilinearRelaxation(2), _single(click_rates), 0.05),
        Case("Portfolio, QP", QuadraticProgram(), _single(returns), 0.02, _single(risk)),
    ]


def seconds_per_pass(run: Callable[[], object], n_passes: int = N_PASSES) -> float:
    run()
    times = []
    for _ in range(n_passes):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return median(times)


def seconds_of(case: Case, n_initialisations: int) -> float:
    criterion = SurrogateLoss(case.surrogate)
    y_hat = case.predictions(n_initialisations).requires_grad_()

    def run() -> None:
        criterion(y_hat, case.y, case.context).sum().backward()

    return seconds_per_pass(run)


def seconds_of_oracle(case: Case, n_initialisations: int) -> float:
    y_hat = case.predictions(n_initialisations).double().numpy()
    context = case.context.double().numpy()
    problem = Portfolio()

    def run() -> None:
        for instance, risk in enumerate(context):
            problem.solve_many(y_hat[:, instance], risk)

    return seconds_per_pass(run)


def seconds_of_conic_layer(case: Case) -> float:
    """Return the time of one pass of one initialisation through cvxpylayers."""
    import cvxpy as cp
    from cvxpylayers.torch import CvxpyLayer

    z = cp.Variable(N_STOCKS)
    root, y = cp.Parameter((N_STOCKS, N_STOCKS)), cp.Parameter(N_STOCKS)
    objective = cp.Maximize(y @ z - 0.1 * cp.sum_squares(root @ z))
    program = cp.Problem(objective, [z >= 0, cp.sum(z) == 1])
    layer = CvxpyLayer(program, parameters=[root, y], variables=[z])
    roots = torch.linalg.cholesky(case.context.double()).mT.contiguous()
    y_hat = case.predictions(1)[0].double().requires_grad_()

    def run() -> None:
        (decision,) = layer(roots, y_hat)
        case.surrogate.objective(decision, case.y.double(), case.context).sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return seconds_per_pass(run, n_passes=3)


def print_row(name: str, n_initialisations: int, n_instances: int, seconds: float) -> float:
    """Prints a row of the table; returns microseconds per instance."""
    per_instance = seconds / (n_initialisations * n_instances)
    total = per_instance * n_instances * N_RUNS * N_STEPS
    print(f"{name:28}{n_initialisations:>8}{per_instance * 1e6:>14.1f}{total / 60:>16.1f}")
    return per_instance * 1e6


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'':28}{'inits':>8}{'us/instance':>14}{'table, minutes':>16}")
    for case in cases():
        one = print_row(case.name, 1, len(case.y), seconds_of(case, 1))
        ten = print_row(case.name, 10, len(case.y), seconds_of(case, 10))
    portfolio = case  # the last
    oracle = print_row("Portfolio, oracle alone", 10, N_DAYS, seconds_of_oracle(portfolio, 10))
    if importlib.util.find_spec("cvxpylayers") is None:
        print("\ncvxpylayers is not installed: no comparison with it.")
    else:
        layer = print_row("Portfolio, cvxpylayers", 1, N_DAYS, seconds_of_conic_layer(portfolio))
        print(f"\nPortfolio, cvxpylayers / ours, one initialisation: {layer / one:.0f}")
    print(f"Portfolio, ours / oracle alone, ten initialisations: {ten / oracle:.2f} (target: 2)")


def _single(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array).float()


if __name__ == "__main__":
    main()
