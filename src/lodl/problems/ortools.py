"""Models written with OR-Tools: CP-SAT and the linear solver wrapper (`pywraplp`).

`OrtoolsLinearProblem` takes predicted costs, `OrtoolsProblem` predictions that occur anywhere in a
model, as a demand does in a constraint.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from lodl._arrays import require
from lodl._digest import digest
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, MissingExtraError, ProblemError
from lodl.problems._functions import FunctionWithContext, function_with_context
from lodl.problems._integer_costs import integer_costs
from lodl.problems._model_problem import Model, ModelProblem, check_size
from lodl.problems._problem import LinearProblem

__all__ = ["OrtoolsLinearProblem", "OrtoolsProblem", "integer_costs"]


class OrtoolsLinearProblem(LinearProblem, ModelProblem):
    """An OR-Tools model whose costs are predicted.

    Use it if every variable that is decided has a predicted cost or gain, and the constraints are
    known. `build` makes the model without an objective, once per process, thread and context; each
    call sets new costs and solves. A label has one cost per variable, in any shape (row by row),
    and a decision has the label's shape. The objective of a decision is <z, y>, computed in floats,
    and the slope is the decision.

    CP-SAT takes whole numbers only: costs are multiplied by a power of two and rounded, so that a
    decision is within 2e-12 of the best for a thousand yes-or-no variables, relative to the sum of
    all costs. `integer_costs` states the bound. Variables with a range so wide that rounding could
    matter are refused.

    Mixed-integer models are solved to optimality, by one thread, so that the same prediction gets
    the same decision. A call fails, with OR-Tools' status, if the model is infeasible, unbounded or
    invalid, or if the time limit passes before a decision is found. A decision found within the
    limit is taken, although it may not be the best one.

    Args:
        build: `build(context)`, or `build()` if it needs no context, returns a model
            (`cp_model.CpModel` or `pywraplp.Solver`) and its variables with predicted costs, as a
            list or an array of any shape.
        sense: "min" or "max".
        time_limit: Seconds that a call may take. Unlimited by default.
        options: Parameters of CP-SAT, e.g. `{"num_workers": 8}`.

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
        time_limit: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        wrap = _wrapper(time_limit, options)
        builder = function_with_context("build", build, 0)
        ModelProblem.__init__(self, sense, partial(_ModelWithCosts, builder, wrap, sense))

    solve = ModelProblem.solve


class OrtoolsProblem(ModelProblem):
    """An OR-Tools model that is built anew for each prediction.

    Use it if the prediction occurs in constraints, or not in every term of the objective. `build`
    makes the whole model, objective included, as if a prediction were true, and returns it with the
    variables that are decided: a list or array of them, or a dict of these. A decision is an array
    of their values, or a dict of arrays.

    The objective of a decision under the truth is computed by the function `objective`. Without it,
    the model is built for the truth, the decision is fixed in it, and the rest is solved: variables
    that `build` does not return are the recourse, what is bought, sold or left undone once the
    truth is known.

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
        objective: `objective(z, y, context) -> float`, or without `context`. By default the model
            is solved with the decision fixed.
        slope: `slope(z, y, context)`, the derivative of the objective with respect to the label.
            Defaults to differences.
        time_limit: Seconds that a call may take. Unlimited by default.
        options: Parameters of CP-SAT.

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
        time_limit: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        wrap = _wrapper(time_limit, options)
        builder = function_with_context("build", build, 1)
        super().__init__(sense, partial(_ModelBuiltAnew, builder, wrap, sense))
        self._objective = objective and function_with_context("objective", objective, 2)
        self._slope = slope and function_with_context("slope", slope, 2)

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        if self._objective is None:
            return super().objective(z, y, context)
        value: float = self._objective(z, y, context=context)
        return value

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array | None:
        return None if self._slope is None else self._slope(z, y, context=context)


class _Library(ABC):
    """A user's model, and the operations that the libraries have in common.

    Args:
        model: The model.
        time_limit: Seconds that a solve may take.
        options: Parameters of the solver.
    """

    def __init__(self, model: Any, time_limit: float | None, options: Mapping[str, Any]) -> None:
        self._model, self._time_limit, self._options = model, time_limit, options

    @property
    @abstractmethod
    def sense(self) -> Sense | None:
        """The sense of the model's objective, or None."""

    @abstractmethod
    def set_costs(self, variables: Sequence[Any], costs: Array, sense: Sense) -> None:
        """Make the sum of costs times variables the objective."""

    @abstractmethod
    def fix(self, variables: Sequence[Any], values: Sequence[float]) -> None:
        """Fix variables at values."""

    @abstractmethod
    def optimise(self) -> None:
        """Solve the model. Raise with the solver's status if there is no decision."""

    @abstractmethod
    def read(self, variables: Sequence[Any]) -> list[float]:
        """Return the values of variables, rounded if they are whole numbers."""

    @abstractmethod
    def value(self) -> float:
        """Return the value of the model's objective."""


