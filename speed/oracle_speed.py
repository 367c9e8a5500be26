"""Time of one decision in each domain, compared with the usual way to make it.

    python speed/oracle_speed.py

One core; 5,000 predictions for one instance. Slow methods are timed on fewer predictions.
Each number is the median of several runs, ours and the yardstick's in turn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from timeit import Timer
from typing import Any

import cvxpy as cp
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from lodl._typing import Array, InstanceContext
from lodl.problems import Problem
from lodl_benchmarks.domains import Portfolio, linear_model, portfolio, web_advertising

N_PREDICTIONS = 5_000
N_RUNS = 7


@dataclass(frozen=True)
class Comparison:
    """Our solver and a yardstick on the same predictions of one instance."""

    name: str
    yardstick_name: str
    target: float
    problem: Problem
    y_hats: Array
    context: InstanceContext
    yardstick: Callable[[Array], object]
    n_yardstick: int  # predictions on which the yardstick is timed


def top_1_of_50() -> Comparison:
    def argsort_loop(y_hats: Array) -> list[Any]:
        return [np.argsort(y_hat)[-1:] for y_hat in y_hats]

    y_hats = np.random.default_rng(0).standard_normal((N_PREDICTIONS, 50))
    domain = linear_model()
    return Comparison(
        "top 1 of 50", "argsort loop", 20, domain.problem, y_hats, None, argsort_loop, N_PREDICTIONS
    )


def web_5_by_10() -> Comparison:
    rng = np.random.default_rng(0)
    domain = web_advertising()
    y = next(y for y in domain.splits.train.y if y.any())
    y_hats = domain.problem.project(y + 0.1 * rng.standard_normal((N_PREDICTIONS, *y.shape)))
    return Comparison(
        "web 5 x 10, budget 2",
        "100 gradient steps, torch",
        1_000,
        domain.problem,
        y_hats,
        None,
        lambda y_hats: [projected_gradient(torch.from_numpy(y_hat)) for y_hat in y_hats],
        10,
    )


def projected_gradient(y_hat: torch.Tensor, budget: int = 2, n_steps: int = 100) -> torch.Tensor:
    """Maximises the multilinear relaxation, as the paper does: one prediction, 100 steps."""
    z = torch.full((len(y_hat),), budget / len(y_hat), dtype=y_hat.dtype, requires_grad=True)
    optimiser = torch.optim.SGD([z], lr=0.1, momentum=0.9)
    for _ in range(n_steps):
        optimiser.zero_grad()
        loss = (1 - z[:, None] * y_hat).prod(dim=0).sum()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            z.copy_(onto_budget(z, budget))
    return z.detach()


def onto_budget(z: torch.Tensor, budget: int) -> torch.Tensor:
    """Projects onto 0 <= z <= 1, sum(z) = budget: z less a shift, found between breakpoints."""
    breakpoints = torch.cat([z - 1, z]).sort().values
    sums = (z - breakpoints[:, None]).clamp(0, 1).sum(dim=1)  # falling in the breakpoint
    after = int((sums > budget).sum())
    left, right = breakpoints[after - 1], breakpoints[after]
    share = (sums[after - 1] - budget) / (sums[after - 1] - sums[after])
    return (z - (left + share * (right - left))).clamp(0, 1)


def portfolio_of_50() -> Comparison:
    domain: Any = portfolio()
    test = domain.splits.test
    noise = 0.02 * np.random.default_rng(0).standard_normal((N_PREDICTIONS, 50))
    return Comparison(
        "portfolio of 50",
        "CVXPY with parameters",
        10,
        domain.problem,
        test.y[0] + noise,
        test.context[0],
        through_cvxpy(domain.problem, test.context[0]),
        100,
    )


def through_cvxpy(problem: Portfolio, risk: Array) -> Callable[[Array], list[Array]]:
    """Compiles the problem once; only the parameter changes between solves."""
    y_hat, z = cp.Parameter(len(risk)), cp.Variable(len(risk), nonneg=True)
    value = y_hat @ z - problem.risk_aversion * cp.quad_form(z, cp.psd_wrap(risk))
    program: Any = cp.Problem(cp.Maximize(value), [cp.sum(z) == 1])
    assert program.is_dcp(dpp=True)

    def solve(y_hats: Array) -> list[Array]:
        zs: list[Any] = []
        for prediction in y_hats:
            y_hat.value = prediction
            program.solve(solver=cp.CLARABEL)
            zs.append(z.value)
        return zs

    solve(np.zeros((1, len(risk))))  # compile
    return solve


def microseconds(comparison: Comparison) -> tuple[float, float]:
    """Return the median time of a decision, ours and the yardstick's, timed in turn."""
    few = comparison.y_hats[: comparison.n_yardstick]
    ours = Timer(lambda: comparison.problem.solve_many(comparison.y_hats, comparison.context))
    theirs = Timer(lambda: comparison.yardstick(few))
    n_ours, _ = ours.autorange()  # as many calls in a row as can be timed well
    times = [(ours.timeit(n_ours) / n_ours, theirs.timeit(1)) for _ in range(N_RUNS)]
    per_call, per_few = (median(column) for column in zip(*times, strict=True))
    return 1e6 * per_call / len(comparison.y_hats), 1e6 * per_few / len(few)


def main() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)
    print(f"{'µs per decision':<22}{'lodl':>9}{'yardstick':>12}{'ratio':>9}{'target':>9}")
    for make in (top_1_of_50, web_5_by_10, portfolio_of_50):
        comparison = make()
        ours, theirs = microseconds(comparison)
        print(
            f"{comparison.name:<22}{ours:>9.3f}{theirs:>12.1f}{theirs / ours:>8,.0f}x"
            f"{comparison.target:>8,.0f}x  {comparison.yardstick_name}"
        )


if __name__ == "__main__":
    main()
