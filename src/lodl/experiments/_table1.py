"""Table 1: decision quality of every loss in every domain, beside the paper's figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lodl.experiments._methods import METHODS
from lodl.experiments._results import Row
from lodl.experiments._run import Experiment
from lodl.experiments._setup import SETUPS, Setup
from lodl.paper import TABLE1


@dataclass(frozen=True)
class Figure:
    """A mean and its standard deviation over runs."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:z.2f} ± {self.std:.2f}"  # z: no minus before a zero

    def is_apart_from(self, other: "Figure") -> bool:
        """Tells whether the two intervals mean ± std, rounded as printed, do not meet."""
        return abs(self.mean - other.mean) > self.std + other.std + 0.01


@dataclass(frozen=True)
class Cell:
    """One method in one domain.

    Attributes:
        ours: Normalised test decision quality over all runs.
        n_runs: How many runs.
        paper: The published figure, None where there is none.
        oracle_calls: Per domain seed.
        seconds: Sampling, fitting and training per domain seed, on one core.
    """

    ours: Figure
    n_runs: int
    paper: Figure | None
    oracle_calls: float
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class ScaleOfRun:
    """How much of the paper's protocol to run."""

    n_seeds: int
    n_initialisations: int
    n_samples: int


_PARTS = ("sampling", "fitting", "training")

SCALES: dict[str, ScaleOfRun] = {
    "demo": ScaleOfRun(n_seeds=1, n_initialisations=3, n_samples=2000),
    "quick": ScaleOfRun(n_seeds=2, n_initialisations=3, n_samples=2000),
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
            learning_rate=setups[domain].learning_rate(method),
            sampler=setups[domain].sampler,
            surrogate=setups[domain].surrogate,
        )
        for domain in domains
        for seed in range(scale.n_seeds)
        for method in METHODS
    ]


def table1_info(rows: Sequence[Row]) -> dict[tuple[str, str], Cell]:
    """Returns the cells of the table by (method, domain), from rows of any number of seeds."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["method"], row["domain"]), []).append(row)
    return {key: _cell(*key, group) for key, group in groups.items()}


def _cell(method: str, domain: str, rows: Sequence[Row]) -> Cell:
    values = np.concatenate([row["test"] for row in rows])
    published = TABLE1.get(method, {}).get(domain.partition("-")[0])
    return Cell(
        ours=Figure(float(values.mean()), float(values.std())),
        n_runs=len(values),
        paper=None if published is None else Figure(*published),
        oracle_calls=float(np.mean([row["oracle_calls"] for row in rows])),
        seconds={part: float(np.mean([row[f"seconds_{part}"] for row in rows])) for part in _PARTS},
    )


def table1_markdown(
    cells: Mapping[tuple[str, str], Cell], setups: Mapping[str, Setup] = SETUPS
) -> str:
    """Returns the table for people: ours, the paper's in brackets, a star where they differ."""
    domains = [name for name in setups if any(domain == name for _, domain in cells)]
    rows = [
        [method, *(_cell_text(cells.get((method, domain))) for domain in domains)]
        for method in METHODS
    ]
    return markdown_table(["loss", *(setups[domain].title for domain in domains)], rows)


def costs_markdown(
    cells: Mapping[tuple[str, str], Cell], setups: Mapping[str, Setup] = SETUPS
) -> str:
    """Returns where the time goes: seconds of one core per domain seed, by part."""
    rows = [
        [
            setups[domain].title,
            method,
            f"{cell.oracle_calls:,.0f}",
            *(f"{cell.seconds[part]:.1f}" for part in _PARTS),
        ]
        for (method, domain), cell in cells.items()
    ]
    return markdown_table(["domain", "loss", "oracle calls", *_PARTS], rows)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell_text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.paper is None:
        return str(cell.ours)
    mark = " *" if cell.ours.is_apart_from(cell.paper) else ""
    return f"{cell.ours} ({cell.paper}){mark}"
