"""Models of OR-Tools' three libraries, asked in one set of words."""

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from lodl._arrays import require
from lodl._typing import Array, Sense
from lodl.errors import InvalidInputError, MissingExtraError, ProblemError
from lodl.problems._integer_costs import integer_costs


@dataclass(frozen=True)
class Settings:
    """How models are solved.

    Attributes:
        solver: Name of MathOpt's solver.
        time_limit: Seconds that a solve may take; None for no limit.
        options: Parameters of CP-SAT or MathOpt.
    """

    solver: str = "HIGHS"
    time_limit: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class Model(ABC):
    """A model that a user built."""

    def __init__(self, model: Any, settings: Settings) -> None:
        self._model, self._settings = model, settings

    @property
    @abstractmethod
    def sense(self) -> Sense | None:
        """The sense of the model's own objective; None if it has none."""

    @abstractmethod
    def set_costs(self, variables: Sequence[Any], costs: Array, sense: Sense) -> None:
        """Make the sum of costs times variables the objective."""

    @abstractmethod
    def fix(self, variables: Sequence[Any], values: Sequence[float]) -> None:
        """Fix variables at values."""

    @abstractmethod
    def optimise(self) -> None:
        """Solve the model; raise with the solver's own status if there is no decision."""

    @abstractmethod
    def read(self, variables: Sequence[Any]) -> list[float]:
        """Return the values of variables, whole numbers where they must be."""

    @abstractmethod
    def worth(self) -> float:
        """Return the value of the model's own objective."""


def adapted(model: Any, settings: Settings) -> Model:
    """Return a model of one of the libraries behind the common words."""
    for kind in type(model).__mro__:
        found = _LIBRARIES.get(f"{kind.__module__}.{kind.__qualname__}")
        if found is not None:
            return found(model, settings)
    raise InvalidInputError(
        "`build` must return a `cp_model.CpModel`, a `pywraplp.Solver` or a `mathopt.Model`, and "
        f"the variables that are decided, got a {type(model).__name__} for the model."
    )


def require_ortools(module: str) -> ModuleType:
    """Import a module of OR-Tools, or say what keeps it from loading."""
    try:
        return require(f"ortools.{module}", "ortools")
    except MissingExtraError as error:
        if "undefined symbol" in str(error.__cause__):
            raise MissingExtraError(
                "OR-Tools cannot be loaded beside highspy 1.15 or later, whose library of HiGHS "
                "has the name of its own. Install an earlier one: pip install 'highspy<1.15'"
            ) from error
        raise


class CpSatModel(Model):
    """A `cp_model.CpModel`."""

    _largest: Array | None = None

    @property
    def sense(self) -> Sense | None:
        if not self._model.has_objective():
            return None
        proto = self._model.proto  # which makes an objective that is absent when it is looked at
        is_max = (
            proto.objective.scaling_factor < 0
            if proto.has_objective()
            else proto.floating_point_objective.maximize
        )
        return "max" if is_max else "min"

    def set_costs(self, variables: Sequence[Any], costs: Array, sense: Sense) -> None:
        cp = require_ortools("sat.python.cp_model")
        if self._largest is None:  # the variables of a model stay the same
            self._largest = np.array([max(map(abs, one.proto.domain)) for one in variables])
        integers, _ = integer_costs(costs, self._largest)
        total = cp.LinearExpr.weighted_sum(variables, integers.tolist())
        self._model.clear_objective()
        self._model.minimize(total) if sense == "min" else self._model.maximize(total)

    def fix(self, variables: Sequence[Any], values: Sequence[float]) -> None:
        for variable, value in zip(variables, values, strict=True):
            self._model.add(variable == round(value))

    def optimise(self) -> None:
        cp = require_ortools("sat.python.cp_model")
        self._solver = cp.CpSolver()
        parameters = self._solver.parameters
        parameters.num_workers = 1  # several workers may return another of several best decisions
        if self._settings.time_limit is not None:
            parameters.max_time_in_seconds = self._settings.time_limit
        for name, value in self._settings.options.items():
            setattr(parameters, name, value)
        status = self._solver.solve(self._model)
        if status not in (cp.OPTIMAL, cp.FEASIBLE):
            raise _nothing_found("CP-SAT", self._solver.status_name(status), self._model.validate())

    def read(self, variables: Sequence[Any]) -> list[float]:
        return [float(self._solver.value(variable)) for variable in variables]

    def worth(self) -> float:
        return float(self._solver.objective_value)


