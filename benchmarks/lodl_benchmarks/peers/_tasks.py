"""The tasks: PyEPO's and others with a linear objective, and some that only our learner enters."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from lodl.domains import knapsack, newsvendor, shortest_path
from lodl_benchmarks.domains import (
    assignment,
    dispatch,
    linear_model,
    portfolio,
    sector_portfolio,
    travelling_salesman,
    web_advertising,
)
from lodl_benchmarks.peers._treatment import Treatment
from lodl_benchmarks.runner import Task

N_TEST = 1000
_HIDDEN = (32,)


@dataclass(frozen=True, eq=False)
class PeersTask(Task):
    """A domain, and the model that is trained for it."""

    hidden: tuple[int, ...] = ()  # widths of the model's hidden layers; empty for a linear model
    # Whether the objective is linear in the label, as PyEPO's methods require.
    is_linear: bool = True
    n: int | None = None  # instances to train and validate on, of linear tasks
    has_paths: bool = False  # whether decisions are the paths of a grid so small that all are known
    # Learning rates, folds and steps, the same for all methods.
    treatment: Treatment = field(default_factory=Treatment)

    def averaging(self, n_initialisations: int) -> "PeersTask":
        """Return the same task with another number of averaged models."""
        return replace(self, treatment=replace(self.treatment, n_initialisations=n_initialisations))


def _sizes(n: int) -> tuple[int, int, int]:
    return n - n // 5, n // 5, N_TEST


def _path(
    n: int, degree: int, noise: float, *, grid: int = 5, hidden: tuple[int, ...] = ()
) -> PeersTask:
    return PeersTask(
        f"path {grid}x{grid}, {_model(hidden)}n = {n:,}, degree {degree}, noise {noise:g}",
        partial(shortest_path, sizes=_sizes(n), grid=(grid, grid), degree=degree, noise=noise),
        hidden,
        n=n,
        has_paths=grid == 5,
    )


def _knapsack(n: int, n_items: int, *, hidden: tuple[int, ...] = ()) -> PeersTask:
    return PeersTask(
        f"knapsack of {n_items}, {_model(hidden)}n = {n}",
        partial(knapsack, sizes=_sizes(n), n_items=n_items),
        hidden,
        n=n,
    )


def _assignment(*, hidden: tuple[int, ...] = ()) -> PeersTask:
    return PeersTask(
        f"assignment 8x8, {_model(hidden)}n = 300",
        partial(assignment, sizes=_sizes(300)),
        hidden,
        n=300,
    )


def _model(hidden: tuple[int, ...]) -> str:
    return "network, " if hidden else ""


LINEAR: Mapping[str, PeersTask] = {
    "path-100-1": _path(100, 1, 0.5),
    "path-100-4": _path(100, 4, 0.5),
    "path-100-6": _path(100, 6, 0.5),
    "path-100-8": _path(100, 8, 0.5),
    "path-100-6-exact": _path(100, 6, 0.0),
    "path-1000-4": _path(1000, 4, 0.5),
    "path-1000-6-exact": _path(1000, 6, 0.0),
    "path-1000-8": _path(1000, 8, 0.5),
    "grid-12": _path(200, 6, 0.5, grid=12),
    "knapsack-16": _knapsack(500, 16),
    "knapsack-32": _knapsack(200, 32),
    "assignment": _assignment(),
    "salesman": PeersTask(
        "travelling salesman, 10 nodes, n = 100",
        partial(travelling_salesman, sizes=_sizes(100)),
        n=100,
    ),
    "sectors": PeersTask(
        "portfolio within sectors, n = 200", partial(sector_portfolio, sizes=_sizes(200)), n=200
    ),
}
"""The tasks that our learner is judged on: linear models for linear objectives."""

NETWORKS: Mapping[str, PeersTask] = {
    "path-network": _path(1000, 4, 0.5, hidden=_HIDDEN),
    "knapsack-network": _knapsack(500, 16, hidden=_HIDDEN),
    "assignment-network": _assignment(hidden=_HIDDEN),
}
"""Three of them with a small network."""

OTHERS: Mapping[str, PeersTask] = {
    "linear-model": PeersTask("Linear Model, n = 200", partial(linear_model, sizes=(160, 40, 400))),
    "web": PeersTask(
        "Web Advertising, n = 100",
        partial(web_advertising, sizes=(80, 20, 500)),
        hidden=(64,),
        is_linear=False,
    ),
    "portfolio": PeersTask(
        "portfolio with a risk term, n = 200",
        partial(portfolio, sizes=(160, 40, 400)),
        is_linear=False,
    ),
    "newsvendor": PeersTask(
        "newsvendor with recourse, n = 300",
        partial(newsvendor, sizes=_sizes(300)),
        is_linear=False,
    ),
    "dispatch": PeersTask(
        "dispatch, n = 100",
        partial(dispatch, sizes=(80, 20, 200)),
        is_linear=False,
    ),
}
"""The paper's three domains, and two where what is predicted stands on the right-hand side."""

TASKS: dict[str, PeersTask] = {**LINEAR, **NETWORKS, **OTHERS}
"""All tasks by name."""
