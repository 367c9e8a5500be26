"""The one table in which names become objects."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from lodl.errors import InvalidInputError
from lodl.losses import (
    ConvexDirectedQuadratic,
    DirectedQuadratic,
    DirectedWeightedMSE,
    Family,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)
from lodl.samplers import AllPerturbed, OnePerturbed, Sampler, TwoPerturbed

FAMILIES: Mapping[str, Callable[[], Family]] = {
    member.__name__: member
    for member in (
        WeightedMSE,
        DirectedWeightedMSE,
        Quadratic,
        DirectedQuadratic,
        ConvexDirectedQuadratic,
        NeuralLoss,
    )
}
SAMPLERS: Mapping[str, Callable[..., Sampler]] = {
    member.__name__: member for member in (AllPerturbed, OnePerturbed, TwoPerturbed)
}

_T = TypeVar("_T")


def named(what: str, name: str, table: Mapping[str, _T]) -> _T:
    """Returns the entry of a table, or says what there is."""
    if name not in table:
        raise InvalidInputError(f"`{what}` must be one of {', '.join(table)}, got {name!r}.")
    return table[name]


def parse_scale(text: str) -> float | str:
    """Returns a scale as a sampler takes it."""
    try:
        return float(text)
    except ValueError:
        return text  # the sampler knows "auto" and refuses the rest
