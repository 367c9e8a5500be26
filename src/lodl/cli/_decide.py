"""`lodl decide`, `evaluate`, `report` and `compare`: models that `lodl fit` wrote."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

import lodl
from lodl.cli import _tables as tables
from lodl.cli._modules import MODELS, estimator_named
from lodl.cli._options import DATA, MODEL, Context, Features, Labels, Names, calls_solver, option
from lodl.errors import InvalidInputError
from lodl.learning import load_result
from lodl.oracle import Oracle
from lodl.report import Comparison

_Folder: TypeAlias = Annotated[Path, typer.Argument(help="Folder of a model that lodl fit wrote.")]
_Path: TypeAlias = Path | None
_PROBLEM = "The problem as given to lodl fit; model folders contain no code."
_Problem: TypeAlias = Annotated[str, option(MODEL, _PROBLEM)]
_Model: TypeAlias = Annotated[
    str | None,
    option(MODEL, f"{MODELS}, as given to lodl fit; needed for networks, which are code."),
]
_Trust: TypeAlias = Annotated[
    list[str] | None,
    option(MODEL, "Type that the file of a scikit-learn model may hold; may be repeated."),
]


@calls_solver(problem=_Problem, n_jobs=1)
def decide(
    oracle: Oracle,
    folder: _Folder,
    features: Features,
    out: Annotated[Path, option(DATA, "File to write: .csv, .json or .npy.")],
    context: Context = None,
    names: Names = None,
    model: _Model = None,
    trust: _Trust = None,
) -> None:
    """Predict, decide, and write one decision per instance."""
    tables.check_out(out, ".csv", ".json", ".npy")
    x, _, contexts = tables.read_data(features, None, context, names)
    fitted, x, instances = _loaded(folder, oracle, x, model, trust)
    decisions = fitted.decide(x, contexts)
    tables.write_decisions(out, decisions, instances, fitted.result_.label_names)
    typer.echo(f"{len(decisions)} decisions: {out}")


@calls_solver(problem=_Problem, n_jobs=1)
def evaluate(
    oracle: Oracle,
    folder: _Folder,
    features: Features,
    labels: Labels,
    context: Context = None,
    names: Names = None,
    model: _Model = None,
    trust: _Trust = None,
) -> None:
    """Compare the decisions of a model with simpler ones.

    Use data that lodl fit did not see.
    """
    x, y, contexts = tables.read_data(features, labels, context, names)
    fitted, x, _ = _loaded(folder, oracle, x, model, trust)
    typer.echo(str(fitted.evaluate(x, y, contexts)))


@calls_solver(
    problem=Annotated[str | None, option(MODEL, f"{_PROBLEM} Needed for test data.")], n_jobs=1
)
def report(
    oracle: Oracle | None,
    folder: _Folder,
    out: Annotated[Path, option(DATA, "File to write.")] = Path("report.html"),
    features: Annotated[_Path, option(DATA, f"Features of test data: {tables.TABLE}.")] = None,
    labels: Annotated[_Path, option(DATA, "Labels of test data.")] = None,
    context: Context = None,
    names: Names = None,
    model: _Model = None,
    trust: _Trust = None,
) -> None:
    """Write an HTML page about a model.

    Its gain is measured on test data if they are given, else on validation instances.
    """
    tables.check_out(out, ".html")
    if features is None and labels is None:
        from lodl.report.fit_page import write_page  # needs the extra `report`

        typer.echo(f"Report: {write_page(load_result(folder), out)}")
        return
    if oracle is None or features is None or labels is None:
        raise InvalidInputError("`features`, `labels` and `problem` must be given together.")
    x, *rest = tables.read_data(features, labels, context, names)
    fitted, x, _ = _loaded(folder, oracle, x, model, trust)
    test: tuple[Any, ...] = (x, *rest)
    typer.echo(f"Report: {fitted.report(out, *test)}")


def _loaded(
    folder: Path, oracle: Oracle, x: Any, model: str | None, trust: list[str] | None
) -> tuple["lodl.DecisionFocusedRegressor", Any, Any]:
    """Return a saved model, which calls the solver through the oracle, its features and ids."""
    result, estimator = load_result(folder), None
    x, instances = tables.columns_of_fit(x, result.feature_names)
    if model is not None:
        estimator = estimator_named(model, x, result.label_shape or (1,), seed=0)
    fitted = lodl.load_model(folder, oracle.problem, estimator, trusted=trust or ())
    return fitted.set_params(oracle=oracle), x, instances


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
