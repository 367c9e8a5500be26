"""Models written in Pyomo."""

import pickle
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Any

import numpy as np

from lodl._arrays import require
from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems._per_thread import PerThread
from lodl.problems._problem import Problem
from lodl.problems._pyomo_highs import forget_interrupts

__all__ = ["PyomoProblem"]

_SLACK = 1e-5  # of the largest number predicted, or of 1: by how much a constraint may be missed
_turn = threading.Lock()
"""Held while solving: Pyomo redirects the output of the whole process, and two at once hang."""


class PyomoProblem(Problem):
    """A Pyomo model with a mutable `pyo.Param` that is predicted.

    Use it for any model that a solver of Pyomo's can solve. The sense is that of the model's active
    objective. A label has one number per index of the parameter, in the order of its index set and
    in any shape; a decision is a dict from the names of variables to arrays of their values, in the
    order of theirs. It is worth what the objective is at the true value of the parameter, with the
    variables fixed. Predictions are clipped to the domain of the parameter.

    Where the parameter stands in constraints, as a demand does, the truth may forbid a decision.
    Then name the variables that are decided first: the others are the recourse, found by a second
    solve under the truth with those of `first_stage` fixed.

    The model is built once per process and thread, and solved again with new values; a persistent
    solver such as `appsi_highs` goes on from where it was, so of several best decisions it may take
    another one next time. The model that was handed over is copied and not touched. Threads of one
    process take turns, because Pyomo is not safe for several: use processes (`n_jobs`).

    A call fails, with the termination condition that Pyomo gives, if there is no feasible decision,
    none that is best, or none within the solver's limits.

    Args:
        model: A `pyo.ConcreteModel`, or a function without arguments that makes one.
        parameter: Name of its `pyo.Param(..., mutable=True)` that is predicted. The context of an
            instance is a dict from names of other mutable parameters to their values: a number,
            numbers in the order of the index set, or a dict by index. Those it leaves out keep the
            value they have in the model.
        first_stage: Names of the variables that are decided on the prediction; None is all.
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
        is_model = isinstance(model, pyo.Block)
        if not is_model and not callable(model):
            raise InvalidInputError(
                "`model` must be a `pyo.ConcreteModel` or a function that makes one, got "
                f"{model!r}."
            )
        if isinstance(first_stage, str):
            raise InvalidInputError(f"`first_stage` must be a list of names, got {first_stage!r}.")
        make: Any = partial(pickle.loads, cloudpickle.dumps(model)) if is_model else model
        build = partial(_Model, make, parameter, first_stage, solver, dict(options or {}))
        self._models: PerThread[_Model] = PerThread(build)
        first = self._models.get()  # what is wrong with it shows now
        self.sense = "min" if first.objective.sense == pyo.minimize else "max"

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        model = self._models.get()
        model.set(y_hat, context)
        model.optimise()
        return {name: variable.read() for name, variable in model.decided.items()}

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        model = self._models.get()
        if model.second is None:
            model.set(y, context)
            return model.score(z)
        second = model.second
        second.set(y, context)
        return second.score_with_recourse(z)

    def project(self, y_hats: Array) -> Array:
        lower, upper = self._models.get().parameter.domain.bounds()
        return y_hats if lower is None and upper is None else np.clip(y_hats, lower, upper)


class _Model:
    """A model and its solver as one thread uses them, and a twin whose first stage is fixed."""

    def __init__(
        self,
        make: Callable[[], Any],
        parameter: str,
        first_stage: Sequence[str] | None,
        solver: str,
        options: Mapping[str, Any],
        *,
        is_twin: bool = False,
    ) -> None:
        pyo = require("pyomo.environ", "pyomo")
        self._model = make()
        self._solver = pyo.SolverFactory(solver)
        self._solver.options.update(options)
        if not is_twin and not self._solver.available(exception_flag=False):
            raise InvalidInputError(f"Pyomo has no solver {solver!r} that is installed.")
        self.parameter = self._find(pyo.Param, parameter, "parameter")
        self._entries = _Entries(self.parameter)
        self.decided = {
            variable.name: _Entries(variable)
            for variable in self._model.component_objects(pyo.Var, active=True)
            if first_stage is None or variable.name in first_stage
        }
        for name in first_stage or ():
            self._find(pyo.Var, name, "first_stage")
        self.objective = self._only_objective(pyo)
        self._replaced: list[tuple[_Entries, Array]] = []  # by the last context
        self._bound = None if is_twin else _Bound(pyo, self._model, self.parameter)
        self.second: _Model | None = None
        if first_stage is not None and not is_twin:
            self.second = _Model(make, parameter, first_stage, solver, options, is_twin=True)

    def set(self, y: Array, context: InstanceContext) -> None:
        """Set the predicted parameter, and the others as a context or the model has them."""
        for entries, value in self._replaced:
            entries.write(value)
        self._replaced = []
        if context is not None:
            self._replace(context)
        if y.size != len(self._entries):
            raise ShapeError(
                f"A prediction must have one number per index of {self.parameter.name!r}, "
                f"{len(self._entries)}, got shape {y.shape}."
            )
        self._entries.write(y)

    def _replace(self, context: InstanceContext) -> None:
        if not isinstance(context, Mapping):
            raise InvalidInputError(
                "The context of an instance must be a dict of parameters, got a "
                f"{type(context).__name__}."
            )
        pyo = require("pyomo.environ", "pyomo")
        for name, value in context.items():
            component = self._find(pyo.Param, name, "context")
            if component is self.parameter:
                raise InvalidInputError(f"The context has {name!r}, which is predicted.")
            entries = _Entries(component)
            self._replaced.append((entries, entries.read()))
            entries.write(value)

    def optimise(self) -> None:
        """Give the variables their best values."""
        with _turn:
            found = self._solver.solve(self._model, load_solutions=False)
        forget_interrupts(self._solver)
        if not len(found.solution) or str(found.solver.termination_condition) in _USELESS:
            raise ProblemError(
                "Pyomo found no decision: the termination condition is "
                f"'{found.solver.termination_condition}'."
            )
        if hasattr(self._solver, "load_vars"):
            self._solver.load_vars()
        else:
            self._model.solutions.load_from(found)

    def score(self, z: Decision) -> float:
        """Return the objective of a decision at the values set."""
        for name, variable in self.decided.items():
            variable.place(z[name])
        if self._bound and not self._bound.holds(_SLACK * max(1.0, *np.abs(self._entries.read()))):
            raise ProblemError(
                f"The decision breaks a constraint under the true {self.parameter.name!r}. Give "
                "the model recourse: variables that make up for a wrong decision, at a price, and "
                "`first_stage=`, the variables that are decided before."
            )
        return self._worth()

    def score_with_recourse(self, z: Decision) -> float:
        """Return the best objective with the decision fixed, at the values set."""
        for name, variable in self.decided.items():
            variable.place(z[name], fixed=True)
        try:
            self.optimise()
        except ProblemError as error:
            raise ProblemError(
                f"Under the true {self.parameter.name!r}, with `first_stage` fixed: {error} Give "
                "the model variables that make up for a wrong decision, at a price."
            ) from error
        return self._worth()

    def _worth(self) -> float:
        return float(require("pyomo.environ", "pyomo").value(self.objective))

    def _find(self, kind: Any, name: Any, where: str) -> Any:
        """Return a component of some kind by its name."""
        component = self._model.find_component(name) if isinstance(name, str) else None
        if component is None or component.ctype is not kind:
            there = [one.name for one in self._model.component_objects(kind, active=True)]
            raise InvalidInputError(
                f"`{where}` must name a {kind.__name__} of the model, one of {there}, got {name!r}."
            )
        if kind.__name__ == "Param" and not component.mutable:
            raise InvalidInputError(f"The Param {name!r} must be made with `mutable=True`.")
        return component

    def _only_objective(self, pyo: Any) -> Any:
        there = list(self._model.component_data_objects(pyo.Objective, active=True))
        if len(there) != 1:
            raise InvalidInputError(
                f"`model` must have one active objective, got {[one.name for one in there]}."
            )
        return there[0]


_USELESS = ("infeasible", "unbounded", "infeasibleOrUnbounded", "error", "invalidProblem")


class _Bound:
    """The constraints, and bounds of variables, in which a parameter stands."""

    def __init__(self, pyo: Any, model: Any, parameter: Any) -> None:
        identify = require("pyomo.core.expr.visitor", "pyomo").identify_mutable_parameters

        def has(expression: Any) -> bool:
            found: Iterable[Any] = () if expression is None else identify(expression)
            return any(one.parent_component() is parameter for one in found)

        constraints = model.component_data_objects(pyo.Constraint, active=True)
        self._constraints = [one for one in constraints if has(one.expr)]
        variables = model.component_data_objects(pyo.Var, active=True)
        self._variables = [one for one in variables if has(one.lower) or has(one.upper)]

    def __bool__(self) -> bool:
        return bool(self._constraints or self._variables)

    def holds(self, slack: float) -> bool:
        """Return whether all hold at the values set, but for some slack."""
        for one in self._constraints:
            if min(one.lslack(), one.uslack()) < -slack:
                return False
        return all(
            (one.lb is None or one.value >= one.lb - slack)
            and (one.ub is None or one.value <= one.ub + slack)
            for one in self._variables
        )


class _Entries:
    """The entries of a parameter or variable, in the order of its index set."""

    def __init__(self, component: Any) -> None:
        self.name: str = component.name
        self._component = component
        self._data = {index: component[index] for index in component.index_set()}
        self._is_whole = np.array([_is_whole(data) for data in self._data.values()], dtype=bool)

    def __len__(self) -> int:
        return len(self._data)

    def read(self) -> Array:
        """Return the values, NaN where there is none, whole where they are to be."""
        found = [data(exception=False) for data in self._data.values()]
        known = [value if isinstance(value, (int, float)) else np.nan for value in found]
        values = np.array(known, dtype=np.float64)
        return np.where(self._is_whole, np.rint(values), values)

    def write(self, value: Any) -> None:
        """Set a parameter to a number, to numbers in order, or by index; NaN is no value."""
        if not isinstance(value, Mapping):
            numbers = np.ravel(np.asarray(value, dtype=np.float64)).tolist()
            if len(numbers) != len(self):
                raise InvalidInputError(
                    f"{self.name!r} takes {len(self)} numbers, got {len(numbers)}."
                )
            value = dict(zip(self._data, numbers, strict=True))
        for index, number in value.items():
            if index not in self._data:
                raise InvalidInputError(f"{self.name!r} has no index {index!r}.")
            if isnan(number):
                self._data[index].clear()
            else:
                self._data[index].set_value(number, index)

    def place(self, values: Array, *, fixed: bool = False) -> None:
        """Set a variable to what was read, though a solver's zero may be -1e-9."""
        for data, value in zip(self._data.values(), values.tolist(), strict=True):
            data.set_value(None if isnan(value) else value, skip_validation=True)
            data.fixed = data.fixed or fixed


def _is_whole(data: Any) -> bool:
    return hasattr(data, "is_continuous") and not data.is_continuous()
