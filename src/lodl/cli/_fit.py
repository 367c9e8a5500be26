"""`lodl fit`: a model that decides, for a problem and data of the user's own."""

import logging
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from lodl.cli._models import MODELS, estimator_named
from lodl.cli._modules import load_problem
from lodl.cli._options import ON_FAILURE, PROBLEM, Jobs, named
from lodl.cli._tables import (
    CONTEXTS,
    TABLE,
    groups_of,
    named_by,
    read_context,
    read_features,
    read_labels,
)
from lodl.errors import InvalidInputError
from lodl.learning import DecisionFocusedRegressor
from lodl.oracle import Oracle


def fit(
    problem: Annotated[str, typer.Argument(help=PROBLEM)],
    features: Annotated[Path, typer.Option(help=f"Features: {TABLE}.")],
    labels: Annotated[Path, typer.Option(help=f"Labels: {TABLE}.")],
    out: Annotated[Path, typer.Option(help="Folder to write the model to.")],
    context: Annotated[Path | None, typer.Option(help=f"Contexts: {CONTEXTS}.")] = None,
    model: Annotated[str, typer.Option(help=f"{MODELS}.")] = "linear",
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None,
    n_samples: Annotated[
        int | None,
        typer.Option(help="Predictions sampled around each label. Default: suited to the problem."),
    ] = None,
    n_rounds: Annotated[
        int | None,
        typer.Option(
            help="Rounds of further samples where models predict. Default: suited to the problem."
        ),
    ] = None,
    max_calls: Annotated[
        int | None,
        typer.Option(help="Limit on solver calls; the report makes a few hundred more."),
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Seconds after which no further model is tried.")
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(help="Number of folds, or (below 1) share of the instances to hold out."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Group of each instance: a column of the features (then no longer a feature) or a "
            "file. Groups are held out as a whole."
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            help="Column of the features that names the instances in the report (then no longer a "
            "feature)."
        ),
    ] = None,
    shuffle: Annotated[
        bool,
        typer.Option(
            "--shuffle/--no-shuffle", help="Hold out instances at random, or the last ones."
        ),
    ] = True,
    ensemble: Annotated[
        bool,
        typer.Option(
            "--ensemble/--no-ensemble", help="Average the models of all losses, or keep one."
        ),
    ] = True,
    store: Annotated[
        str | None,
        typer.Option(help="File that keeps the solver's answers, to resume or reuse them."),
    ] = None,
    n_jobs: Jobs = -1,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which a solver call counts as failed.")
    ] = None,
    on_failure: Annotated[
        str,
        typer.Option(help="raise: stop at the first failed call; skip: leave out failed calls."),
    ] = "raise",
    max_failure_rate: Annotated[
        float, typer.Option(help="Share of failed calls that skip accepts.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that already exists.")
    ] = False,
) -> None:
    """Train a model for better decisions, and say what it gains."""
    if out.exists() and not overwrite:
        raise InvalidInputError(
            f"`out` must not exist yet, got {out}. Name another folder, or add --overwrite."
        )
    decides, y = load_problem(problem), read_labels(labels)
    x, held_together = groups_of(named_by(read_features(features), names), groups)
    logging.basicConfig(format="%(message)s")  # on standard error
    logging.getLogger("lodl").setLevel(logging.INFO)
    fitted = DecisionFocusedRegressor(
        Oracle(
            decides,
            store=store,
            n_jobs=n_jobs,
            timeout=timeout,
            on_failure=named("on_failure", on_failure, ON_FAILURE),
            max_failure_rate=max_failure_rate,
        ),
        estimator_named(model, x.shape, np.shape(y)[1:] or (1,), seed),
        n_samples=n_samples,
        n_rounds=n_rounds,
        ensemble=ensemble,
        shuffle=shuffle,
        max_calls=max_calls,
        max_seconds=max_seconds,
        random_state=seed,
        verbose=True,
    ).fit(
        x,
        y,
        context=None if context is None else read_context(context),
        validation=_whole(validation),
        groups=held_together,
    )
    fitted.save(out, overwrite=overwrite)  # first: what follows calls the solver, and may fail
    fitted.record()  # for `lodl compare`
    page = None if report is None else fitted.report(report)
    fitted.save(out, overwrite=True)
    typer.echo(f"{fitted.summary()}\n\nModel: {out}")
    if page is not None:
        typer.echo(f"Report: {page}")
    files = "--features NEW" if context is None else "--features NEW --context NEW_CONTEXT"
    typer.echo(f"Next: lodl decide {out} --problem {problem} {files} --out decisions.json")


def _whole(validation: float | None) -> int | float | None:
    """Return a number of folds as a whole number; below 1 it is a share."""
    is_folds = validation is not None and validation >= 1 and validation == int(validation)
    return int(validation) if is_folds and validation is not None else validation
