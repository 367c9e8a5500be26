"""`lodl fit`: a model that decides, for the user's problem and data."""

import logging
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer import Option

import lodl
from lodl.cli import _tables as tables
from lodl.cli._modules import MODELS, estimator_named
from lodl.cli._options import Context, Features, Labels, Seed, calls_solver
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle


@calls_solver()
def fit(
    oracle: Oracle,
    problem: str,
    features: Features,
    labels: Labels,
    out: Annotated[Path, Option(help="Folder to write the model to.")],
    context: Context = None,
    model: Annotated[str, Option(help=f"{MODELS}.")] = "linear",
    report: Annotated[Path | None, Option(help="HTML report to write.")] = None,
    n_samples: Annotated[
        int | None, Option(help="Points sampled around each label. Default: suited to the problem.")
    ] = None,
    n_rounds: Annotated[
        int | None,
        Option(help="Rounds of points where models predict. Default: suited to the problem."),
    ] = None,
    max_calls: Annotated[int | None, Option(help="Limit on solver calls.")] = None,
    max_seconds: Annotated[
        float | None, Option(help="Seconds after which no further model is tried.")
    ] = None,
    ensemble: Annotated[
        bool,
        Option("--ensemble/--no-ensemble", help="Average the models of all losses, or select one."),
    ] = True,
    validation: Annotated[
        float | None,
        Option(help="Number of folds, or (below 1) share of the instances to hold out."),
    ] = None,
    shuffle: Annotated[
        bool,
        Option(
            "--shuffle/--no-shuffle",
            help="Hold out instances at random, or in their order: blocks, or the last share.",
        ),
    ] = True,
    groups: Annotated[
        str | None,
        Option(
            help="Group of each instance: a column of the features (then no longer a feature) or a "
            "file. Groups are held out as a whole."
        ),
    ] = None,
    names: Annotated[
        str | None,
        Option(
            help="Column of the features that names the instances in the report (then no longer a "
            "feature)."
        ),
    ] = None,
    test_features: Annotated[
        Path | None,
        Option(help="Features of instances on which to evaluate the model after the fit."),
    ] = None,
    test_labels: Annotated[Path | None, Option(help="Labels of these instances.")] = None,
    test_context: Annotated[Path | None, Option(help="Contexts of these instances.")] = None,
    seed: Seed = 0,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace a model that already exists.")
    ] = False,
) -> None:
    """Train a model for better decisions, and say what it gains."""
    if out.exists() and not overwrite:
        raise InvalidInputError(
            f"`out` must not exist yet, got {out}. Name another folder, or add --overwrite."
        )
    if (test_features is None) != (test_labels is None):
        raise InvalidInputError("`--test-features` and `--test-labels` must be given together.")
    y = tables.read_labels(labels)
    x = tables.named_by(tables.read_features(features), names)
    x, held_together = tables.groups_of(x, groups)
    logging.basicConfig(format="%(message)s")  # on standard error
    logging.getLogger("lodl").setLevel(logging.INFO)
    fitted = lodl.DecisionFocusedRegressor(
        oracle,
        estimator_named(model, x.shape, np.shape(y)[1:] or (1,), seed),
        n_samples=n_samples,
        n_rounds=n_rounds,
        max_calls=max_calls,
        max_seconds=max_seconds,
        ensemble=ensemble,
        random_state=seed,
        verbose=True,
    )
    folds = _folds(validation, len(x), shuffle=shuffle, has_groups=held_together is not None)
    fitted.fit(x, y, context=tables.read_context(context), validation=folds, groups=held_together)
    fitted.save(out, overwrite=overwrite)
    page = None if report is None else fitted.report(report)
    typer.echo(f"{fitted.summary()}\n")
    if test_features is not None and test_labels is not None:
        new = tables.named_by(tables.read_features(test_features), names)
        new = tables.only_columns(new, fitted.result_.feature_names)
        test = new, tables.read_labels(test_labels), tables.read_context(test_context)
        typer.echo(f"{fitted.evaluate(*test)}\n")
    typer.echo(f"Model: {out}")
    if page is not None:
        typer.echo(f"Report: {page}")
    files = "--features NEW" if context is None else "--features NEW --context NEW_CONTEXT"
    typer.echo(f"Next: lodl decide {out} --problem {problem} {files} --out decisions.json")


def _folds(validation: float | None, n: int, *, shuffle: bool, has_groups: bool) -> Any:
    """Return the number of folds, the share to hold out, or a splitter that keeps the order."""
    if validation is not None and validation >= 1 and validation == int(validation):
        validation = int(validation)
    if shuffle:
        return validation
    from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit

    if validation is None or isinstance(validation, int):
        return (GroupKFold if has_groups else KFold)(validation or 5)
    return PredefinedSplit(np.where(np.arange(n) < round((1 - validation) * n), -1, 0))