class _CpSat(_Library):
    """A `cp_model.CpModel`."""

    _largest: Array | None = None

    @property
    def sense(self) -> Sense | None:
        if not self._model.has_objective():
            return None
        proto = self._model.proto  # reading an absent objective would create it
        is_max = (
            proto.objective.scaling_factor < 0
            if proto.has_objective()
            else proto.floating_point_objective.maximize
        )
        return "max" if is_max else "min"

    def set_costs(self, variables: Sequence[Any], costs: Array, sense: Sense) -> None:
        cp = _require("sat.python.cp_model")
        if self._largest is None:  # the variables of a model stay the same
            self._largest = np.array([max(map(abs, v.proto.domain)) for v in variables])
        integers, _ = integer_costs(costs, self._largest)
        total = cp.LinearExpr.weighted_sum(variables, integers.tolist())
        self._model.clear_objective()
        self._model.minimize(total) if sense == "min" else self._model.maximize(total)

    def fix(self, variables: Sequence[Any], values: Sequence[float]) -> None:
        for variable, value in zip(variables, values, strict=True):
            self._model.add(variable == round(value))

    def optimise(self) -> None:
        cp = _require("sat.python.cp_model")
        self._solver = cp.CpSolver()
        parameters = self._solver.parameters
        parameters.num_workers = 1  # several workers may return another of several best decisions
        if self._time_limit is not None:
            parameters.max_time_in_seconds = self._time_limit
        for name, value in self._options.items():
            setattr(parameters, name, value)
        status = self._solver.solve(self._model)
        if status not in (cp.OPTIMAL, cp.FEASIBLE):
            detail = f" {self._model.validate().strip()}".rstrip()
            name = self._solver.status_name(status)
            raise ProblemError(f"CP-SAT found no decision: its status is {name}.{detail}")

    def read(self, variables: Sequence[Any]) -> list[float]:
        return [float(self._solver.value(variable)) for variable in variables]

    def value(self) -> float:
        return float(self._solver.objective_value)


class _LinearSolver(_Library):
    """A `pywraplp.Solver`, which is a model and its solver in one."""

    @property
    def sense(self) -> Sense | None:
        goal = self._model.Objective()
        is_set = goal.offset() or any(goal.GetCoefficient(v) for v in self._model.variables())
        return ("max" if goal.maximization() else "min") if is_set else None

    def set_costs(self, variables: Sequence[Any], costs: Array, sense: Sense) -> None:
        goal = self._model.Objective()
        goal.SetOptimizationDirection(sense == "max")
        for variable, cost in zip(variables, costs.tolist(), strict=True):
            goal.SetCoefficient(variable, cost)

    def fix(self, variables: Sequence[Any], values: Sequence[float]) -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.SetBounds(value, value)

    def optimise(self) -> None:
        lp = _require("linear_solver.pywraplp")
        if self._options:
            raise InvalidInputError(
                "A `pywraplp.Solver` takes no `options`: set its parameters in `build`, with "
                "`SetSolverSpecificParametersAsString`."
            )
        if self._time_limit is not None:
            self._model.SetTimeLimit(max(1, round(1e3 * self._time_limit)))
        kinds = lp.MPSolverParameters
        parameters = kinds()
        parameters.SetDoubleParam(kinds.RELATIVE_MIP_GAP, 0.0)  # else 1e-4, which shows as regret
        parameters.SetIntegerParam(kinds.INCREMENTALITY, kinds.INCREMENTALITY_OFF)
        status = self._model.Solve(parameters)
        if status not in (lp.Solver.OPTIMAL, lp.Solver.FEASIBLE):
            names = ("INFEASIBLE", "UNBOUNDED", "ABNORMAL", "MODEL_INVALID", "NOT_SOLVED")
            name = {getattr(lp.Solver, name): name for name in names}.get(status, str(status))
            raise ProblemError(f"OR-Tools found no decision: its status is {name}.")

    def read(self, variables: Sequence[Any]) -> list[float]:
        values = ((v.solution_value(), v.integer()) for v in variables)
        return [float(round(value)) if is_whole else float(value) for value, is_whole in values]

    def value(self) -> float:
        return float(self._model.Objective().Value())


