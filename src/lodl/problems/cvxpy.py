"""Models written in CVXPY."""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from lodl._arrays import require
from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems._cvxpy_compiled import Compiled
from lodl.problems._per_thread import PerThread
from lodl.problems._problem import Problem

__all__ = ["CvxpyProblem"]

_SLACK = 1e-4  # of the largest number predicted, or of 1: by how much a constraint may be missed


class CvxpyProblem(Problem):
    """A `cp.Problem` with a `cp.Parameter` that is predicted.

    Use it for any model that CVXPY can solve. The sense is the model's own. A label has the
    parameter's shape, a decision is a dict from the names of variables to their values, and it is
    worth what the model's objective is at the true value of the parameter, with the variables
    fixed. Predictions are projected on what the parameter allows (`nonneg=True`, `bounds=...`).

    Where the parameter stands in constraints, as a demand does, the truth may forbid a decision.
    Then name the variables that are decided first: the others are the recourse, found by a second
    solve under the truth with those of `first_stage` fixed.

    The model is compiled once per process and thread, and called again with new values. That spares
    most of the time of a call if CVXPY calls the model DPP (`problem.is_dpp()`), and most of all
    if the predicted parameter stands in the objective only; others work. The model that was handed
    over is copied and not touched.

    The slope is the gradient that CVXPY computes of the objective. With `first_stage` it comes from
    differences: two solves per number in a label and distinct decision.

    A call fails, with CVXPY's status, if the model is infeasible or unbounded, or if the solver
    fails or reaches a limit without a decision that keeps the constraints.

    Args:
        problem: The `cp.Problem`.
        parameter: Its `cp.Parameter` that is predicted. The context of an instance is a dict from
            names of other parameters to their values; those it leaves out keep the value they
            have now.
        first_stage: Variables that are decided on the prediction; None is all of them.
        solver: Name of the solver; None is CVXPY's choice.
        options: Further arguments of `cp.Problem.solve`, e.g. `{"time_limit": 10}` for HiGHS. Give
            whole-number models `{"mip_rel_gap": 0}`, or its like, as the gap shows as regret.
            `{"warm_start": True}` may be faster, but answers then depend on earlier calls.

    Example:
        >>> import cvxpy as cp
        >>> price = cp.Parameter(3, name="price")
        >>> budget = cp.Parameter(nonneg=True, name="budget", value=2)
        >>> share = cp.Variable(3, nonneg=True, name="share")
        >>> gain = price @ share - cp.sum_squares(share)
        >>> model = cp.Problem(cp.Maximize(gain), [cp.sum(share) <= budget])
        >>> problem = CvxpyProblem(model, price)
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
        self.sense = "min" if isinstance(problem.objective, cp.Minimize) else "max"
        fresh = cp.Problem(problem.objective, problem.constraints)  # without what was compiled
        pickled = cloudpickle.dumps((fresh, parameter, first_stage))
        solving = {"solver": solver, "warm_start": False, **(options or {})}
        self._models = PerThread(partial(_load, pickled, cp.Variable().id, solving))

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        model = self._models.get()
        model.set(y_hat, context)
        model.optimise()
        return {name: _value(variable) for name, variable in model.decided.items()}

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        model = self._models.get()
        model.set(y, context)
        return model.score(z)

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array | None:
        model = self._models.get()
        model.set(y, context)
        return model.slope(z, y)

    def project(self, y_hats: Array) -> Array:
        parameter = self._models.get().parameter
        shape = _checked_shape(y_hats.shape[1:], parameter)
        inside = [parameter.project(y_hat.reshape(shape)) for y_hat in y_hats]
        return np.reshape(np.asarray(inside, dtype=np.float64), y_hats.shape)


class _Model:
    """A model as one thread uses it."""

    def __init__(
        self, problem: Any, parameter: Any, first_stage: Sequence[Any] | None, options: Any
    ) -> None:
        self.parameter, self._problem, self._options = parameter, problem, options
        self._others = {p.name(): p for p in problem.parameters() if p is not parameter}
        self._defaults = {name: other.value for name, other in self._others.items()}
        self._set: dict[str, Array] | None = None  # what the others were last set to
        self._compiled, self._is_fresh = Compiled(problem, parameter, options), False
        self.decided = {v.name(): v for v in first_stage or problem.variables()}
        self._bound = [c for c in problem.constraints if _has(c.parameters(), parameter)]
        self._recourse = None if first_stage is None else self._fixed()
        self._in_parameter: tuple[Any, Any] | None = self._as_function_of_the_parameter()

    def set(self, y: Array, context: InstanceContext) -> None:
        """Set all parameters."""
        values = self._defaults
        if context is not None:
            if not isinstance(context, Mapping) or not set(context) <= set(values):
                keys = list(context) if isinstance(context, Mapping) else type(context).__name__
                raise InvalidInputError(
                    "The context of an instance must be a dict of parameters among "
                    f"{list(values)}, got {keys}."
                )
            values = {**values, **context}
        if not self._is_set(values):
            self._set, self._is_fresh = None, False
            for name, value in values.items():
                if value is None:
                    raise InvalidInputError(
                        f"The parameter {name!r} has no value: give it one, or put it in the "
                        "context."
                    )
                self._others[name].value = value
            self._set = {name: np.array(value) for name, value in values.items()}
        self.parameter.value = np.reshape(y, _checked_shape(y.shape, self.parameter))

    def _is_set(self, values: Mapping[str, Any]) -> bool:
        last = self._set
        return last is not None and all(np.array_equal(last[n], v) for n, v in values.items())

    def optimise(self, problem: Any = None) -> None:
        """Give the variables their best values."""
        cp = require("cvxpy", "cvxpy")
        if problem is None:
            if self._optimise_compiled():
                return
            problem = self._problem
        try:
            problem.solve(**self._options)
        except cp.error.SolverError as error:
            raise ProblemError(f"CVXPY found no decision: {error}") from error
        is_found = problem.status in ("optimal", "optimal_inaccurate") or (
            problem.status == "user_limit" and self._keeps(problem.constraints)
        )
        if not is_found:
            raise ProblemError(f"CVXPY found no decision: its status is {problem.status!r}.")

    def _optimise_compiled(self) -> bool:
        """Give the variables their best values by the quick way, if there is one."""
        if not self._is_fresh:
            self._compiled.refresh()
            self._is_fresh = True
        found = self._compiled.solve()
        if found is None:
            return False
        for variable in self.decided.values():
            variable.save_value(found[variable.id])
        return True

    def slope(self, z: Decision, y: Array) -> Array | None:
        """Return the gradient of the objective by the parameter, where CVXPY knows it."""
        if self._recourse is not None or self._in_parameter is None:
            return None
        expression, at = self._in_parameter
        self._place(z)
        at.save_value(self.parameter.value)
        try:
            gradient = expression.grad[at]
        except (KeyError, NotImplementedError):
            gradient = None
        if gradient is None:  # at the edge of a domain, or of an atom without a gradient
            self._in_parameter = None
            return None
        dense = gradient.toarray() if hasattr(gradient, "toarray") else np.asarray(gradient)
        return np.reshape(dense, self.parameter.shape, order="F").reshape(y.shape)

    def _place(self, z: Decision) -> None:
        for name, variable in self.decided.items():
            variable.save_value(z[name])  # unchecked: a solver's zero may be -1e-9

    def score(self, z: Decision) -> float:
        """Return the objective of a decision at the values set."""
        if self._recourse is None:
            self._place(z)
            if not self._keeps(self._bound):
                raise ProblemError(
                    f"The decision breaks a constraint under the true {self.parameter.name()!r}. "
                    "Give the model recourse: variables that make up for a wrong decision, at a "
                    "price, and `first_stage=`, the variables that are decided before."
                )
            return float(self._problem.objective.value)
        recourse, fixed = self._recourse
        for name, parameter in fixed.items():
            parameter.value = z[name]
        try:
            self.optimise(recourse)
        except ProblemError as error:
            raise ProblemError(
                f"Under the true {self.parameter.name()!r}, with `first_stage` fixed: {error} Give "
                "the model variables that make up for a wrong decision, at a price."
            ) from error
        return float(recourse.objective.value)

    def _as_function_of_the_parameter(self) -> tuple[Any, Any]:
        """Return the objective with a variable in the parameter's place, for its gradient."""
        at = require("cvxpy", "cvxpy").Variable(self.parameter.shape)
        return self._problem.objective.expr.tree_copy({id(self.parameter): at}), at

    def _fixed(self) -> tuple[Any, dict[str, Any]]:
        """Return the problem with the first stage fixed, and the parameters that fix it."""
        cp = require("cvxpy", "cvxpy")
        fixed = {name: cp.Parameter(v.shape) for name, v in self.decided.items()}
        equal = [variable == fixed[name] for name, variable in self.decided.items()]
        problem = cp.Problem(self._problem.objective, [*self._problem.constraints, *equal])
        return problem, fixed

    def _keeps(self, constraints: Iterable[Any]) -> bool:
        slack = _SLACK * max(1.0, np.abs(self.parameter.value).max())
        return all(constraint.value(slack) for constraint in constraints)


