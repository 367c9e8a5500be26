"""Table 1: decision quality of every loss in every domain, beside the paper's figures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lodl.benchmarks._methods import METHODS
from lodl.benchmarks._quality_table import (
    Cell,
    markdown_table,
    quality_cells,
    quality_markdown,
)
from lodl.benchmarks._results import Row
from lodl.benchmarks._run import Experiment
from lodl.benchmarks._setup import SETUPS, Setup
from lodl.paper import published_quality
from lodl.rows import PARTS


@dataclass(frozen=True)
class ScaleOfRun:
    """How much of the paper's protocol to run."""

    n_seeds: int
    n_initialisations: int
    n_samples: int


SCALES: dict[str, ScaleOfRun] = {
    "demo": ScaleOfRun(n_seeds=1, n_initialisations=3, n_samples=2000),
    "quick": ScaleOfRun(n_seeds=2, n_initialisations=3, n_samples=1000),
    "paper": ScaleOfRun(n_seeds=10, n_initialisations=10, n_samples=5000),
}


def table1_experiments(
    scale: ScaleOfRun, setups: Mapping[str, Setup] = SETUPS, domains: Iterable[str] = SETUPS
) -> list[Experiment]:
    """Returns the experiments of the table."""
    return [
        Experiment(
            domain=domain,
            method=method,
            seed=seed,
            n_initialisations=scale.n_initialisations,
            n_samples=scale.n_samples,
            learning_rate=setups[domain].training.learning_rate,
            sampler=setups[domain].sampler,
            surrogate=setups[domain].surrogate,
        )
        for domain in domains
        for seed in range(scale.n_seeds)
        for method in METHODS
    ]


def learned_experiments(
    scale: ScaleOfRun, setups: Mapping[str, Setup] = SETUPS, domains: Iterable[str] = SETUPS
) -> list[Experiment]:
    """Returns those of the table's experiments that learn a loss."""
    plan = table1_experiments(scale, setups, domains)
    return [e for e in plan if METHODS[e.method].needs_samples]


def table1_info(rows: Iterable[Row]) -> dict[tuple[str, str], Cell]:
    """Returns the cells of the table by (method, domain), from rows of any number of seeds."""
    return quality_cells(rows, lambda row: str(row["domain"]), published_quality)


def table1_markdown(
    cells: Mapping[tuple[str, str], Cell], setups: Mapping[str, Setup] = SETUPS
) -> str:
    """Returns the table for people."""
    shown = {domain for _, domain in cells}
    titles = {name: setup.title for name, setup in setups.items() if name in shown}
    return quality_markdown(cells, titles)


def costs_markdown(
    cells: Mapping[tuple[str, str], Cell], setups: Mapping[str, Setup] = SETUPS
) -> str:
    """Returns where the time goes: seconds of one core per domain seed, by part."""
    rows = [
        [
            setups[domain].title,
            method,
            f"{cell.oracle_calls:,.0f}",
            *(f"{cell.seconds[part]:.1f}" for part in PARTS),
        ]
        for (method, domain), cell in cells.items()
    ]
    return markdown_table(["domain", "loss", "oracle calls", *PARTS], rows)
