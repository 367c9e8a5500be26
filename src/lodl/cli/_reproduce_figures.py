"""`lodl reproduce figure-…`: the paper's figures, as data and drawn."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markdown import Markdown

from lodl.cli._jobs import Jobs
from lodl.cli._names import named
from lodl.cli._reproduce_options import (
    OUT,
    Out,
    Scale,
    Seeds,
    chosen_size,
    write_info,
    write_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_losses(
    scale: Scale = "quick",
    out: Out = OUT,
    n_jobs: Jobs = -1,  # noqa: ARG001 (one instance is one task)
) -> None:
    """The example of two agents: true decision loss, handcrafted and learned losses."""
    from lodl import benchmarks, report  # torch and matplotlib: only where needed

    n_samples = chosen_size(scale, None, benchmarks.SCALES).n_samples
    settings = benchmarks.LossesSettings(n_samples)
    info = _kept(out, "figure-losses", asdict(settings))
    if info is None:
        info = benchmarks.figure_losses_info(settings)
    _publish(out, "figure-losses", info, report.draw_losses(info))


def figure_linear(
    scale: Scale = "quick", seeds: Seeds = None, out: Out = OUT, n_jobs: Jobs = -1
) -> None:
    """True and learned mappings of the Linear Model."""
    from lodl import benchmarks, report  # torch and matplotlib: only where needed

    setup = benchmarks.SETUPS["linear"]
    size = chosen_size(scale, seeds, benchmarks.SCALES)
    plan = benchmarks.figure_linear_experiments(size, setup)
    rows = benchmarks.run(plan, out, n_jobs=n_jobs)
    info = _kept(out, "figure-linear", benchmarks.figure_linear_settings(rows))
    if info is None:
        info = benchmarks.figure_linear_info(plan, rows, setup=setup, out=out, n_jobs=n_jobs)
    _publish(out, "figure-linear", info, report.draw_linear(info))


def figure_cost(scale: Scale = "quick", out: Out = OUT, n_jobs: Jobs = -1) -> None:
    """Time to train a model, by cores and by models; leave the machine to it."""
    from lodl import benchmarks, report  # torch and matplotlib: only where needed

    size = named("scale", scale, benchmarks.COST_SCALES)
    settings = replace(size, cores=benchmarks.measured_cores(n_jobs))
    info = _kept(out, "figure-cost", asdict(settings))
    if info is None:
        info = benchmarks.figure_cost_info(settings)
    table = benchmarks.figure_cost_markdown(info)
    Console(highlight=False).print(Markdown(table))
    _publish(out, "figure-cost", info, report.draw_cost(info))
    write_text(out / "figure-cost.md", table)


def _kept(out: Path, name: str, settings: Any) -> dict[str, Any] | None:
    """Returns the figure's data that is there already, if it was made with the same settings."""
    out.mkdir(parents=True, exist_ok=True)  # or fail before hours are spent
    path = out / f"{name}.json"
    if not path.exists():
        return None
    try:
        info: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # not JSON: to be made again
        return None
    is_same = isinstance(info, dict) and info.get("settings") == json.loads(json.dumps(settings))
    return info if is_same else None


def _publish(out: Path, name: str, info: dict[str, Any], figure: "Figure") -> None:
    """Writes a figure as data and drawn, and says where it is."""
    from lodl import report

    data = write_info(out, name, info)
    svg, png = report.save_figure(figure, out / name)
    Console(highlight=False).print(f"Figure: {svg}, {png}, data: {data}", soft_wrap=True)
