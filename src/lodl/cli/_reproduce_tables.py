"""`lodl reproduce table1` and its kin."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lodl.cli._jobs import Jobs
from lodl.cli._reproduce_options import (
    OUT,
    Domains,
    Out,
    Prices,
    Scale,
    Seeds,
    chosen_setups,
    chosen_size,
    publish_table,
    write_slices,
)

if TYPE_CHECKING:
    from lodl.benchmarks import ScaleOfRun

_QUALITY = (
    "Normalised test decision quality: mean ± standard deviation over runs; the paper's in "
    "brackets, a star where the two intervals do not meet."
)


def table1(
    scale: Scale = "quick",
    domain: Domains = None,
    prices: Prices = None,
    seeds: Seeds = None,
    out: Out = OUT,
    n_jobs: Jobs = -1,
) -> None:
    """Decision quality of every loss in every domain, beside the paper's figures."""
    from lodl import benchmarks  # torch: only where needed

    setups = chosen_setups(domain, prices)
    size = chosen_size(scale, seeds, benchmarks.SCALES)
    plan = benchmarks.table1_experiments(size, setups, setups)
    cells = benchmarks.table1_info(benchmarks.run(plan, out, setups=setups, n_jobs=n_jobs))
    write_slices(out, plan, setups)
    publish_table(
        out,
        "table1",
        benchmarks.quality_json(cells),
        benchmarks.table1_markdown(cells, setups),
        _QUALITY,
        benchmarks.costs_markdown(cells, setups),
        "Seconds of one core per domain seed; the samples are shared by all learned losses. "
        "Sampling is timed by the clock, fitting and training by the processor.",
    )


def table2a(scale: Scale = "quick", seeds: Seeds = None, out: Out = OUT, n_jobs: Jobs = -1) -> None:
    """Decision quality in Web Advertising by the sampler that losses are learned with."""
    from lodl import benchmarks  # torch: only where needed

    size = chosen_size(scale, seeds, benchmarks.SCALES)
    rows = benchmarks.run(benchmarks.table2a_experiments(size), out, n_jobs=n_jobs)
    cells = benchmarks.table2a_info(rows)
    publish_table(
        out,
        "table2a",
        benchmarks.quality_json(cells),
        benchmarks.table2a_markdown(cells),
        f"{_QUALITY} Web Advertising, {size.n_samples:,} samples an instance, {_runs(size)}.",
    )


def table2b(scale: Scale = "quick", seeds: Seeds = None, out: Out = OUT, n_jobs: Jobs = -1) -> None:
    """Decision quality in Web Advertising by the number of samples that losses are learned from."""
    from lodl import benchmarks  # torch: only where needed

    size = chosen_size(scale, seeds, benchmarks.SCALES)
    rows = benchmarks.run(benchmarks.table2b_experiments(size), out, n_jobs=n_jobs)
    cells = benchmarks.table2b_info(rows)
    publish_table(
        out,
        "table2b",
        benchmarks.quality_json(cells),
        benchmarks.table2b_markdown(cells),
        f"{_QUALITY} Web Advertising, {_runs(size)}. The paper has 50, 500 and 5,000 samples.",
    )


def table3(
    scale: Scale = "quick",
    domain: Domains = None,
    prices: Prices = None,
    seeds: Seeds = None,
    out: Out = OUT,
    n_jobs: Jobs = -1,
) -> None:
    """Errors of the learned losses, and whether they tell the quality of decisions."""
    from lodl import benchmarks, report  # torch and matplotlib: only where needed

    setups = chosen_setups(domain, prices)
    size = chosen_size(scale, seeds, benchmarks.TABLE3_SCALES)
    plan = benchmarks.learned_experiments(size, setups, setups)
    info = benchmarks.table3_info(benchmarks.run(plan, out, setups=setups, n_jobs=n_jobs), setups)
    report.save_figure(report.draw_fidelity(info), out / "table3")
    write_slices(out, plan, setups)
    publish_table(
        out,
        "table3",
        info,
        benchmarks.table3_markdown(info),
        "Mean absolute error of a learned loss at the predictions of the models trained on it (the "
        "paper's empirical neighbourhood) and on held-out samples around labels (its Gaussian "
        "neighbourhood; instances with nothing to decide have none and are left out there), in "
        "expected clicks for Web Advertising, else in the objective's unit; "
        f"normalised test decision quality. {size.n_samples:,} samples an instance, {_runs(size)}: "
        "mean ± standard deviation; the paper's in brackets, a star where the two intervals do not "
        "meet.",
    )


def settings(
    domain: Domains = None,
    prices: Prices = None,
    n_samples: Annotated[int, typer.Option(min=10, help="Candidates per instance.")] = 2000,
    out: Out = OUT / "settings",
    n_jobs: Jobs = -1,
) -> None:
    """Choose sampler, surrogate and learning rates on validation data of seeds of their own."""
    from lodl import benchmarks  # torch: only where needed

    setups = chosen_setups(domain, prices)
    plan = benchmarks.tuning_experiments(setups, setups, n_samples)
    rows = benchmarks.run(plan, out, setups=setups, n_jobs=n_jobs)
    Console(highlight=False).print_json(json.dumps(benchmarks.choose(rows)))


def _runs(size: "ScaleOfRun") -> str:
    return f"{size.n_seeds} x {size.n_initialisations} runs (domain seeds x initialisations)"
