"""The one call that joins the parts: from a solver to a loss."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, overload

import numpy.typing as npt

from lodl._typing import Context
from lodl._validation import check_labels
from lodl.errors import InvalidInputError
from lodl.fitting import check_can_fit, fit
from lodl.losses import ConvexDirectedQuadratic, Family, LearnedLoss
from lodl.oracle import evaluate
from lodl.problems import Problem
from lodl.samplers import AllPerturbed, Sampler

_DEFAULT_FAMILY = ConvexDirectedQuadratic()
_DEFAULT_SAMPLER = AllPerturbed(scale="auto")


@overload
def learn_loss(
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = ...,
    family: Family = ...,
    sampler: Sampler = ...,
    n_samples: int = ...,
    seed: int = ...,
    n_jobs: int | None = ...,
    store: str | PathLike[str] | None = ...,
    on_failure: Literal["raise", "skip"] = ...,
    max_failure_rate: float = ...,
    progress: bool = ...,
) -> LearnedLoss: ...


@overload
def learn_loss(
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = ...,
    family: Sequence[Family],
    sampler: Sampler = ...,
    n_samples: int = ...,
    seed: int = ...,
    n_jobs: int | None = ...,
    store: str | PathLike[str] | None = ...,
    on_failure: Literal["raise", "skip"] = ...,
    max_failure_rate: float = ...,
    progress: bool = ...,
) -> list[LearnedLoss]: ...


def learn_loss(
    problem: Problem,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    family: Family | Sequence[Family] = _DEFAULT_FAMILY,
    sampler: Sampler = _DEFAULT_SAMPLER,
    n_samples: int = 1000,
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | PathLike[str] | None = None,
    on_failure: Literal["raise", "skip"] = "raise",
    max_failure_rate: float = 0.1,
    progress: bool = True,
) -> LearnedLoss | list[LearnedLoss]:
    """Learns, from a solver, a loss that knows what prediction errors cost.

    Draws candidate predictions around each label, asks the solver what each would cost, and fits a
    loss of the family to the answers, one per instance. To look at the answers, or to fit other
    families later, take the two steps apart: `lodl.oracle.evaluate` and `lodl.fitting.fit`.

    Args:
        problem: The problem whose solver is asked: `n_samples + 1` calls per instance, somewhat
            more where it answers in batches (see `evaluate`).
        y: Labels of training and validation instances, shape (n, *label_shape).
        context: One entry per instance, or None.
        family: The parametric loss, or several: they share the samples.
        sampler: Draws the candidates.
        n_samples: Candidates per instance. A fifth of them measures the fit; of the rest a family
            with p parameters wants several times p.
        seed: Of the candidates.
        n_jobs: Workers, as in joblib: None is one, -1 all cores. On a Dask cluster leave it out and
            call this within `joblib.parallel_config(backend="dask")`, once there is a client.
        store: Folder or URL that keeps the answers: an interrupted call goes on where it was. A
            changed problem needs another store; see `lodl.oracle.fingerprint` for what is noticed.
        on_failure: "raise" stops at the first oracle call that fails, "skip" leaves it out.
        max_failure_rate: With "skip", more than this share of failed samples is an error.
        progress: Whether to show bars on a terminal.

    Returns:
        The learned loss, or a list of them where `family` is a list.
    """
    families = _check_families(family)
    dim = check_labels(y)[0].size
    for member in families:
        check_can_fit(member, dim)
    samples = evaluate(
        problem,
        y,
        context=context,
        sampler=sampler,
        n_samples=n_samples,
        seed=seed,
        n_jobs=n_jobs,
        store=store,
        on_failure=on_failure,
        max_failure_rate=max_failure_rate,
        progress=progress,
    )
    losses = [fit(samples, member, n_jobs=n_jobs, progress=progress) for member in families]
    return losses[0] if isinstance(family, Family) else losses


def _check_families(family: object) -> list[Family]:
    """Returns the families in a list, which is not empty."""
    families: list[Any] = [family]
    if isinstance(family, Sequence) and not isinstance(family, str):
        families = list(family)
    if not families:
        raise InvalidInputError("`family` must have at least one loss family, got an empty list.")
    return families
