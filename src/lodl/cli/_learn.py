"""`lodl learn`: a loss for a problem of the user's own."""

import importlib
import inspect
import sys
import tokenize
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from lodl.cli._options import Jobs, named
from lodl.errors import DataError, InvalidInputError
from lodl.learning import learn_loss
from lodl.losses import (
    ConvexDirectedQuadratic,
    DecisionHinges,
    DecisionRanking,
    DirectedQuadratic,
    DirectedWeightedMSE,
    Family,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)
from lodl.problems import Problem
from lodl.samplers import AllPerturbed, OnePerturbed, Sampler, TwoPerturbed

_FAMILIES: Mapping[str, Callable[[], Family]] = {
    member.__name__: member
    for member in (
        WeightedMSE,
        DirectedWeightedMSE,
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
_ON_FAILURE: Mapping[str, Literal["raise", "skip"]] = {"raise": "raise", "skip": "skip"}


def learn(
    problem: Annotated[str, typer.Argument(help="MODULE:PROBLEM, a Problem or a subclass of it.")],
    labels: Annotated[
        Path, typer.Option(help="Labels y: a .npy file, instance on the first axis.")
    ],
    out: Annotated[Path, typer.Option(help="The loss file to write.")],
    context: Annotated[
        Path | None, typer.Option(help="Context: a .npy file with one entry per instance.")
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(_FAMILIES)}; if absent, DecisionHinges where the objective is "
            "affine in the label, else the largest that sees regrets only and that the samples are "
            "enough for."
        ),
    ] = None,
    sampler: Annotated[str, typer.Option(help=f"One of {', '.join(_SAMPLERS)}.")] = "AllPerturbed",
    scale: Annotated[str, typer.Option(help="Size of the noise: a number or auto.")] = "auto",
    n_samples: Annotated[
        int | None,
        typer.Option(
            help="Candidates per instance; if absent 20 for Decision families, else 1000."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed for the candidates.")] = 0,
    n_jobs: Jobs = -1,
    store: Annotated[
        str | None, typer.Option(help="Folder that keeps the oracle's answers for a later run.")
    ] = None,
    on_failure: Annotated[
        str, typer.Option(help="raise: stop at the first failed call; skip: leave it out.")
    ] = "raise",
    max_failure_rate: Annotated[
        float, typer.Option(help="With skip, the largest accepted share of failed samples.")
    ] = 0.1,
) -> None:
    """Learn a loss for a problem of your own and write it to a file."""
    _check_out(out)
    loss = learn_loss(
        load_problem(problem),
        load_array("labels", labels),
        context=None if context is None else load_array("context", context),
        family=None if family is None else named("family", family, _FAMILIES)(),
        sampler=named("sampler", sampler, _SAMPLERS)(scale=_parse_scale(scale)),
        n_samples=n_samples,
        seed=seed,
        n_jobs=n_jobs,
        store=store,
        on_failure=named("on_failure", on_failure, _ON_FAILURE),
        max_failure_rate=max_failure_rate,
    )
    loss.save(out)
    typer.echo(str(loss.summary()))
    typer.echo(f"\nSaved to {out}. In Python: lodl.load_loss({str(out)!r})")


def load_problem(name: str) -> Problem:
    """Return the problem `MODULE:PROBLEM`; the module may lie in the current folder."""
    module_name, _, attribute = name.partition(":")
    if not attribute or not all(part.isidentifier() for part in module_name.split(".")):
        raise InvalidInputError(f"The problem must be given as MODULE:PROBLEM, got {name!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        hint = " Leave out `.py`." if module_name.endswith(".py") else ""
        raise InvalidInputError(
            f"There is no module {error.name!r} in the current folder or on PYTHONPATH.{hint}"
        ) from error
    if not hasattr(module, attribute):
        raise InvalidInputError(f"{module_name} has no {attribute!r}.")
    found: Any = getattr(module, attribute)
    if isinstance(found, type) and issubclass(found, Problem):
        found = _instance_of(found)
    if not isinstance(found, Problem):
        raise InvalidInputError(
            f"{name} must be a lodl.Problem or a subclass of it, got {type(found).__name__}."
        )
    return found


def _instance_of(problem_class: type[Problem]) -> Problem:
    if inspect.isabstract(problem_class):
        missing = ", ".join(sorted(problem_class.__abstractmethods__))
        raise InvalidInputError(f"{problem_class.__name__} is not complete: write {missing} in it.")
    try:
        return problem_class()
    except TypeError as error:
        raise InvalidInputError(
            f"{problem_class.__name__}() cannot be made: {error}. Make an instance in the module "
            "and give its name."
        ) from error


def _check_out(out: Path) -> None:
    """Check that the loss can be written, before hours are spent on it."""
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidInputError(f"`out` must be a file in a folder that exists, got {out}.")


def _parse_scale(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # the sampler knows "auto" and refuses the rest


def load_array(what: str, path: Path) -> np.ndarray[Any, Any]:
    """Return the array of a .npy file."""
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}.") from error
    except (OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"The {what} in {path} cannot be read as .npy: {error}") from error
