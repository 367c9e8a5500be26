"""`lodl decide` and `lodl evaluate`: a model that `lodl fit` wrote, on new instances."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from lodl.cli._modules import MODELS, estimator_named, load_problem
from lodl.cli._options import Context, Features, Labels
from lodl.cli._tables import (
    check_decisions_path,
    only_columns,
    read_context,
    read_features,
    read_labels,
    write_decisions,
)
from lodl.learning import DecisionFocusedRegressor, load_model, load_result

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


def decide(
    folder: _Folder,
    problem: _Problem,
    features: Features,
    out: Annotated[Path, typer.Option(help="File to write: .json, .csv or .npy.")],
    context: Context = None,
    model: _Model = None,
    trust: _Trust = None,
) -> None:
    """Predict, decide, and write one decision per instance."""
    check_decisions_path(out)
    fitted, x = _loaded(folder, problem, features, model, trust)
    decisions = fitted.decide(x, read_context(context))
    write_decisions(out, decisions)
    typer.echo(f"{len(decisions)} decisions: {out}")


def evaluate(
    folder: _Folder,
    problem: _Problem,
    features: Features,
    labels: Labels,
    context: Context = None,
    model: _Model = None,
    trust: _Trust = None,
) -> None:
    """Compare a model with simpler ones by their decisions on data that lodl fit did not see."""
    fitted, x = _loaded(folder, problem, features, model, trust)
    typer.echo(str(fitted.evaluate(x, read_labels(labels), read_context(context))))


def _loaded(
    folder: Path, problem: str, features: Path, model: str | None, trust: list[str] | None
) -> tuple[DecisionFocusedRegressor, Any]:
    """Return a saved model and the features of new instances."""
    loaded_problem, result = load_problem(problem), load_result(folder)
    x = only_columns(read_features(features), result.feature_names)
    estimator = (
        None if model is None else estimator_named(model, x.shape, result.label_shape or (1,), 0)
    )
    return load_model(folder, loaded_problem, estimator, trusted=trust or ()), x
