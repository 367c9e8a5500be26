"""Table 2: other samplers, and fewer samples, in Web Advertising."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lodl.benchmarks._quality_table import Cell, quality_cells, quality_markdown
from lodl.benchmarks._results import Row
from lodl.benchmarks._run import Experiment
from lodl.benchmarks._setup import SETUPS, Setup
from lodl.benchmarks._table1 import ScaleOfRun, learned_experiments
from lodl.paper import SAMPLERS, TABLE2A, TABLE2B
from lodl.samplers import AllPerturbed, OnePerturbed, TwoPerturbed

_SAMPLERS = (OnePerturbed, TwoPerturbed, AllPerturbed)
_N_SAMPLES = (50, 500, 5000)


def table2a_experiments(
    scale: ScaleOfRun, setups: Mapping[str, Setup] = SETUPS
) -> list[Experiment]:
    """Returns every learned loss with every sampler, all with the noise of the setup's sampler."""
    noise = setups["web"].sampler.scale
    return [
        replace(experiment, sampler=sampler(noise))
        for sampler in _SAMPLERS
        for experiment in learned_experiments(scale, setups, ["web"])
    ]


def table2a_info(rows: Iterable[Row]) -> dict[tuple[str, str], Cell]:
    """Returns the cells of the table by (method, name of the sampler)."""
    return quality_cells(
        rows,
        lambda row: str(row["sampler"]).partition("(")[0],
        lambda method, sampler: TABLE2A.get(method, {}).get(sampler),
    )


def table2a_markdown(cells: Mapping[tuple[str, str], Cell]) -> str:
    """Returns the table for people."""
    return quality_markdown(cells, SAMPLERS)


def table2b_experiments(
    scale: ScaleOfRun, setups: Mapping[str, Setup] = SETUPS
) -> list[Experiment]:
    """Returns every learned loss with the paper's numbers of samples, as far as the scale goes.

    Those of a seed read one store: fewer samples are the first of more.
    """
    return [
        replace(experiment, n_samples=n_samples)
        for n_samples in sorted({min(n, scale.n_samples) for n in _N_SAMPLES})
        for experiment in learned_experiments(scale, setups, ["web"])
    ]


def table2b_info(rows: Iterable[Row]) -> dict[tuple[str, int], Cell]:
    """Returns the cells of the table by (method, number of samples)."""
    return quality_cells(
        rows,
        lambda row: int(row["n_samples"]),
        lambda method, n_samples: TABLE2B.get(method, {}).get(n_samples),
    )


def table2b_markdown(cells: Mapping[tuple[str, int], Cell]) -> str:
    """Returns the table for people."""
    titles = {n: f"{n:,} samples" for n in sorted({n for _, n in cells})}
    return quality_markdown(cells, titles)
