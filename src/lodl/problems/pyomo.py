"""Models written in Pyomo."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any

import numpy as np

from lodl._arrays import require
from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems._model_problem import Model, ModelProblem, check_replacements, check_size

__all__ = ["PyomoProblem"]

_SLACK = 1e-5  # allowed violation of a constraint, relative to the largest prediction or to 1
_NO_DECISION = ("infeasible", "unbounded", "infeasibleOrUnbounded", "error", "invalidProblem")
PYOMO_LOCK = threading.Lock()  # Pyomo redirects the process's output; two solves at once hang


class PyomoProblem(ModelProblem):
    """A Pyomo model with a mutable `pyo.Param` that is predicted.

    A label has one number per index of the parameter, in the order of its index set and in any
    shape. A decision is a dict from the names of variables to arrays of values, and its objective
    is the model's active one, at the true value of the parameter with the variables fixed.
    Predictions are clipped to the parameter's domain.

    If the parameter occurs in constraints, the truth may forbid a decision. Then list the variables
    that are decided first in `first_stage`: the others are found by a second solve under the truth.

    A copy of the model is built once per process and thread. A persistent solver such as
    `appsi_highs` continues from its last solution, so of several best decisions it may return
    another one next time. Threads of one process take turns: use processes (`n_jobs`).

    Args:
        model: A `pyo.ConcreteModel`, or a function without arguments that makes one.
        parameter: Name of its `pyo.Param(..., mutable=True)` that is predicted. The context of an
            instance is a dict from names of other mutable parameters to the values that replace the
            model's: a number, numbers in the order of the index set, or a dict by index.
        first_stage: Names of the variables that are decided on the prediction. Defaults to all.
        solver: Name of the solver, as for `pyo.SolverFactory`.
        options: Options of the solver, e.g. `{"time_limit": 10.0, "mip_rel_gap": 0.0}` for HiGHS.

    Example:
        >>> import pyomo.environ as pyo
        >>> model = pyo.ConcreteModel()
        >>> model.gear = pyo.Set(initialize=["tent", "stove", "rope"])
        >>> model.value = pyo.Param(model.gear, mutable=True, initialize=0.0)
        >>> model.limit = pyo.Param(mutable=True, initialize=2.0)
        >>> model.take = pyo.Var(model.gear, within=pyo.Binary)
        >>> model.weight = pyo.Constraint(expr=pyo.summation(model.take) <= model.limit)
        >>> gain = pyo.summation(model.value, model.take)
        >>> model.gain = pyo.Objective(expr=gain, sense=pyo.maximize)
        >>> problem = PyomoProblem(model, "value")
        >>> z = problem.solve(np.array([3.0, 1.0, 2.0]), {"limit": 1})
        >>> z["take"]
        array([1., 0., 0.])
        >>> problem.objective(z, np.array([5.0, 7.0, 7.0]), {"limit": 1})
        5.0
    """

    def __init__(
        self,
        model: Any | Callable[[], Any],
        parameter: str,
        *,
        first_stage: Sequence[str] | None = None,
        solver: str = "appsi_highs",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        import cloudpickle  # slow to import

        pyo = require("pyomo.environ", "pyomo")
        self._made_of = str(getattr(model, "name", "") or getattr(model, "__name__", ""))
        if isinstance(model, pyo.Block):
            model = partial(pickle.loads, cloudpickle.dumps(model))
        elif not callable(model):
            kinds = "a `pyo.ConcreteModel` or a function that makes one"
            raise InvalidInputError(f"`model` must be {kinds}, got {model!r}.")
        if isinstance(first_stage, str):
            raise InvalidInputError(f"`first_stage` must be a list of names, got {first_stage!r}.")
        build = partial(_Model, model, parameter, first_stage, solver, dict(options or {}))
        super().__init__("min", build, first_stage=first_stage)
        first: Any = self._models.get()  # errors of the model are raised now
        self.sense = first.sense


class _Model(Model):
    """A Pyomo model and its solver, with the first stage free or fixed."""

    def __init__(
        self,
        make: Callable[[], Any],
        parameter: str,
        first_stage: Sequence[str] | None,
        solver: str,
        options: Mapping[str, Any],
        *,
        is_fixed: bool = False,
    ) -> None:
        pyo = require("pyomo.environ", "pyomo")
        self._model, self.has_recourse = make(), is_fixed
        self._solver = pyo.SolverFactory(solver)
        self._solver.options.update(options)
        if not self._solver.available(exception_flag=False):
            raise InvalidInputError(f"Pyomo has no solver {solver!r} that is installed.")
        self._parameter = self._find(pyo.Param, parameter, "parameter")
        self._predicted = _Entries(self._parameter)
        for name in first_stage or ():
            self._find(pyo.Var, name, "first_stage")
        variables = self._model.component_objects(pyo.Var, active=True)
        decided = [v for v in variables if first_stage is None or v.name in first_stage]
        self._decided = {variable.name: _Entries(variable) for variable in decided}
        objectives = list(self._model.component_data_objects(pyo.Objective, active=True))
        if len(objectives) != 1:
            names = [objective.name for objective in objectives]
            raise InvalidInputError(f"`model` must have one active objective, got {names}.")
        self._objective = objectives[0]
        self.sense: Any = "min" if self._objective.sense == pyo.minimize else "max"
        parameters = self._model.component_objects(pyo.Param, active=True)
        self._others = {p.name: p for p in parameters if p.mutable and p is not self._parameter}
        self._replaced: list[tuple[_Entries, Array]] = []  # by the last context
        self._constraints, self._bounded = _occurrences(pyo, self._model, self._parameter)

    def set(self, y: Array, context: InstanceContext) -> None:
        for entries, value in self._replaced:
            entries.write(value)
        self._replaced = []
        replacements = check_replacements(context, self._others, "mutable parameters")
        for name, value in replacements.items():
            entries = _Entries(self._others[name])
            self._replaced.append((entries, entries.read()))
            entries.write(value)
        numbers = f"numbers, one per index of {self._parameter.name!r}"
        self._predicted.write(check_size(y, len(self._predicted), numbers))

    def optimise(self) -> None:
        with PYOMO_LOCK:
            results = self._solver.solve(self._model, load_solutions=False)
        forget_interrupts(self._solver)
        condition = str(results.solver.termination_condition)
        if not len(results.solution) or condition in _NO_DECISION:
            raise ProblemError(f"Pyomo found no decision: the solver ended with '{condition}'.")
        if hasattr(self._solver, "load_vars"):
            self._solver.load_vars()
        else:
            self._model.solutions.load_from(results)

    def read(self) -> Decision:
        return {name: entries.read() for name, entries in self._decided.items()}

    def fix(self, z: Decision) -> None:
        for name, entries in self._decided.items():
            entries.place(z[name], fixed=self.has_recourse)

    def check_fixed(self) -> None:
        if not self._constraints and not self._bounded:
            return
        slack = _SLACK * max(1.0, *np.abs(self._predicted.read()))
        room = [min(row.lslack(), row.uslack()) for row in self._constraints]
        room += [v.value - v.lb for v in self._bounded if v.lb is not None]
        room += [v.ub - v.value for v in self._bounded if v.ub is not None]
        if min(room) < -slack:
            raise ProblemError(f"it violates a constraint with {self._parameter.name!r}.")

    def value(self) -> float:
        return float(require("pyomo.environ", "pyomo").value(self._objective))

    def project(self, y_hats: Array) -> Array:
        lower, upper = self._parameter.domain.bounds()
        return y_hats if lower is None and upper is None else np.clip(y_hats, lower, upper)

    def _find(self, kind: Any, name: Any, argument: str) -> Any:
        """Return a component of the model by its name, if it is of the right kind."""
        component = self._model.find_component(name) if isinstance(name, str) else None
        if component is None or component.ctype is not kind:
            names = [known.name for known in self._model.component_objects(kind, active=True)]
            wanted = f"a {kind.__name__} of the model, one of {names}"
            raise InvalidInputError(f"`{argument}` must name {wanted}, got {name!r}.")
        if kind.__name__ == "Param" and not component.mutable:
            raise InvalidInputError(f"The Param {name!r} must be made with `mutable=True`.")
        return component


def _occurrences(pyo: Any, model: Any, parameter: Any) -> tuple[list[Any], list[Any]]:
    """Return the constraints, and the variables with bounds, in which a parameter occurs."""
    identify = require("pyomo.core.expr.visitor", "pyomo").identify_mutable_parameters

    def has(expression: Any) -> bool:
        parameters: Iterable[Any] = () if expression is None else identify(expression)
        return any(data.parent_component() is parameter for data in parameters)

    constraints = model.component_data_objects(pyo.Constraint, active=True)
    variables = model.component_data_objects(pyo.Var, active=True)
    bounded = [variable for variable in variables if has(variable.lower) or has(variable.upper)]
    return [constraint for constraint in constraints if has(constraint.expr)], bounded


class _Entries:
    """The entries of a parameter or variable, in the order of its index set."""

    def __init__(self, component: Any) -> None:
        self._name: str = component.name
        self._data = {index: component[index] for index in component.index_set()}
        data = self._data.values()
        self._is_whole = [hasattr(d, "is_continuous") and not d.is_continuous() for d in data]

    def __len__(self) -> int:
        return len(self._data)

    def read(self) -> Array:
        """Return the values, NaN for none; whole numbers are rounded."""
        values = [data(exception=False) for data in self._data.values()]
        array = np.array([v if isinstance(v, int | float) else np.nan for v in values], np.float64)
        return np.where(self._is_whole, np.rint(array), array)

    def write(self, value: Any) -> None:
        """Set a parameter to a number, to numbers in order, or by index. NaN clears a value."""
        if not isinstance(value, Mapping):
            numbers = np.ravel(np.asarray(value, dtype=np.float64)).tolist()
            if len(numbers) != len(self):
                sizes = f"{len(self)} numbers, got {len(numbers)}"
                raise InvalidInputError(f"{self._name!r} takes {sizes}.")
            value = dict(zip(self._data, numbers, strict=True))
        for index, number in value.items():
            if index not in self._data:
                raise InvalidInputError(f"{self._name!r} has no index {index!r}.")
            if isnan(number):
                self._data[index].clear()
            else:
                self._data[index].set_value(number, index)

    def place(self, values: Array, *, fixed: bool) -> None:
        """Set a variable, unchecked, as a solver's zero may be -1e-9."""
        for data, value in zip(self._data.values(), values.tolist(), strict=True):
            data.set_value(None if isnan(value) else value, skip_validation=True)
            data.fixed = data.fixed or fixed


def forget_interrupts(solver: Any) -> None:
    """Remove the handler of Ctrl-C that Pyomo adds to HiGHS before every solve.

    HiGHS calls all of them in every iteration (ERGO-Code/HiGHS#3251), and calls get slower.
    """
    highs: Any = getattr(solver, "_solver_model", None)
    if getattr(highs, "HandleKeyboardInterrupt", False):
        highs.HandleKeyboardInterrupt = False
