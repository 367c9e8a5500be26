"""`lodl decide`, `lodl evaluate` and `lodl compare`: models that `lodl fit` wrote."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

import lodl
from lodl.cli import _tables as tables
from lodl.cli._modules import MODELS, estimator_named
from lodl.cli._options import Context, Features, Labels, calls_solver
from lodl.errors import InvalidInputError
from lodl.learning import load_result
from lodl.oracle import Oracle
from lodl.report import Comparison

_Folder: TypeAlias = Annotated[Path, typer.Argument(help="Folder of a model that lodl fit wrote.")]
_Problem: TypeAlias = Annotated[
    str, typer.Option(help="The problem as given to lodl fit; model folders contain no code.")
]
_Model: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"{MODELS}, as given to lodl fit; needed for networks, whose code is in no file."
    ),
]
_Trust: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Type that the file of a scikit-learn model may hold; may be repeated."),
]


@calls_solver(problem=_Problem, n_jobs=1)
def decide(
    oracle: Oracle,
    folder: _Folder,
    features: Features,
    out: Annotated[Path, typer.Option(help="File to write: .json, .csv or .npy.")],
    context: Context = None,
    model: _Model = None,
    trust: _Trust = None,
) -> None:
    """Predict, decide, and write one decision per instance."""
    tables.check_out(out, ".json", ".csv", ".npy")
    fitted, x = _loaded(folder, oracle, features, model, trust)
    decisions = fitted.decide(x, tables.read_context(context))
    tables.write_decisions(out, decisions)
    typer.echo(f"{len(decisions)} decisions: {out}")


@calls_solver(problem=_Problem, n_jobs=1)
def evaluate(
    oracle: Oracle,
    folder: _Folder,
    features: Features,
    labels: Labels,
    context: Context = None,
    model: _Model = None,
    trust: _Trust = None,
) -> None:
    """Compare a model with simpler ones by their decisions on data that lodl fit did not see."""
    fitted, x = _loaded(folder, oracle, features, model, trust)
    typer.echo(str(fitted.evaluate(x, tables.read_labels(labels), tables.read_context(context))))


def _loaded(
    folder: Path, oracle: Oracle, features: Path, model: str | None, trust: list[str] | None
) -> tuple["lodl.DecisionFocusedRegressor", Any]:
    """Return a saved model, which calls the solver through the oracle, and new features."""
    result, estimator = load_result(folder), None
    x = tables.only_columns(tables.read_features(features), result.feature_names)
    if model is not None:
        estimator = estimator_named(model, x.shape, result.label_shape or (1,), seed=0)
    fitted = lodl.load_model(folder, oracle.problem, estimator, trusted=trust or ())
    return fitted.set_params(oracle=oracle), x


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders that lodl fit wrote; the others are compared with the first."),
    ],
) -> None:
    """Compare saved models by their validation regret.

    Differences are paired by instance and have 95% intervals.
    """
    names = [folder.name or str(folder) for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    if len(set(names)) < max(len(names), 2):
        raise InvalidInputError("`folders` must be at least two different folders.")
    results = {name: load_result(folder) for name, folder in zip(names, folders, strict=True)}
    typer.echo(str(Comparison(results)))
