"""`lodl demo`: two models from data to decisions, with their reports."""

from pathlib import Path
from typing import Annotated

import typer

import lodl
from lodl.cli._options import Jobs

_SIZES = {"knapsack": (80, 20, 500), "path": (160, 40, 500)}  # train, validation, test


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write everything to.")] = Path("lodl-demo"),
    n_jobs: Jobs = 1,
) -> None:
    """Train two models and show what they gain over squared error."""
    out.mkdir(parents=True, exist_ok=True)
    typer.echo(
        "Regret is what a decision loses against the best one, which is known in hindsight.\n\n"
        "Knapsack: a linear model predicts what each of 20 items is worth, and we pack\n"
        "those that are worth most. They differ from instance to instance.\n"
    )
    domain = lodl.domains.item_knapsack(0, sizes=_SIZES["knapsack"])
    _show(out / "knapsack", domain, n_jobs)
    typer.echo(
        "Shortest Path: a linear model predicts the costs of the 40 streets of a grid,\n"
        "and we take the cheapest path across it.\n"
    )
    domain = lodl.domains.shortest_path(0, sizes=_SIZES["path"], degree=6, noise=0.3)
    _show(out / "path", domain, n_jobs)
    typer.echo("Open the reports in a browser. For your own problem and data, see: lodl fit --help")


def _show(out: Path, domain: "lodl.domains.Domain", n_jobs: int) -> None:
    """Train a model, and write it with its report."""
    from lodl.report.fit_page import write_page  # needs the extra `report`

    oracle = lodl.Oracle(domain.problem, store=f"{out}-answers.db", n_jobs=n_jobs)
    data, test = domain.splits.train_and_validation, domain.splits.test
    model = lodl.DecisionFocusedRegressor(oracle).fit(data.x, data.y, context=data.context)
    cost = f"{model.result_.n_calls:,} solver calls, {model.result_.seconds:.1f} s"
    typer.echo(f"Trained on {len(data.y)} instances: {cost}.\n")
    evaluation = model.evaluate(test.x, test.y, test.context)
    typer.echo(f"{evaluation}\n")
    typer.echo(f"report  {write_page(model.result_, f'{out}.html', evaluation)}")
    typer.echo(f"model   {model.save(out, overwrite=True)}\n")
