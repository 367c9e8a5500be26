"""`lodl demo`: two models from data to decisions, with their reports."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import lodl
from lodl._arrays import require
from lodl.cli._options import Jobs
from lodl.learning import DecisionFocusedRegressor
from lodl.losses import DecisionHinges, DecisionRanking, Family
from lodl.oracle import Oracle

_SIZES = {"web": (80, 20, 500), "path": (160, 40, 500)}  # train, validation, test
_N_STEPS, _N_TREES = 300, 30


class _Task(NamedTuple):
    """A problem, its data, and a model for it."""

    text: str
    domain: Callable[[], "lodl.domains.Domain"]
    estimator: Callable[[], Any]
    families: tuple[Family, ...]
    n_rounds: int


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write everything to.")] = Path("lodl-demo"),
    n_jobs: Jobs = 1,
) -> None:
    """Train two models and show what they gain over squared error."""
    logging.getLogger("lodl").setLevel(logging.WARNING)
    out.mkdir(parents=True, exist_ok=True)
    for name, task in _TASKS.items():
        typer.echo(f"{task.text}\n")
        domain = task.domain()
        data = domain.splits.train_and_validation
        model = DecisionFocusedRegressor(
            Oracle(domain.problem, store=out / f"{name}-answers.db", n_jobs=n_jobs),
            task.estimator(),
            families=task.families,
            n_rounds=task.n_rounds,
            verbose=True,
        ).fit(data.x, data.y, context=data.context)
        test = domain.splits.test
        typer.echo(f"{model.summary()}\n\n{model.evaluate(test.x, test.y, test.context)}\n")
        typer.echo(f"report  {model.report(out / f'{name}.html')}")
        typer.echo(f"model   {model.save(out / name, overwrite=True)}\n")
    typer.echo("Open the reports in a browser. For your own problem and data, see: lodl fit --help")


def _web() -> "lodl.domains.Domain":
    return lodl.domains.web_advertising(0, sizes=_SIZES["web"])


def _network() -> Any:
    """Return a small network of the paper's kind: one for every website, with rates above 0."""
    from lodl.training.torch import TorchLearner, TrainingSettings, mlp  # slow to import

    module = mlp(10, (5, 10), hidden=(100,), n_items=5, output="relu")
    settings = TrainingSettings(learning_rate=1e-3, n_steps=_N_STEPS, patience=100)
    return TorchLearner(module, n_initialisations=1, settings=settings, scale_labels=False)


def _path() -> "lodl.domains.Domain":
    return lodl.domains.shortest_path(0, sizes=_SIZES["path"], degree=6, noise=0.3)


def _trees() -> Any:
    settings = {"max_depth": 2, "learning_rate": 0.3, "random_state": 0}
    return require("xgboost", "xgboost").XGBRegressor(n_estimators=_N_TREES, **settings)


_TASKS = {
    "web": _Task(
        "Web Advertising: a network predicts the click rates of 10 users on 5 websites,\n"
        "and we advertise on the 2 websites that reach the most users.",
        _web,
        _network,
        (DecisionHinges(), DecisionRanking()),
        1,
    ),
    "path": _Task(
        "Shortest Path: XGBoost predicts the costs of the 40 streets of a grid, and we\n"
        "take the cheapest path across it.",
        _path,
        _trees,
        (DecisionHinges(), DecisionHinges(margin=1.0)),
        2,
    ),
}
