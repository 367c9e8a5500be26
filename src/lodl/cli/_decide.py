"""`lodl decide`: decisions for new instances, by a model that `lodl fit` wrote."""

from pathlib import Path
from typing import Annotated

import typer

from lodl._arrays import is_frame
from lodl.cli._modules import MODELS, estimator_named, load_problem
from lodl.cli._options import Context, Features
from lodl.cli._tables import check_decisions_path, read_context, read_features, write_decisions
from lodl.learning import load_model, load_result


def decide(
    folder: Annotated[Path, typer.Argument(help="Folder of a model that lodl fit wrote.")],
    problem: Annotated[
        str,
        typer.Option(help="The problem as given to lodl fit; model folders contain no code."),
    ],
    features: Features,
    out: Annotated[Path, typer.Option(help="File to write: .json, .csv or .npy.")],
    context: Context = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"{MODELS}, as given to lodl fit; needed for networks, whose code is in no file."
        ),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(help="Type that the file of a scikit-learn model may hold; may be repeated."),
    ] = None,
) -> None:
    """Predict, decide, and write one decision per instance."""
    check_decisions_path(out)
    loaded_problem, result = load_problem(problem), load_result(folder)
    x = read_features(features)
    names = result.feature_names
    if is_frame(x) and names is not None and set(names) <= set(x.columns):
        x = x[list(names)]  # other columns are not looked at
    estimator = (
        None if model is None else estimator_named(model, x.shape, result.label_shape or (1,), 0)
    )
    fitted = load_model(folder, loaded_problem, estimator, trusted=trust or ())
    decisions = fitted.decide(x, read_context(context))
    write_decisions(out, decisions)
    typer.echo(f"{len(decisions)} decisions: {out}")
