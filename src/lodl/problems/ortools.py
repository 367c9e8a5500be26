"""Models written with OR-Tools: CP-SAT, the linear solver wrapper, and MathOpt.

`OrtoolsLinearProblem` takes predicted costs, `OrtoolsProblem` predictions that stand anywhere in
a model, as a demand does in a constraint.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems._function_problem import function_with_context
from lodl.problems._integer_costs import integer_costs
from lodl.problems._linear_problem import LinearProblem
from lodl.problems._ortools_models import Model, Settings, adapted, require_ortools
from lodl.problems._per_thread import PerThread
from lodl.problems._problem import Problem, check_sense

__all__ = ["OrtoolsLinearProblem", "OrtoolsProblem", "integer_costs"]


class OrtoolsLinearProblem(LinearProblem):
    """A model of OR-Tools whose costs are predicted.

    Use it where every variable that is decided has a predicted cost or gain, and the constraints
    are known. `build` makes the model without an objective, once per process, thread and context;
    each call sets new costs and solves. A label has one cost per variable, in any shape (row by
    row), and a decision has the label's shape. Decisions are worth <z, y>, computed in floats, and
    the slope is the decision.

    CP-SAT knows whole numbers only: costs are multiplied by a power of two and rounded, so that a
    decision is within 2e-12 of the best for a thousand yes-or-no variables, relative to the sum of
    all costs. `integer_costs` states the bound. Variables with a range so wide that rounding could
    matter are refused.

    Mixed-integer models are solved to optimality, by one thread, so that the same prediction gets
    the same decision. A call fails, with OR-Tools' status, if the model is infeasible, unbounded or
    invalid, or if the time limit passes before a decision is found. A decision found within the
    limit is taken, although it may not be the best one.

    Args:
        build: `build(context)`, or `build()` if it needs no context, returns a model
            (`cp_model.CpModel`, `pywraplp.Solver` or `mathopt.Model`) and its variables with
            predicted costs, as a list or an array of any shape.
        sense: "min" or "max".
        solver: Name of MathOpt's solver; the other libraries' models need none.
        time_limit: Seconds that a call may take; None for no limit.
        options: Parameters of CP-SAT, e.g. `{"num_workers": 8}`, or of MathOpt.

    Example:
        >>> from ortools.sat.python import cp_model
        >>> def build(context):
        ...     model = cp_model.CpModel()
        ...     take = [model.new_bool_var(name) for name in ("tent", "stove", "rope")]
        ...     model.add(3 * take[0] + 4 * take[1] + 5 * take[2] <= context["limit"])
        ...     return model, take
        >>> problem = OrtoolsLinearProblem(build, "max")
        >>> problem.solve(np.array([1.0, 3.0, 3.5]), {"limit": 8})
        array([1., 0., 1.])
    """

    def __init__(
        self,
        build: Callable[..., tuple[Any, Any]],
        sense: Sense,
        *,
        solver: str = "HIGHS",
        time_limit: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_sense(sense, "OrtoolsLinearProblem")
        self.sense = sense
        settings = _settings(solver, time_limit, options)
        builder = function_with_context("build", build, 0)
        self._models = PerThread(partial(_LastModel, builder, settings))

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        model, variables = self._models.get().of(context)
        if y_hat.size != variables.size:
            raise ShapeError(
                f"A prediction must have a cost for each of {variables.size} variables, got shape "
                f"{y_hat.shape}."
            )
        every = variables.ravel().tolist()
        model.set_costs(every, y_hat.ravel(), self.sense)
        model.optimise()
        return np.array(model.read(every)).reshape(y_hat.shape)


class OrtoolsProblem(Problem):
    """A model of OR-Tools that is built anew for each prediction.

    Use it where the prediction stands in constraints, or not in every term of the objective.
    `build` makes the whole model, objective included, as if a prediction were true, and returns it
    with the variables that are decided: a list or array of them, or a dict of such. A decision is
    an array of their values, or a dict of arrays.

    What a decision is worth under the truth, `objective` says. Without it, the model is built for
    the truth, the decision is fixed in it, and the rest is solved: variables that `build` does not
    return are the recourse, what is bought, sold or left undone once the truth is known.

    In CP-SAT, write the objective in floats: CP-SAT scales it to whole numbers itself, within a
    millionth of the best, and its value is computed in floats. Or scale it with `integer_costs`
    and give `objective`. Round a predicted right-hand side in `build`.

    Models are solved as by `OrtoolsLinearProblem`, and a call fails in the same cases. Without
    `slope` the slope comes from differences: two evaluations of the objective per number in a
    label and distinct decision, each of them a solve if there is no `objective`.

    Args:
        build: `build(y_hat, context)`, or `build(y_hat)`, returns a model and the variables that
            are decided.
        sense: "min" or "max", as in the model.
        objective: `objective(z, y, context) -> float`, or without `context`; None for recourse.
        slope: `slope(z, y, context)`, the derivative of the objective by the label; None for
            differences.
        solver: Name of MathOpt's solver; the other libraries' models need none.
        time_limit: Seconds that a call may take; None for no limit.
        options: Parameters of CP-SAT or of MathOpt.

    Example:
        >>> from ortools.linear_solver import pywraplp
        >>> def build(demand):  # order at 1 a piece, buy what is missing at 3
        ...     model = pywraplp.Solver.CreateSolver("GLOP")
        ...     order, missing = (model.NumVar(0, 100, name) for name in ("order", "missing"))
        ...     model.Add(order + missing >= demand[0])
        ...     model.Minimize(order + 3 * missing)
        ...     return model, [order]
        >>> problem = OrtoolsProblem(build, "min")
        >>> order = problem.solve(np.array([5.0]))
        >>> problem.objective(order, np.array([7.0]))
        11.0
    """

    def __init__(
        self,
        build: Callable[..., tuple[Any, Any]],
        sense: Sense,
        *,
        objective: Callable[..., float] | None = None,
        slope: Callable[..., Array] | None = None,
        solver: str = "HIGHS",
        time_limit: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_sense(sense, "OrtoolsProblem")
        self.sense = sense
        self._settings = _settings(solver, time_limit, options)
        self._build = function_with_context("build", build, 1)
        self._objective = objective and function_with_context("objective", objective, 2)
        self._slope = slope and function_with_context("slope", slope, 2)

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        model, groups = self._built(y_hat, context)
        model.optimise()
        found = {
            name: np.array(model.read(variables.ravel().tolist())).reshape(variables.shape)
            for name, variables in groups.items()
        }
        return found.get(None, found)

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        if self._objective is not None:
            value: float = self._objective(z, y, context=context)
            return value
        model, groups = self._built(y, context)
        for name, variables in groups.items():
            values = np.ravel(z if name is None else z[name]).tolist()
            model.fix(variables.ravel().tolist(), values)
        try:
            model.optimise()
        except ProblemError as error:
            raise ProblemError(
                f"Under the truth, with the decision fixed: {error} Give the model recourse: "
                "variables that `build` does not return, which make up for a wrong decision at a "
                "price. Or give `objective`."
            ) from error
        return model.worth()

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array | None:
        return None if self._slope is None else self._slope(z, y, context=context)

    def _built(self, y: Array, context: InstanceContext) -> tuple[Model, dict[Any, Any]]:
        """Return the model for a prediction, and its groups of variables by name."""
        model, variables = _pair(self._build(y, context=context), self._settings)
        if model.sense not in (None, self.sense):
            raise ProblemError(
                f'`sense` is "{self.sense}", but the model that `build` returns has "{model.sense}"'
                " as its own."
            )
        groups = variables if isinstance(variables, Mapping) else {None: variables}
        return model, {name: np.array(group, dtype=object) for name, group in groups.items()}


class _LastModel:
    """The model of one thread, which is kept until another context comes."""

    def __init__(self, build: Callable[..., Any], settings: Settings) -> None:
        self._build, self._settings = build, settings
        self._key: str | None = None
        self._built: tuple[Model, Any] | None = None

    def of(self, context: InstanceContext) -> tuple[Model, Any]:
        """Return the model of an instance and its variables, as an array."""
        try:
            key = digest(context)
        except InvalidInputError:  # of a content that cannot be compared
            key = None
        if self._built is None or key is None or key != self._key:
            model, variables = _pair(self._build(context=context), self._settings)
            if model.sense is not None:
                raise InvalidInputError(
                    "The model that `build` returns must have no objective of its own: all costs "
                    "are predicted. Where some are known, use `OrtoolsProblem`."
                )
            self._key, self._built = key, (model, np.array(variables, dtype=object))
        return self._built


def _pair(built: Any, settings: Settings) -> tuple[Model, Any]:
    if not (isinstance(built, tuple) and len(built) == 2):
        raise InvalidInputError(
            f"`build` must return a model and the variables that are decided, got {built!r}."
        )
    return adapted(built[0], settings), built[1]


def _settings(solver: str, time_limit: float | None, options: Mapping[str, Any] | None) -> Settings:
    require_ortools("sat.python.cp_model")  # absent, or in a clash: said now, not in a worker
    return Settings(solver, time_limit, dict(options or {}))
