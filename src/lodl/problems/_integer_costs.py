"""Costs scaled and rounded to whole numbers, for solvers that take no others."""

import math

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import InvalidInputError

_BITS = 50  # bits of the largest objective: far below int64, and exact as a double
_MAX_RANGE = 2.0**30  # sum of the largest values of all variables


def integer_costs(
    costs: npt.ArrayLike, largest: npt.ArrayLike = 1.0
) -> tuple[npt.NDArray[np.int64], float]:
    """Return costs as whole numbers, and the power of two that they were multiplied by.

        n_i = round(s c_i),   s the largest power of two with  s C <= 2^50,   C = sum_i |c_i| u_i

    for variables with |x_i| <= u_i. The sum of n_i x_i fits into 51 bits, so it can neither
    overflow nor lose digits as a double. A rounding error is at most 1 / (2 s) per unit of a
    variable, so the decision that is best for n is, for c, within

        sum_i u_i / s  <  C * 2^-49 * sum_i u_i

    of the best one: 2e-12 of C for a thousand yes-or-no variables, at most 2e-6. Costs that are
    whole numbers already stay in proportion exactly.

    Args:
        costs: Costs c, any shape.
        largest: Largest absolute value u of each variable, or of all of them.

    Returns:
        The whole numbers n, of the shape of `costs`, and the scale s.

    Raises:
        InvalidInputError: A cost is not finite, or the variables may be so large (2^30 in total)
            that rounding could matter.

    Example:
        >>> integer_costs([0.5, -2.0, 1.25])
        (array([  70368744177664, -281474976710656,  175921860444160]), 140737488355328.0)
    """
    values = np.asarray(costs, dtype=np.float64)
    bounds: Array = np.broadcast_to(np.abs(np.asarray(largest, dtype=np.float64)), values.shape)
    if not np.isfinite(values).all():
        raise InvalidInputError("`costs` must be finite.")
    if not bounds.sum() <= _MAX_RANGE:
        raise InvalidInputError(
            f"The variables may take values of up to {bounds.sum():.3g} in total. Beyond 2^30 the "
            "rounding of costs could change a decision: give variables narrower bounds, or "
            "measure them in a larger unit."
        )
    total = float((np.abs(values) * bounds).sum())
    if total == 0:
        return np.zeros(values.shape, dtype=np.int64), 1.0
    exponent = min(_BITS - math.frexp(total)[1], 1000)  # total < 2^frexp; 1000 stays a double
    return np.rint(np.ldexp(values, exponent)).astype(np.int64), math.ldexp(1.0, exponent)
