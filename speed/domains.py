"""Time of one oracle call in each domain, in batches and alone.

    python speed/domains.py

Processor time on one core, median of seven runs: 500 predictions of one instance at once (fewer
where a call takes milliseconds), and one prediction by itself.
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from lodl import domains
from lodl._arrays import context_of
from lodl._typing import Array, InstanceContext
from lodl.domains import Domain
from lodl.problems import Problem
from lodl_benchmarks import domains as more

N_RUNS = 7
BATCH = 500
FEW = 8
SECONDS = 1.0  # that a batch may take

DOMAINS: dict[str, Callable[..., Domain]] = {
    "Linear Model, 50 items": more.linear_model,
    "Web Advertising, 5 x 10": more.web_advertising,
    "Portfolio, 50 stocks": more.portfolio,
    "shortest path, 5 x 5": domains.shortest_path,
    "shortest path, 12 x 12": partial(domains.shortest_path, grid=(12, 12)),
    "shortest path, 30 x 30": partial(domains.shortest_path, grid=(30, 30)),
    "knapsack, 16 items, 2-D": domains.knapsack,
    "knapsack, 32 items, 2-D": partial(domains.knapsack, n_items=32),
    "knapsack, 32 items, 1-D": partial(domains.knapsack, n_items=32, n_dimensions=1),
    "knapsack, 100 items, HiGHS": partial(domains.knapsack, n_items=100),
    "knapsack, item by item": domains.item_knapsack,
    "newsvendor, 20 products": domains.newsvendor,
    "assignment, 8 x 8": more.assignment,
    "assignment within hours": partial(more.assignment, hours_share=0.7),
    "portfolio within sectors": more.sector_portfolio,
    "salesman, 10 nodes": more.travelling_salesman,
    "salesman, 12 nodes": partial(more.travelling_salesman, n_nodes=12),
    "salesman, 14 nodes": partial(more.travelling_salesman, n_nodes=14),
    "energy scheduling, 5 jobs": more.energy_scheduling,
    "dispatch, 24 hours": more.dispatch,
    "unit commitment, 4 plants": more.unit_commitment,
}


def microseconds(problem: Problem, y_hats: Array, context: InstanceContext) -> float:
    """Return the time of a call, of as many predictions at once as are given."""
    times = []
    for _ in range(N_RUNS):
        start = process_time()
        problem.solve_many(y_hats, context)
        times.append(process_time() - start)
    return 1e6 * median(times) / len(y_hats)


def batch_of(domain: Domain, size: int) -> tuple[Array, InstanceContext]:
    """Return predictions of one instance: labels of others."""
    part = domain.splits.train
    return np.resize(part.y, (size, *part.y.shape[1:])), context_of(part.context, 0)


def main() -> None:
    print(f"{'µs per oracle call':<28}{'entries':>8}{'batch':>7}{'in it':>10}{'alone':>10}")
    for name, make in DOMAINS.items():
        domain = make(sizes=(BATCH, 1, 1))
        y_hats, context = batch_of(domain, BATCH)
        alone = microseconds(domain.problem, y_hats[:1], context)
        size = int(min(BATCH, 1e6 * SECONDS / microseconds(domain.problem, y_hats[:FEW], context)))
        together = microseconds(domain.problem, y_hats[:size], context)
        print(f"{name:<28}{y_hats[0].size:>8,}{size:>7}{together:>10,.1f}{alone:>10,.0f}")


if __name__ == "__main__":
    threadpool_limits(1)
    main()
