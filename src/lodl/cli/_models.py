"""`lodl fit`, and what can be done with its models: `decide`, `evaluate`, `report`, `compare`."""

import shlex
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

import lodl
from lodl._progress import shown_logs
from lodl.cli import _tables as tables
from lodl.cli._modules import MODELS, estimator_named
from lodl.cli._options import (
    CALLS,
    DATA,
    MODEL,
    VALIDATION,
    Context,
    Features,
    Labels,
    Names,
    Seed,
    calls_solver,
    option,
)
from lodl.errors import InvalidInputError
from lodl.learning import load_result
from lodl.oracle import Oracle
from lodl.report import Comparison, Evaluation, FitResult

_Path: TypeAlias = Path | None
_Int: TypeAlias = int | None
_Float: TypeAlias = float | None

_Folder: TypeAlias = Annotated[Path, typer.Argument(help="Folder of a model that lodl fit wrote.")]
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

_SHUFFLE = "Hold out instances at random, or in order. Default: in order if the ids are dates."
_GROUPS = "Column of the features, then no longer a feature, whose groups are held out as a whole."


@calls_solver()
def fit(
    oracle: Oracle,
    problem: str,
    features: Features,
    labels: Labels,
    out: Annotated[Path, option(MODEL, "Folder to write the model to.")] = Path("model"),
    context: Context = None,
    names: Names = None,
    test_features: Annotated[_Path, option(DATA, "Features to evaluate the model on.")] = None,
    test_labels: Annotated[_Path, option(DATA, "Labels of these instances.")] = None,
    test_context: Annotated[_Path, option(DATA, "Contexts of these instances.")] = None,
    model: Annotated[str, option(MODEL, f"{MODELS}.")] = "linear",
    ensemble: Annotated[bool, option(MODEL, "Average the models of all losses, or not.")] = True,
    seed: Seed = 0,
    report: Annotated[_Path, option(MODEL, "HTML report to write.")] = None,
    overwrite: Annotated[bool, option(MODEL, "Replace a model.", "--overwrite")] = False,
    validation: Annotated[_Float, option(VALIDATION, "Number of folds, or a share.")] = None,
    shuffle: Annotated[bool | None, option(VALIDATION, _SHUFFLE)] = None,
    groups: Annotated[str | None, option(VALIDATION, _GROUPS)] = None,
    max_calls: Annotated[_Int, option(CALLS, "Limit on solver calls.")] = None,
    max_seconds: Annotated[_Float, option(CALLS, "Time after which no model is tried.")] = None,
    n_samples: Annotated[_Int, option(CALLS, "Points sampled around each label.")] = None,
    n_rounds: Annotated[_Int, option(CALLS, "Rounds of calls where models predict.")] = None,
    plan: Annotated[bool, option(CALLS, "Only print calls and time.", "--plan")] = False,
) -> None:
    """Train a model for better decisions, and say what it gains."""
    if out.exists() and not (overwrite or plan):
        advice = "Name another folder, or add --overwrite."
        raise InvalidInputError(f"`out` must not exist yet, got {out}. {advice}")
    if (test_features is None) != (test_labels is None):
        raise InvalidInputError("`--test-features` and `--test-labels` must be given together.")
    x, y, contexts = tables.read_data(features, labels, context, names)
    files = (test_features, test_labels, test_context)
    test = None if test_features is None else tables.read_data(*files, names)
    x, held_together = tables.groups_of(x, groups)
    if validation is not None and validation >= 1 and validation == int(validation):
        validation = int(validation)
    for given in (x,) if test is None else (x, test[0]):
        tables.check_features(given, model)
    fitted = lodl.DecisionFocusedRegressor(
        oracle,
        estimator_named(model, x, np.shape(y)[1:] or (1,), seed),
        n_samples=n_samples,
        n_rounds=n_rounds,
        max_calls=max_calls,
        max_seconds=max_seconds,
        ensemble=ensemble,
        random_state=seed,
    )
    folds = validation if shuffle is None else _folds(validation, len(x), groups, shuffle, seed)
    if plan:
        typer.echo(fitted.plan(x, y, context=contexts, validation=folds, groups=held_together))
        return
    with shown_logs():
        fitted.fit(x, y, context=contexts, validation=folds, groups=held_together)
    fitted.save(out, overwrite=overwrite)
    typer.echo(fitted.summary().partition("\n\n")[0] + "\n")  # the log has had all trials
    evaluation = None
    if test is not None:
        new, _ = tables.columns_of_fit(test[0], fitted.result_.feature_names)
        evaluation = fitted.evaluate(new, *test[1:])
        typer.echo(f"{evaluation}\n")
    typer.echo(f"Model: {out}")
    if report is not None:
        _write_report(fitted.result_, report, evaluation)
    typer.echo(f"Next: {_next_command(out, problem, names, has_context=context is not None)}")


def _folds(validation: float | None, n: int, groups: str | None, shuffle: bool, seed: int) -> Any:
    """Return a splitter with folds, or a share of the instances, at random or in their order."""
    from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit

    if validation is None or validation >= 1:
        kind = KFold if groups is None else GroupKFold
        return kind(int(validation or 5), shuffle=shuffle, random_state=seed if shuffle else None)
    order = np.random.default_rng(seed).permutation(n) if shuffle else np.arange(n)
    return PredefinedSplit(np.where(order < round((1 - validation) * n), -1, 0))


def _write_report(result: FitResult, path: Path, evaluation: Evaluation | None = None) -> None:
    from lodl.report.fit_page import write_page  # needs the extra `report`

    typer.echo(f"Report: {write_page(result, path, evaluation)}")


def _next_command(out: Path, problem: str, names: str | None, *, has_context: bool) -> str:
    """Return the command that decides with a model."""
    given = "--features NEW --context NEW_CONTEXT" if has_context else "--features NEW"
    if names is not None:
        given += f" --id {shlex.quote(names)}"
    place = f"{shlex.quote(str(out))} --problem {shlex.quote(problem)}"
    return f"lodl decide {place} {given} --out decisions.csv"


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
    form = getattr(x, "attrs", {}).get("csv", {})
    tables.write_decisions(out, decisions, instances, fitted.result_.label_names, form)
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
    """Compare the decisions of a model with simpler ones. Use data that lodl fit did not see."""
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
        _write_report(load_result(folder), out)
        return
    if oracle is None or features is None or labels is None:
        raise InvalidInputError("`features`, `labels` and `problem` must be given together.")
    x, *rest = tables.read_data(features, labels, context, names)
    fitted, x, _ = _loaded(folder, oracle, x, model, trust)
    typer.echo(f"Report: {fitted.report(out, x, *rest)}")


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
    if len(set(folders)) < max(len(folders), 2):
        raise InvalidInputError("`folders` must be at least two different folders.")
    are_distinct = len({folder.name for folder in folders}) == len(folders)
    names = [folder.name if are_distinct else str(folder) for folder in folders]
    results = {name: load_result(folder) for name, folder in zip(names, folders, strict=True)}
    typer.echo(str(Comparison(results)))
