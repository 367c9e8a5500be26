"""Which family is fitted how."""

from collections.abc import Callable, Iterable, Iterator
from functools import singledispatch
from typing import Any, TypeAlias

from lodl._typing import Array
from lodl._validation import check_instance_of
from lodl.errors import InvalidInputError
from lodl.fitting._convex_directed_quadratic import fit_convex_directed_quadratic
from lodl.fitting._directed_quadratic import fit_directed_quadratic
from lodl.fitting._neural import fit_neural, fit_neural_batch
from lodl.fitting._quadratic import fit_quadratic
from lodl.fitting._weighted import fit_directed_weighted_mse, fit_weighted_mse
from lodl.losses import (
    ConvexDirectedQuadratic,
    DirectedQuadratic,
    DirectedWeightedMSE,
    Family,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)

FitOne: TypeAlias = Callable[[Any, Array, Array], dict[str, Array]]


@singledispatch
def fit_instance(
    family: Family,
    d: Array,  # noqa: ARG001 - for the functions registered below
    regret: Array,  # noqa: ARG001
) -> dict[str, Array]:
    """Returns the parameters of one instance that repeat its regrets best.

    Args:
        family: The loss to fit. A family of your own is fitted by the function you register for it,
            `fit_instance.register(MyFamily)(my_fit)`, with these same arguments.
        d: Errors of the samples, shape (K, D), finite, in any unit.
        regret: Regrets of the samples, shape (K,), finite and not all zero, in any unit.

    Returns:
        Finite arrays of the shapes `family.parameter_shapes(D)`.
    """
    raise _no_fit(family)


def check_can_fit(family: Family, dim: int) -> None:
    """Demands a family that can be fitted to labels of `dim` numbers, before anything is spent."""
    wanted = "a loss family such as `lodl.DirectedWeightedMSE()`"
    check_instance_of(Family, "family", family, wanted=wanted)
    if fit_instance.dispatch(type(family)) is fit_instance.dispatch(object):
        raise _no_fit(family)
    family.parameter_shapes(dim)


def _no_fit(family: Family) -> InvalidInputError:
    name = type(family).__name__
    return InvalidInputError(
        f"`family` must be one that `lodl` can fit, got {name}. Is it your own? Tell how it is "
        f"fitted: `lodl.fitting.fit_instance.register({name})(fit)` with a function "
        "`fit(family, d, regret) -> phi`."
    )


fit_instance.register(WeightedMSE)(fit_weighted_mse)
fit_instance.register(DirectedWeightedMSE)(fit_directed_weighted_mse)
fit_instance.register(Quadratic)(fit_quadratic)
fit_instance.register(DirectedQuadratic)(fit_directed_quadratic)
fit_instance.register(ConvexDirectedQuadratic)(fit_convex_directed_quadratic)
fit_instance.register(NeuralLoss)(fit_neural)


def fit_batch(
    family: Any, samples: Iterable[tuple[Array, Array]], fit_one: FitOne
) -> Iterator[dict[str, Array]]:
    """Fits several instances: networks all at once, others each when its result is asked for."""
    if fit_one is fit_neural:
        yield from fit_neural_batch(family, list(samples))
    else:
        for d, regret in samples:
            yield fit_one(family, d, regret)
