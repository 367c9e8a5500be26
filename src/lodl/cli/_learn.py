"""`lodl learn`: a loss for the user's problem."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from lodl import losses
from lodl.cli._modules import named
from lodl.cli._options import Context, Labels, Seed, calls_solver
from lodl.cli._tables import check_out, read_column, read_context, read_labels
from lodl.evaluation import summarise
from lodl.learning import learn_loss
from lodl.oracle import Oracle
from lodl.samplers import AllPerturbed, OnePerturbed, Sampler, TwoPerturbed

_FAMILIES: Mapping[str, Callable[[], losses.Family]] = {
    member.__name__: member
    for member in (
        losses.WeightedMSE,
        losses.DirectedWeightedMSE,
        losses.DirectedWeightedMAE,
        losses.Quadratic,
        losses.DirectedQuadratic,
        losses.ConvexDirectedQuadratic,
        losses.DecisionHinges,
        losses.DecisionRanking,
        losses.NeuralLoss,
    )
}
_SAMPLERS: Mapping[str, Callable[..., Sampler]] = {
    member.__name__: member for member in (AllPerturbed, OnePerturbed, TwoPerturbed)
}


@calls_solver()
def learn(
    oracle: Oracle,
    labels: Labels,
    out: Annotated[Path, typer.Option(help="File to write the loss to.")],
    context: Context = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="File with one column: a name for each instance, to find it in a store."),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(_FAMILIES)}. Default: DecisionHinges if the objective is "
            "affine in the label, else DirectedWeightedMAE(squares=True)."
        ),
    ] = None,
    sampler: Annotated[str, typer.Option(help=f"One of {', '.join(_SAMPLERS)}.")] = "AllPerturbed",
    scale: Annotated[
        str, typer.Option(help="Standard deviation of the noise: a number, or auto.")
    ] = "auto",
    n_samples: Annotated[
        int | None, typer.Option(help="Samples per instance. Default: suited to the problem.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Learn a loss for your problem and write it to a file."""
    check_out(out)
    names = None if keys is None else read_column(keys, "keys")
    loss = learn_loss(
        oracle,
        oracle.instances(read_labels(labels), read_context(context), names),
        family=None if family is None else named("family", family, _FAMILIES)(),
        sampler=named("sampler", sampler, _SAMPLERS)(scale=_number(scale)),
        n_samples=n_samples,
        random_state=seed,
    )
    loss.save(out)
    typer.echo(str(summarise(loss)))
    typer.echo(f"\nSaved to {out}. In Python: lodl.load_loss({str(out)!r})")


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # the sampler accepts "auto" and refuses anything else
