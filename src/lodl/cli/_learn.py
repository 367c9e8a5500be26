"""`lodl learn`: a loss for the user's problem."""

from collections.abc import Callable, Mapping
from inspect import isabstract, isclass
from pathlib import Path
from typing import Annotated

import typer

from lodl import losses
from lodl._arrays import row_names
from lodl.cli._modules import named
from lodl.cli._options import CALLS, MODEL, Context, Labels, Names, Seed, calls_solver, option
from lodl.cli._tables import check_out, read_data
from lodl.evaluation import summarise
from lodl.learning import learn_loss
from lodl.oracle import Oracle
from lodl.samplers import AllPerturbed

_FAMILIES: Mapping[str, Callable[[], losses.Family]] = {
    name: member
    for name, member in vars(losses).items()
    if isclass(member) and issubclass(member, losses.Family) and not isabstract(member)
}
_ONE_FAMILY = (
    f"One of {', '.join(_FAMILIES)}. Default: DecisionHinges if the objective is affine in the "
    "label, else DirectedWeightedMAE(squares=True)"
)


@calls_solver()
def learn(
    oracle: Oracle,
    labels: Labels,
    out: Annotated[Path, option(MODEL, "File to write the loss to.")],
    context: Context = None,
    names: Names = None,
    family: Annotated[str | None, option(MODEL, f"{_ONE_FAMILY}.")] = None,
    seed: Seed = 0,
    scale: Annotated[str, option(CALLS, "Deviation of the noise: a number, or auto.")] = "auto",
    n_samples: Annotated[int | None, option(CALLS, "Samples per instance.")] = None,
) -> None:
    """Learn a loss for your problem and write it to a file."""
    check_out(out)
    _, y, contexts = read_data(None, labels, context, names)
    keys = None if names is None else row_names(y)  # a store finds answers by them
    loss = learn_loss(
        oracle,
        oracle.instances(y, contexts, keys),
        family=None if family is None else named("family", family, _FAMILIES)(),
        sampler=AllPerturbed(_number(scale)),
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