def _load(pickled: bytes, last_id: int, options: Mapping[str, Any]) -> _Model:
    # CVXPY numbers variables from 1 in every process. A model from elsewhere keeps its numbers, and
    # compiling it here would take some of them again: wrong shapes, or wrong answers.
    cp = require("cvxpy", "cvxpy")
    while cp.Variable().id <= last_id:
        pass
    problem, parameter, first_stage = pickle.loads(pickled)  # noqa: S301 - made by CvxpyProblem
    return _Model(problem, parameter, first_stage, options)


def _value(variable: Any) -> Any:
    whole = variable.attributes["integer"] or variable.attributes["boolean"]
    return np.rint(variable.value) if whole else variable.value


def _has(leaves: Iterable[Any], leaf: Any) -> bool:
    """Return whether a leaf is one of several; `in` would make constraints of them."""
    return any(leaf is one for one in leaves)


def _checked_shape(shape: tuple[int, ...], parameter: Any) -> tuple[int, ...]:
    """Return the parameter's shape, if an array of a shape can take it."""
    wanted: tuple[int, ...] = parameter.shape
    if shape != wanted and not (wanted == () and shape == (1,)):
        raise ShapeError(
            f"A prediction must have the shape {wanted} of {parameter.name()!r}, got {shape}."
        )
    return wanted


def _check(cp: Any, problem: Any, parameter: Any, first_stage: Sequence[Any] | None) -> None:
    if not isinstance(problem, cp.Problem):
        raise InvalidInputError(f"`problem` must be a `cp.Problem`, got {problem!r}.")
    if not _has(problem.parameters(), parameter):
        names = [one.name() for one in problem.parameters()]
        raise InvalidInputError(
            f"`parameter` must be a `cp.Parameter` of the problem, which has {names}, got "
            f"{parameter!r}."
        )
    for variable in first_stage or ():
        if not _has(problem.variables(), variable):
            raise InvalidInputError(
                f"`first_stage` must list variables of the problem, got {variable!r}."
            )
    for kind, leaves in (("variables", problem.variables()), ("parameters", problem.parameters())):
        names = [leaf.name() for leaf in leaves]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"Two {kind} have one name, in {names}; name them apart.")
