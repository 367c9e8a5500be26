"""The tasks: PyEPO's and others with a linear objective, and some that only our learner enters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from lodl.benchmarks.peers._treatment import Treatment
from lodl.domains import (
    Domain,
    assignment,
    dispatch,
    knapsack,
    linear_model,
    newsvendor,
    portfolio,
    shortest_path,
    travelling_salesman,
    web_advertising,
)

N_TEST = 1000


@dataclass(frozen=True, eq=False)
class Task:
    """A domain, and the model that is trained for it.

    Attributes:
        title: What is decided.
        build: Makes the domain of a data seed; its training and validation instances are the data
            that every method is given.
        hidden: Widths of the model's hidden layers; none is a linear model.
        is_linear: Whether the objective is linear in the label, as PyEPO's methods require.
        treatment: Learning rates, folds and steps, the same for all methods.
    """

    title: str
    build: Callable[[int], Domain]
    hidden: tuple[int, ...] = ()
    is_linear: bool = True
    treatment: Treatment = field(default_factory=Treatment)


def _sizes(n: int) -> tuple[int, int, int]:
    return n - n // 5, n // 5, N_TEST


def _path(
    n: int, degree: int, noise: float, *, grid: int = 5, hidden: tuple[int, ...] = ()
) -> Task:
    model = "network, " if hidden else ""
    return Task(
        f"path {grid}x{grid}, {model}n = {n:,}, degree {degree}, noise {noise:g}",
        partial(shortest_path, sizes=_sizes(n), grid=(grid, grid), degree=degree, noise=noise),
        hidden,
    )


LINEAR: Mapping[str, Task] = {
    "path-100-1": _path(100, 1, 0.5),
    "path-100-4": _path(100, 4, 0.5),
    "path-100-6": _path(100, 6, 0.5),
    "path-100-8": _path(100, 8, 0.5),
    "path-100-6-exact": _path(100, 6, 0.0),
    "path-1000-4": _path(1000, 4, 0.5),
    "path-1000-6-exact": _path(1000, 6, 0.0),
    "path-1000-8": _path(1000, 8, 0.5),
    "grid-12": _path(200, 6, 0.5, grid=12),
    "knapsack-16": Task(
        "knapsack of 16, n = 500", partial(knapsack, sizes=_sizes(500), n_items=16)
    ),
    "knapsack-32": Task(
        "knapsack of 32, n = 200", partial(knapsack, sizes=_sizes(200), n_items=32)
    ),
    "assignment": Task("assignment 8x8, n = 300", partial(assignment, sizes=_sizes(300))),
}
"""The twelve tasks that our learner is judged on."""

MORE_LINEAR: Mapping[str, Task] = {
    "path-network": _path(1000, 4, 0.5, hidden=(32,)),
    "tsp-10": Task(
        "travelling salesman, 10 nodes, n = 100", partial(travelling_salesman, sizes=(80, 20, 300))
    ),
    "portfolio": Task(
        "portfolio with a risk term, n = 200",
        partial(portfolio, sizes=(160, 40, 400)),
        is_linear=False,
    ),
}

OTHERS: Mapping[str, Task] = {
    "linear-model": Task("Linear Model, n = 200", partial(linear_model, sizes=(160, 40, 400))),
    "web": Task(
        "Web Advertising, n = 100",
        partial(web_advertising, sizes=(80, 20, 500)),
        hidden=(64,),
        is_linear=False,
    ),
    "newsvendor": Task(
        "newsvendor with recourse, n = 300",
        partial(newsvendor, sizes=_sizes(300)),
        is_linear=False,
    ),
    "dispatch": Task(
        "dispatch, n = 100",
        partial(dispatch, sizes=(80, 20, 200)),
        is_linear=False,
    ),
}

TASKS: dict[str, Task] = {**LINEAR, **MORE_LINEAR, **OTHERS}
"""All tasks by name."""
