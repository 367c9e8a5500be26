"""Which families a number of samples is enough for."""

import logging
from math import prod

from lodl.losses import ConvexDirectedQuadratic, DirectedWeightedMSE, Family, WeightedMSE

N_SAMPLES_WITH_SLOPES = 20
"""Samples for a family made of decisions: nothing is fitted, and most that matter are met."""

SAMPLES_PER_PARAMETER = 3
"""Samples for each parameter that is fitted; with fewer, models decided worse than 2-stage."""

_logger = logging.getLogger(__name__)

_BY_SIZE = (ConvexDirectedQuadratic(), DirectedWeightedMSE(), WeightedMSE())  # the largest first


def n_parameters(family: Family, dim: int) -> int:
    """Return the number of parameters of an instance."""
    return sum(map(prod, family.parameter_shapes(dim).values()))


def n_samples_for(family: Family, dim: int) -> int:
    """Return how many samples of an instance are enough for a family."""
    if family.uses_slopes:
        return N_SAMPLES_WITH_SLOPES
    return SAMPLES_PER_PARAMETER * n_parameters(family, dim)


def largest_family(n_samples: int, dim: int) -> Family:
    """Return the largest family that sees regrets only and that the samples are enough for.

    If they are not enough for any, it is the smallest.
    """
    affordable = (family for family in _BY_SIZE if n_samples_for(family, dim) <= n_samples)
    return next(affordable, _BY_SIZE[-1])


def warn_of_few_samples(family: Family, n_samples: int, dim: int) -> None:
    """Log a warning where a family has too many parameters for the samples of an instance."""
    n, enough = n_parameters(family, dim), n_samples_for(family, dim)
    if family.uses_slopes or n_samples >= enough:
        return
    smaller = [
        f"a smaller family (`{type(one).__name__}` has {n_parameters(one, dim)}), "
        for one in _BY_SIZE
        if n_parameters(one, dim) < n
    ]
    _logger.warning(
        "%s has %d parameters per instance, and %d samples are few for them. Take %sat least %d "
        "samples, or a family made of decisions (`DecisionHinges`), which needs about %d.",
        family,
        n,
        n_samples,
        smaller[0] if smaller else "",
        enough,
        N_SAMPLES_WITH_SLOPES,
    )
