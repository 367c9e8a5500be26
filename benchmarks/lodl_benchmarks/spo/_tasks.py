"""Data of the founding experiments of SPO+: shortest paths and portfolios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lodl.domains import Domain, ShortestPath
from lodl.domains._domain import legacy_rng, polynomials
from lodl_benchmarks.runner import Task
from lodl_benchmarks.spo._portfolio import founding_portfolio

N_TEST = 10_000
_N_FEATURES = 5
_DEGREES = (1, 2, 4, 6, 8)
_DEGREES_OF_PORTFOLIOS = (1, 4, 8, 16, 32)
PATH, PORTFOLIO = "shortest_path", "portfolio"  # as the published table names them


def founding_path(seed: int, *, n: int, degree: int, noise: float) -> Domain:
    """Paths across a 5 x 5 grid, as Elmachtoub and Grigas (2022) drew them.

        x ~ N(0, I_5),   B ~ Bernoulli(1/2), 40 x 5, drawn anew for each seed
        y_j = ((B_j x / sqrt(5) + 3)^degree + 1) e_j,   e_j ~ U[1 - noise, 1 + noise]

    `n` instances train, a quarter as many validate, 10,000 test. `lodl.domains.shortest_path`
    divides costs by 3.5^degree, which matters to penalties alone.
    """
    problem = ShortestPath((5, 5))
    sizes = (n, n // 4, N_TEST)
    shape = (sum(sizes), _N_FEATURES, problem.n_arcs)
    x, y = polynomials(legacy_rng(seed), shape, degree=degree, noise=noise, scale=3.5**degree)
    return Domain.in_order(problem, sizes, x, y)


@dataclass(frozen=True, eq=False)
class Cell(Task):
    """A cell of a published table."""

    n: int
    degree: int
    noise: float
    problem: str = PATH  # as the published table names it

    @property
    def key(self) -> tuple[str, int, float, int]:
        """Where published figures of the cell are found."""
        return self.problem, self.n, self.noise, self.degree


def _cell(problem: str, n: int, noise: float, degree: int) -> Cell:
    draw = founding_path if problem == PATH else founding_portfolio
    prefix = "" if problem == PATH else f"{problem}, "
    title = f"{prefix}n = {n:,}, noise {noise:g}, degree {degree}"
    return Cell(title, partial(draw, n=n, degree=degree, noise=noise), n, degree, noise, problem)


CELLS: Mapping[str, Cell] = {
    **{
        f"{n}-{noise:g}-{degree}": _cell(PATH, n, noise, degree)
        for n in (100, 1000, 5000)
        for noise in (0.0, 0.5)
        for degree in _DEGREES
    },
    **{
        f"portfolio-{n}-{noise:g}-{degree}": _cell(PORTFOLIO, n, noise, degree)
        for n in (100, 1000)
        for noise in (1.0, 2.0)
        for degree in _DEGREES_OF_PORTFOLIOS
    },
}
"""The cells by name: problem (paths have none), instances, noise, degree."""


@dataclass(frozen=True)
class Scale:
    """Cells, methods and draws of a run."""

    cells: tuple[str, ...]
    methods: tuple[str, ...]
    draws: Mapping[int, Sequence[int]]  # data seeds by number of instances


_SEEDS = range(2001, 2021)  # no other table uses them, and nothing was chosen on them
_CORE = ("least squares", "least squares, all rows", "SPO+", "SPO+, all rows", "lodl")

SCALES: Mapping[str, Scale] = {
    "quick": Scale(("100-0.5-1", "100-0.5-4", "100-0.5-8"), _CORE, {100: _SEEDS[:2]}),
    "full": Scale(
        tuple(CELLS),
        (*_CORE, "forest", "lodl, forest", "lodl, LightGBM"),
        dict.fromkeys((100, 1000, 5000), _SEEDS),
    ),
}
"""The scales by name: quick takes a minute, full takes hours."""
