"""Models written in CVXPY."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from lodl._arrays import check_instance_of, require
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems._model_problem import Model, ModelProblem, check_replacements

__all__ = ["CvxpyProblem"]

_SLACK = 1e-4  # allowed violation of a constraint, relative to the largest prediction or to 1


class CvxpyProblem(ModelProblem):
    """A `cp.Problem` with a `cp.Parameter` that is predicted.

    A label has the parameter's shape. A decision is a dict from the names of variables to their
    values, and its objective is the model's, at the true value of the parameter with the variables
    fixed. Predictions are projected on the range of the parameter.

    If the parameter occurs in constraints, the truth may forbid a decision. Then list the variables
    that are decided first in `first_stage`: the others are found by a second solve under the truth.

    A copy of the model is compiled once per process and thread, which saves most of the time of a
    call if CVXPY considers the model DPP (`problem.is_dpp()`). The slope is CVXPY's gradient of the
    objective or, with `first_stage`, comes from differences: two solves per number in a label and
    distinct decision.

    Args:
        problem: The `cp.Problem`.
        parameter: Its `cp.Parameter` that is predicted. The context of an instance is a dict from
            names of other parameters to values that replace the present ones.
        first_stage: Variables that are decided on the prediction. Defaults to all of them.
        solver: Name of the solver. Defaults to CVXPY's choice, often Gurobi if installed.
        options: Further arguments of `cp.Problem.solve`, e.g. `{"time_limit": 10}` for HiGHS. For
            models with whole numbers, pass `{"mip_rel_gap": 0}` or the like, as the gap shows as
            regret. `{"warm_start": True}` may be faster, but answers then depend on earlier calls.

    Example:
        >>> import cvxpy as cp
        >>> price = cp.Parameter(3, name="price")
        >>> budget = cp.Parameter(nonneg=True, name="budget", value=2)
        >>> share = cp.Variable(3, nonneg=True, name="share")
        >>> gain = price @ share - cp.sum_squares(share)
        >>> model = cp.Problem(cp.Maximize(gain), [cp.sum(share) <= budget])
        >>> problem = CvxpyProblem(model, price, solver="CLARABEL")
        >>> z = problem.solve(np.array([1.0, 2.0, 3.0]), {"budget": 0.5})
        >>> z["share"].round(3) + 0.0
        array([0. , 0. , 0.5])
        >>> round(problem.objective(z, np.array([4.0, 4.0, 1.0]), {"budget": 0.5}), 3)
        0.25
    """

    def __init__(
        self,
        problem: Any,
        parameter: Any,
        *,
        first_stage: Sequence[Any] | None = None,
        solver: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        import cloudpickle  # slow to import

        cp = require("cvxpy", "cvxpy")
        _check(cp, problem, parameter, first_stage)
        fresh = cp.Problem(problem.objective, problem.constraints)  # without its compiled form
        pickled = cloudpickle.dumps((fresh, parameter, first_stage))
        solving = {"solver": solver, "warm_start": False, **(options or {})}
        build = partial(_Model, pickled, cp.Variable().id, solving)
        sense: Sense = "min" if isinstance(problem.objective, cp.Minimize) else "max"
        super().__init__(sense, build, first_stage=first_stage)


class _Model(Model):
    """A CVXPY model, with the first stage free or fixed by parameters."""

    def __init__(
        self, pickled: bytes, last_id: int, options: Mapping[str, Any], is_fixed: bool = False
    ) -> None:
        cp = require("cvxpy", "cvxpy")
        # CVXPY numbers variables from 1 in every process. A model from another process keeps its
        # numbers (up to `last_id`), and compiling it would use some again: wrong shapes or answers.
        while cp.Variable().id <= last_id:
            pass
        problem, self._parameter, first_stage = pickle.loads(pickled)  # noqa: S301 - ours
        self._others = {p.name(): p for p in problem.parameters() if p is not self._parameter}
        self._defaults = {name: parameter.value for name, parameter in self._others.items()}
        self._set: dict[str, Any] = {}  # values of the other parameters
        self._decided = {v.name(): v for v in first_stage or problem.variables()}
        self._bound = [c for c in problem.constraints if _has(c.parameters(), self._parameter)]
        self.has_recourse = is_fixed
        if is_fixed:
            self._fixed = {name: cp.Parameter(v.shape) for name, v in self._decided.items()}
            equal = [v == self._fixed[name] for name, v in self._decided.items()]
            problem = cp.Problem(problem.objective, [*problem.constraints, *equal])
        self._problem, self._options = problem, options
        self._at = cp.Variable(self._parameter.shape)  # in the parameter's place, for the gradient
        self._gradient_of = problem.objective.expr.tree_copy({id(self._parameter): self._at})

    def set(self, y: Array, context: InstanceContext) -> None:
        replaced = check_replacements(context, self._others, "parameters")
        for name, value in {**self._defaults, **replaced}.items():
            if value is None:
                advice = "give it one, or put it in the context"
                raise InvalidInputError(f"The parameter {name!r} has no value: {advice}.")
            if name not in self._set or not np.array_equal(self._set[name], value):  # slow to set
                self._others[name].value = value
                self._set[name] = np.array(value)
        self._parameter.value = np.reshape(y, self._checked_shape(np.shape(y)))

    def optimise(self) -> None:
        problem, cp = self._problem, require("cvxpy", "cvxpy")
        try:
            problem.solve(**self._options)
        except cp.error.SolverError as error:
            raise ProblemError(f"CVXPY found no decision: {error}") from error
        status = problem.status
        is_within_limit = status == "user_limit" and self._satisfies(problem.constraints)
        if status not in ("optimal", "optimal_inaccurate") and not is_within_limit:
            raise ProblemError(f"CVXPY found no decision: its status is {status!r}.")

    def read(self) -> Decision:
        return {name: _value(variable) for name, variable in self._decided.items()}

    def fix(self, z: Decision) -> None:
        for name, variable in self._decided.items():
            if self.has_recourse:
                self._fixed[name].value = z[name]
            else:
                variable.save_value(z[name])  # unchecked: a solver's zero may be -1e-9

    def check_fixed(self) -> None:
        if not self._satisfies(self._bound):
            raise ProblemError(f"it violates a constraint with {self._parameter.name()!r}.")

    def value(self) -> float:
        return float(self._problem.objective.value)

    def slope(self, z: Decision, y: Array, context: InstanceContext) -> Array | None:
        if self.has_recourse or self._gradient_of is None:  # recourse depends on the label, too
            return None
        self.set(y, context)
        self.fix(z)
        self._at.save_value(self._parameter.value)
        gradient = None
        with suppress(KeyError, NotImplementedError):
            gradient = self._gradient_of.grad[self._at]
        if gradient is None:  # at the edge of a domain, or of an atom without a gradient
            self._gradient_of = None
            return None
        dense = gradient.toarray() if hasattr(gradient, "toarray") else np.asarray(gradient)
        return np.reshape(dense, self._parameter.shape, order="F").reshape(y.shape)

    def project(self, y_hats: Array) -> Array:
        shape = self._checked_shape(y_hats.shape[1:])
        inside = [self._parameter.project(y_hat.reshape(shape)) for y_hat in y_hats]
        return np.reshape(np.asarray(inside, dtype=np.float64), y_hats.shape)

    def _satisfies(self, constraints: Iterable[Any]) -> bool:
        slack = _SLACK * max(1.0, np.abs(self._parameter.value).max())
        return all(constraint.value(slack) for constraint in constraints)

    def _checked_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the parameter's shape if an array of `shape` can take it."""
        wanted: tuple[int, ...] = self._parameter.shape
        if shape != wanted and not (wanted == () and shape == (1,)):
            name = self._parameter.name()
            raise ShapeError(f"A prediction must have the shape {wanted} of {name!r}, got {shape}.")
        return wanted


def _value(variable: Any) -> Any:
    is_whole = variable.attributes["integer"] or variable.attributes["boolean"]
    return np.rint(variable.value) if is_whole else variable.value


def _has(leaves: Iterable[Any], leaf: Any) -> bool:
    """Return whether a leaf is among others. The operator `in` would make constraints of them."""
    return any(leaf is other for other in leaves)


def _check(cp: Any, problem: Any, parameter: Any, first_stage: Sequence[Any] | None) -> None:
    check_instance_of(cp.Problem, "problem", problem, wanted="a `cp.Problem`")
    if not _has(problem.parameters(), parameter):
        names = [leaf.name() for leaf in problem.parameters()]
        wanted = f"a `cp.Parameter` of the problem, which has {names}"
        raise InvalidInputError(f"`parameter` must be {wanted}, got {parameter!r}.")
    if not all(_has(problem.variables(), leaf) for leaf in first_stage or ()):
        raise InvalidInputError(f"`first_stage` must list variables of `problem`: {first_stage}.")
    for kind, leaves in (("variables", problem.variables()), ("parameters", problem.parameters())):
        names = [leaf.name() for leaf in leaves]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"Two {kind} have the same name, in {names}; rename one.")
