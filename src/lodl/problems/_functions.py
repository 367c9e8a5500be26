"""Problems made of plain functions, with or without a context."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError
from lodl.problems._problem import Problem, check_sense

_Function = Callable[..., Any]
_Place = Literal["none", "last", "by name"]


def problem(
    solve: Callable[..., Decision],
    objective: Callable[..., float],
    *,
    sense: Sense,
    project: Callable[[Array], Array] | None = None,
    slope: Callable[..., Array] | None = None,
    unit: str = "",
) -> Problem:
    """Return a problem made of plain functions.

    The context is passed to the parameter `context`, or else to the next one without a default.

    Args:
        solve: `solve(y_hat, context) -> z`, or `solve(y_hat) -> z` if it needs no context.
        objective: `objective(z, y, context) -> float`, or without `context`.
        sense: "min" if the objective is a cost, "max" if it is a gain.
        project: Maps predictions (k, *label_shape) into the valid range. Defaults to the identity.
        slope: `slope(z, y, context)`, or without `context`: the derivative of the objective with
            respect to the label, in the label's shape. Defaults to differences of `objective`.
        unit: The unit of the objective, for summaries and reports.

    Example:
        >>> import numpy as np
        >>> problem(np.argmax, lambda z, y: y[z], sense="max", unit="EUR")
        problem(argmax, <lambda>, sense='max', unit='EUR')
    """
    return _FunctionProblem(solve, objective, sense, project, slope, unit)


class _FunctionProblem(Problem):
    def __init__(
        self,
        solve: _Function,
        objective: _Function,
        sense: Sense,
        project: _Function | None,
        slope: _Function | None,
        unit: str,
    ) -> None:
        check_sense(sense, "problem()")
        self.sense, self.unit, self._project = sense, unit, project
        self._solve = FunctionWithContext("solve", solve, 1)
        self._objective = FunctionWithContext("objective", objective, 2)
        self._slope = slope and FunctionWithContext("slope", slope, 2)

    def __repr__(self) -> str:
        unit = f", unit={self.unit!r}" if self.unit else ""
        return f"problem({self._solve}, {self._objective}, sense={self.sense!r}{unit})"

    def solve(self, y_hat: Array, context: InstanceContext) -> Decision:
        if context is not None and {self._solve.place, self._objective.place} == {"none"}:
            advice = "Name a parameter `context`, or leave the context out."
            wrong = "A context was given, but neither `solve` nor `objective` takes one."
            raise InvalidInputError(f"{wrong} {advice}")
        return self._solve(y_hat, context=context)

    def objective(self, z: Decision, y: Array, context: InstanceContext) -> float:
        return self._objective(z, y, context=context)  # type: ignore[no-any-return]

    def project(self, y_hats: Array) -> Array:
        return y_hats if self._project is None else self._project(y_hats)

    def slope(self, z: Decision, y: Array, context: InstanceContext) -> Array | None:
        return None if self._slope is None else self._slope(z, y, context=context)


class FunctionWithContext:
    """A user's function with `n_before` arguments and, if it takes one, a context."""

    def __init__(self, name: str, function: _Function, n_before: int) -> None:
        self.function = function
        self.place = _place_of_context(name, function, n_before)

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, *arguments: Any, context: InstanceContext) -> Any:
        if self.place == "by name":
            return self.function(*arguments, context=context)
        if self.place == "last":
            return self.function(*arguments, context)
        return self.function(*arguments)


def _place_of_context(name: str, function: _Function, n_before: int) -> _Place:
    """Return where a function takes the context, after its first `n_before` arguments."""
    if not callable(function):
        raise InvalidInputError(f"`{name}` must be a function, got {function!r}.")
    try:
        signature = inspect.signature(function)
    except ValueError:  # built-ins without a signature take no context
        return "none"
    arguments = [None] * n_before
    if _binds(signature, *arguments, context=None) and "context" in signature.parameters:
        return "by name"
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [p for p in signature.parameters.values() if p.kind in by_place][n_before:]
    is_option = bool(rest) and rest[0].default is not inspect.Parameter.empty
    if _binds(signature, *arguments, None) and not is_option:
        return "last"
    if _binds(signature, *arguments):
        return "none"
    wanted = f"{n_before} or {n_before + 1} positional arguments (the last is the context)"
    raise InvalidInputError(f"`{name}` must take {wanted}, its signature is {name}{signature}.")


def _binds(signature: inspect.Signature, *arguments: None, **named: None) -> bool:
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        return False
    return True
