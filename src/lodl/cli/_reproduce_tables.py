"""`lodl reproduce table1` and its kin."""

import json

from rich.console import Console
from rich.markdown import Markdown

from lodl.cli._names import named
from lodl.cli._reproduce_options import (
    OUT,
    Domains,
    Jobs,
    Out,
    Prices,
    Scale,
    chosen_setups,
)


def table1(
    scale: Scale = "quick",
    domain: Domains = None,
    prices: Prices = None,
    out: Out = OUT,
    n_jobs: Jobs = -1,
) -> None:
    """Decision quality of every loss in every domain, beside the paper's figures."""
    from lodl import experiments  # torch: only where needed

    setups = chosen_setups(domain, prices)
    plan = experiments.table1_experiments(named("scale", scale, experiments.SCALES), setups, setups)
    cells = experiments.table1_info(experiments.run(plan, out, setups=setups, n_jobs=n_jobs))
    table = experiments.table1_markdown(cells, setups)
    costs = experiments.costs_markdown(cells, setups)
    (out / "table1.md").write_text(f"{table}\n\n{costs}\n", encoding="utf-8")
    console = Console(highlight=False)
    console.print(Markdown(table))
    console.print(
        "Normalised test decision quality: mean ± standard deviation over runs (the paper's in "
        "brackets;\n* where the two intervals do not meet).\n"
    )
    console.print(Markdown(costs))
    console.print(
        "Seconds of one core per domain seed; the samples are shared by all learned losses.\n"
        f"Rows: {out / 'rows.jsonl'}, tables: {out / 'table1.md'}"
    )


def settings(
    scale: Scale = "quick",
    domain: Domains = None,
    prices: Prices = None,
    out: Out = OUT / "settings",
    n_jobs: Jobs = -1,
) -> None:
    """Choose sampler, surrogate and learning rates on validation data of seeds of their own."""
    from lodl import experiments  # torch: only where needed

    setups = chosen_setups(domain, prices)
    n_samples = named("scale", scale, experiments.SCALES).n_samples
    plan = experiments.tuning_experiments(setups, setups, n_samples)
    rows = experiments.run(plan, out, setups=setups, n_jobs=n_jobs)
    Console(highlight=False).print_json(json.dumps(experiments.choose(rows)))