class LinearSolverModel(Model):
    """A `pywraplp.Solver`, which is a model and its solver in one."""

    @property
    def sense(self) -> Sense | None:
        goal = self._model.Objective()
        used = goal.offset() or any(goal.GetCoefficient(v) for v in self._model.variables())
        return ("max" if goal.maximization() else "min") if used else None

    def set_costs(self, variables: Sequence[Any], costs: Array, sense: Sense) -> None:
        goal = self._model.Objective()
        goal.SetOptimizationDirection(sense == "max")
        for variable, cost in zip(variables, costs.tolist(), strict=True):
            goal.SetCoefficient(variable, cost)

    def fix(self, variables: Sequence[Any], values: Sequence[float]) -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.SetBounds(value, value)

    def optimise(self) -> None:
        lp = require_ortools("linear_solver.pywraplp")
        if self._settings.options:
            raise InvalidInputError(
                "A `pywraplp.Solver` takes no `options`: set its parameters in `build`, with "
                "`SetSolverSpecificParametersAsString`."
            )
        if self._settings.time_limit is not None:
            self._model.SetTimeLimit(max(1, round(1e3 * self._settings.time_limit)))
        kinds = lp.MPSolverParameters
        parameters = kinds()
        parameters.SetDoubleParam(kinds.RELATIVE_MIP_GAP, 0.0)  # else 1e-4, which shows as regret
        parameters.SetIntegerParam(kinds.INCREMENTALITY, kinds.INCREMENTALITY_OFF)
        status = self._model.Solve(parameters)
        if status not in (lp.Solver.OPTIMAL, lp.Solver.FEASIBLE):
            names = ("INFEASIBLE", "UNBOUNDED", "ABNORMAL", "MODEL_INVALID", "NOT_SOLVED")
            found = {getattr(lp.Solver, name): name for name in names}
            raise _nothing_found("OR-Tools", found.get(status, str(status)))

    def read(self, variables: Sequence[Any]) -> list[float]:
        return [_whole(v.solution_value(), is_whole=v.integer()) for v in variables]

    def worth(self) -> float:
        return float(self._model.Objective().Value())


class MathOptModel(Model):
    """A `mathopt.Model`."""

    @property
    def sense(self) -> Sense | None:
        goal = self._model.objective
        used = goal.offset or any(goal.linear_terms()) or any(goal.quadratic_terms())
        return ("max" if goal.is_maximize else "min") if used else None

    def set_costs(self, variables: Sequence[Any], costs: Array, sense: Sense) -> None:
        goal = self._model.objective
        goal.clear()
        goal.is_maximize = sense == "max"
        for variable, cost in zip(variables, costs.tolist(), strict=True):
            goal.set_linear_coefficient(variable, cost)

    def fix(self, variables: Sequence[Any], values: Sequence[float]) -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.lower_bound = variable.upper_bound = value

    def optimise(self) -> None:
        mathopt = require_ortools("math_opt.python.mathopt")
        given: dict[str, Any] = {"relative_gap_tolerance": 0.0}
        if self._settings.solver == "CP_SAT":
            given["threads"] = 1  # as above; other solvers use one, or refuse to be told
        if self._settings.time_limit is not None:
            given["time_limit"] = datetime.timedelta(seconds=self._settings.time_limit)
        parameters = mathopt.SolveParameters(**(given | dict(self._settings.options)))
        try:
            solver = mathopt.SolverType[self._settings.solver]
        except KeyError as error:
            names = [one.name for one in mathopt.SolverType]
            raise InvalidInputError(
                f"`solver` must be one of {names}, got {self._settings.solver!r}."
            ) from error
        try:
            self._found = mathopt.solve(self._model, solver, params=parameters)
        except Exception as error:  # OR-Tools 9.15 fails to translate what its library says
            said = error.__context__ or error
            raise ProblemError(f"MathOpt found no decision: {said}") from error
        end = self._found.termination
        if end.reason.name not in ("OPTIMAL", "FEASIBLE"):
            raise _nothing_found("MathOpt", end.reason.name, end.detail)

    def read(self, variables: Sequence[Any]) -> list[float]:
        values = self._found.variable_values(variables)
        pairs = zip(variables, values, strict=True)
        return [_whole(value, is_whole=variable.integer) for variable, value in pairs]

    def worth(self) -> float:
        return float(self._found.objective_value())


_LIBRARIES: dict[str, type[Model]] = {
    "ortools.sat.python.cp_model.CpModel": CpSatModel,
    "ortools.linear_solver.pywraplp.Solver": LinearSolverModel,
    "ortools.math_opt.python.model.Model": MathOptModel,
}


def _nothing_found(library: str, status: str, detail: str = "") -> ProblemError:
    more = f" {detail.strip()}" if detail else ""
    return ProblemError(f"{library} found no decision: its status is {status}.{more}")


def _whole(value: float, *, is_whole: bool) -> float:
    return float(round(value)) if is_whole else float(value)
