"""Calls of `LinearProblem.are_feasible`, whose results are checked."""

import numpy as np

from lodl._typing import Array, InstanceContext, Masks
from lodl.errors import ProblemError
from lodl.oracle._guard import owned_context
from lodl.problems import LinearProblem, Problem
from lodl.problems._regret import read_only

REFUSES = (
    "`are_feasible` refuses %d of %d decisions that `solve` returned. Allow for rounding, "
    "e.g. `zs @ weights <= capacity + 1e-6`."
)


def feasible(problem: Problem, zs: Array, context: InstanceContext) -> Masks | None:
    """Return which decisions a context allows, shape (k,), or None if the problem cannot tell."""
    if not isinstance(problem, LinearProblem):
        return None
    try:
        allowed = problem.are_feasible(read_only(zs), owned_context(context))
    except Exception as error:
        raise ProblemError(f"`are_feasible` raised {type(error).__name__}: {error}") from error
    if allowed is None:
        return None
    row = np.asarray(allowed)
    if row.shape != (len(zs),) or row.dtype.kind != "b":
        wanted = f"an array of {len(zs)} truth values, one per decision"
        got = f"{row.dtype} of shape {row.shape}"
        raise ProblemError(f"`are_feasible` must return {wanted}, got {got}.")
    return row
