"""`lodl demo`: two models from data to decisions, with their reports."""

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

import lodl
from lodl._arrays import require
from lodl.cli._options import Jobs
from lodl.learning import DecisionFocusedRegressor
from lodl.losses import DecisionHinges, DecisionRanking

_SIZES = {"web": (80, 20, 500), "path": (160, 40, 500)}  # train, validation, test
_N_STEPS, _N_TREES = 300, 30


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write everything to.")] = Path("lodl-demo"),
    n_jobs: Jobs = 1,
) -> None:
    """Train two models and show what they gain over squared error."""
    logging.getLogger("lodl").setLevel(logging.WARNING)
    out.mkdir(parents=True, exist_ok=True)
    typer.echo(
        "Web Advertising: a network predicts the click rates of 10 users on 5 websites,\n"
        "and we advertise on the 2 websites that reach the most users.\n"
    )
    domain = lodl.domains.web_advertising(0, sizes=_SIZES["web"])
    settings = {"families": (DecisionHinges(), DecisionRanking()), "n_rounds": 1}
    _show(out / "web", domain, n_jobs, estimator=_network(), **settings)
    typer.echo(
        "Shortest Path: XGBoost predicts the costs of the 40 streets of a grid, and we\n"
        "take the cheapest path across it.\n"
    )
    domain = lodl.domains.shortest_path(0, sizes=_SIZES["path"], degree=6, noise=0.3)
    settings = {"families": (DecisionHinges(), DecisionHinges(margin=1.0)), "n_rounds": 2}
    _show(out / "path", domain, n_jobs, estimator=_trees(), **settings)
    typer.echo("Open the reports in a browser. For your own problem and data, see: lodl fit --help")


def _show(out: Path, domain: "lodl.domains.Domain", n_jobs: int, **settings: Any) -> None:
    """Train a model, and write it with its report."""
    oracle = lodl.Oracle(domain.problem, store=f"{out}-answers.db", n_jobs=n_jobs)
    data, test = domain.splits.train_and_validation, domain.splits.test
    model = DecisionFocusedRegressor(oracle, **settings, verbose=True)
    model.fit(data.x, data.y, context=data.context)
    typer.echo(f"{model.summary()}\n\n{model.evaluate(test.x, test.y, test.context)}\n")
    typer.echo(f"report  {model.report(f'{out}.html')}")
    typer.echo(f"model   {model.save(out, overwrite=True)}\n")


def _network() -> Any:
    """Return a small network of the paper's kind: one for every website, with rates above 0."""
    from lodl.training.torch import TorchLearner, TrainingSettings, mlp  # slow to import

    module = mlp(10, (5, 10), hidden=(100,), n_items=5, output="relu")
    settings = TrainingSettings(learning_rate=1e-3, n_steps=_N_STEPS, patience=100)
    return TorchLearner(module, n_initialisations=1, settings=settings, scale_labels=False)


def _trees() -> Any:
    settings = {"max_depth": 2, "learning_rate": 0.3, "random_state": 0}
    return require("xgboost", "xgboost").XGBRegressor(n_estimators=_N_TREES, **settings)