_LIBRARIES: dict[str, type[_Library]] = {
    "ortools.sat.python.cp_model.CpModel": _CpSat,
    "ortools.linear_solver.pywraplp.Solver": _LinearSolver,
}

_Wrap = Callable[[Any], tuple[_Library, Any]]


class _ModelWithCosts(Model):
    """A model that is kept until the context changes; its costs are set for each call."""

    def __init__(self, build: FunctionWithContext, wrap: _Wrap, sense: Sense) -> None:
        self._build, self._wrap, self._sense = build, wrap, sense
        self._key: str | None = None

    def set(self, y: Array, context: InstanceContext) -> None:
        try:
            key = digest(context)
        except InvalidInputError:  # the context cannot be compared
            key = None
        if key is None or key != self._key:
            self._key = None
            self._library, variables = self._wrap(self._build(context=context))
            if self._library.sense is not None:
                raise InvalidInputError(
                    "The model that `build` returns must have no objective: all costs are "
                    "predicted. If some are known, use `OrtoolsProblem`."
                )
            self._variables = np.array(variables, dtype=object).ravel().tolist()
            self._key = key
        self._shape = np.shape(y)
        costs = check_size(y, len(self._variables), "costs, one per variable")
        self._library.set_costs(self._variables, costs, self._sense)

    def optimise(self) -> None:
        self._library.optimise()

    def read(self) -> Decision:
        return np.array(self._library.read(self._variables)).reshape(self._shape)


class _ModelBuiltAnew(Model):
    """A model that is built for each call."""

    def __init__(self, build: FunctionWithContext, wrap: _Wrap, sense: Sense) -> None:
        self._build, self._wrap, self._sense = build, wrap, sense

    def set(self, y: Array, context: InstanceContext) -> None:
        self._library, variables = self._wrap(self._build(y, context=context))
        if self._library.sense not in (None, self._sense):
            raise InvalidInputError(
                f'`sense` is "{self._sense}", but the sense of the model that `build` returns is '
                f'"{self._library.sense}".'
            )
        groups = variables if isinstance(variables, Mapping) else {None: variables}
        self._groups = {name: np.array(group, dtype=object) for name, group in groups.items()}

    def optimise(self) -> None:
        self._library.optimise()

    def read(self) -> Decision:
        values = {
            name: np.array(self._library.read(group.ravel().tolist())).reshape(group.shape)
            for name, group in self._groups.items()
        }
        return values.get(None, values)

    def fix(self, z: Decision) -> None:
        for name, group in self._groups.items():
            values = np.ravel(z if name is None else z[name]).tolist()
            self._library.fix(group.ravel().tolist(), values)

    def value(self) -> float:
        return self._library.value()


def _wrapper(time_limit: float | None, options: Mapping[str, Any] | None) -> _Wrap:
    _require("sat.python.cp_model")  # if it is missing or clashes, say so before a worker does
    return partial(_wrapped, time_limit=time_limit, options=dict(options or {}))


def _wrapped(
    built: Any, *, time_limit: float | None, options: Mapping[str, Any]
) -> tuple[_Library, Any]:
    """Return the model that `build` returned, wrapped, and its variables."""
    if not (isinstance(built, tuple) and len(built) == 2):
        raise InvalidInputError(
            f"`build` must return a model and the variables that are decided, got {built!r}."
        )
    model, variables = built
    for kind in type(model).__mro__:
        library = _LIBRARIES.get(f"{kind.__module__}.{kind.__qualname__}")
        if library is not None:
            return library(model, time_limit, options), variables
    raise InvalidInputError(
        "`build` must return a `cp_model.CpModel` or a `pywraplp.Solver`, and the variables that "
        f"are decided, got a {type(model).__name__} for the model."
    )


def _require(module: str) -> ModuleType:
    """Import a module of OR-Tools, or say what keeps it from loading."""
    try:
        return require(f"ortools.{module}", "ortools")
    except MissingExtraError as error:
        if "undefined symbol" in str(error.__cause__):
            raise MissingExtraError(
                "OR-Tools cannot be loaded beside highspy 1.15 or later, whose library of HiGHS "
                "has the same name. Install an earlier one: pip install 'highspy<1.15'"
            ) from error
        raise
