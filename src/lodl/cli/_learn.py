"""`lodl learn`: a loss for a problem of the user's own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from lodl.cli._modules import load_problem
from lodl.cli._options import ON_FAILURE, PROBLEM, Jobs, named
from lodl.cli._tables import CONTEXTS, TABLE, read_column, read_context, read_labels
from lodl.errors import InvalidInputError
from lodl.evaluation import summarise
from lodl.learning import learn_loss
from lodl.losses import (
    ConvexDirectedQuadratic,
    DecisionHinges,
    DecisionRanking,
    DirectedQuadratic,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    Family,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)
from lodl.oracle import Oracle
from lodl.samplers import AllPerturbed, OnePerturbed, Sampler, TwoPerturbed

_FAMILIES: Mapping[str, Callable[[], Family]] = {
    member.__name__: member
    for member in (
        WeightedMSE,
        DirectedWeightedMSE,
        DirectedWeightedMAE,
        Quadratic,
        DirectedQuadratic,
        ConvexDirectedQuadratic,
        DecisionHinges,
        DecisionRanking,
        NeuralLoss,
    )
}
_SAMPLERS: Mapping[str, Callable[..., Sampler]] = {
    member.__name__: member for member in (AllPerturbed, OnePerturbed, TwoPerturbed)
}


def learn(
    problem: Annotated[str, typer.Argument(help=PROBLEM)],
    labels: Annotated[Path, typer.Option(help=f"Labels: {TABLE}.")],
    out: Annotated[Path, typer.Option(help="File to write the loss to.")],
    context: Annotated[Path | None, typer.Option(help=f"Contexts: {CONTEXTS}.")] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="File with one column: a name for each instance, to find it in a store."),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(_FAMILIES)}. Default: DecisionHinges if the objective is "
            "affine in the label, else the largest family that the samples suffice for."
        ),
    ] = None,
    sampler: Annotated[str, typer.Option(help=f"One of {', '.join(_SAMPLERS)}.")] = "AllPerturbed",
    scale: Annotated[
        str, typer.Option(help="Standard deviation of the noise: a number, or auto.")
    ] = "auto",
    n_samples: Annotated[
        int | None,
        typer.Option(help="Samples per instance. Default: 20 for Decision families, else 1000."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    n_jobs: Jobs = -1,
    store: Annotated[
        str | None,
        typer.Option(help="File that keeps the solver's answers, to resume or reuse them."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds after which a solver call counts as failed.")
    ] = None,
    on_failure: Annotated[
        str,
        typer.Option(help="raise: stop at the first failed call; skip: leave out failed calls."),
    ] = "raise",
    max_failure_rate: Annotated[
        float, typer.Option(help="With skip, the largest share of calls that may fail.")
    ] = 0.1,
) -> None:
    """Learn a loss for your problem and write it to a file."""
    _check_out(out)
    loss = learn_loss(
        Oracle(
            load_problem(problem),
            store=store,
            n_jobs=n_jobs,
            timeout=timeout,
            on_failure=named("on_failure", on_failure, ON_FAILURE),
            max_failure_rate=max_failure_rate,
        ),
        read_labels(labels),
        context=None if context is None else read_context(context),
        keys=None if keys is None else read_column(keys, "keys"),
        family=None if family is None else named("family", family, _FAMILIES)(),
        sampler=named("sampler", sampler, _SAMPLERS)(scale=_parse_scale(scale)),
        n_samples=n_samples,
        random_state=seed,
    )
    loss.save(out)
    typer.echo(str(summarise(loss)))
    typer.echo(f"\nSaved to {out}. In Python: lodl.load_loss({str(out)!r})")


def _check_out(out: Path) -> None:
    """Check that the loss can be written, before hours are spent on it."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidInputError(f"`out` must be a file in a folder that exists, got {out}.")


def _parse_scale(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # the sampler knows "auto" and refuses the rest
