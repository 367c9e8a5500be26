"""Models written with CP-SAT of OR-Tools, with predicted costs or predictions anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import require
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, MissingExtraError, ProblemError
from lodl.problems._functions import FunctionWithContext
from lodl.problems._model_problem import Model, ModelProblem, check_size
from lodl.problems._problem import LinearProblem

__all__ = ["OrtoolsLinearProblem", "OrtoolsProblem", "integer_costs"]

_BITS = 50  # bits of the largest objective: far below int64, and exact as a double
_MAX_RANGE = 2.0**30  # sum of the largest values of all variables


class _BuiltProblem(ModelProblem):
    """A CP-SAT model made by a function of `_n_predictions` predictions and the context."""

    _n_predictions = 0

    def __init__(
        self,
        build: Callable[..., tuple[Any, Any]],
        sense: Sense,
        *,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        _cp_model()  # if it is missing or clashes, say so before a worker does
        builder = FunctionWithContext("build", build, self._n_predictions)
        self._made_of = str(builder)
        model = _Model if self._n_predictions else _ModelWithCosts
        super().__init__(sense, partial(model, builder, sense, dict(options or {})))


class OrtoolsLinearProblem(LinearProblem, _BuiltProblem):
    """A CP-SAT model whose costs are predicted.

    Use it if every variable that is decided has a predicted cost or gain, and the constraints are
    known. `build` makes the model without an objective, once per process, thread and context; each
    call sets new costs, scaled and rounded by `integer_costs`, and solves, by one thread so that
    the same prediction gets the same decision. A label has one cost per variable, in any shape (row
    by row), and a decision has the label's shape. Its objective is <z, y>, computed in floats.

    Args:
        build: `build(context)`, or `build()` if it needs no context, returns a `cp_model.CpModel`
            and its variables with predicted costs, as a list or an array of any shape.
        sense: "min" or "max".
        options: Parameters of CP-SAT, e.g. `{"max_time_in_seconds": 10}`.

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

    solve = ModelProblem.solve


class OrtoolsProblem(_BuiltProblem):
    """A CP-SAT model that is built anew for each prediction.

    Use it if the prediction occurs in constraints, or not in every term of the objective. `build`
    makes the whole model, objective included, as if a prediction were true, and returns it with the
    variables that are decided. A decision is an array of their values, or a dict of arrays.

    To score a decision, the model is built for the truth, the decision is fixed in it, and the rest
    is solved: variables that `build` does not return are the recourse. If you can score decisions
    faster, or know the slope, override `objective` or `slope` in a subclass. Write the objective in
    floats, which CP-SAT scales itself, and round a predicted right-hand side in `build`.

    Args:
        build: `build(y_hat, context)`, or `build(y_hat)`, returns a model and the variables that
            are decided: a list or an array of them, or a dict of these.
        sense: "min" or "max", as in the model.
        options: Parameters of CP-SAT.

    Example:
        >>> from ortools.sat.python import cp_model
        >>> def build(demand):  # order at 1 a piece, buy what is missing at 3
        ...     model = cp_model.CpModel()
        ...     order, missing = (model.new_int_var(0, 100, name) for name in ("order", "missing"))
        ...     model.add(order + missing >= round(demand[0]))
        ...     model.minimize(order + 3 * missing)
        ...     return model, [order]
        >>> problem = OrtoolsProblem(build, "min")
        >>> order = problem.solve(np.array([5.0]))
        >>> problem.objective(order, np.array([7.0]))
        11.0
    """

    _n_predictions = 1


def integer_costs(
    costs: npt.ArrayLike, largest: npt.ArrayLike = 1.0
) -> tuple[npt.NDArray[np.int64], float]:
    """Return costs as whole numbers, and the power of two that they were multiplied by.

        n_i = round(s c_i),   s the largest power of two with  s C <= 2^50,   C = sum_i |c_i| u_i

    for variables with |x_i| <= u_i. The decision that is best for n costs at most
    2^-49 C sum_i u_i more than the best one: 2e-12 of C for a thousand yes-or-no variables.
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


class _Model(Model):
    """A model that is built for each call."""

    def __init__(self, build: FunctionWithContext, sense: Sense, options: dict[str, Any]) -> None:
        self._build, self._sense, self._options = build, sense, options

    def set(self, y: Array, context: InstanceContext) -> None:
        variables = self._built(y, context=context)
        if self._model_sense not in (None, self._sense):
            wrong = f'but the sense of the model that `build` returns is "{self._model_sense}"'
            raise InvalidInputError(f'`sense` is "{self._sense}", {wrong}.')
        groups = variables if isinstance(variables, Mapping) else {None: variables}
        self._groups = {name: np.array(group, dtype=object) for name, group in groups.items()}

    def optimise(self) -> None:
        cp = _cp_model()
        self._solver = cp.CpSolver()
        parameters = self._solver.parameters
        parameters.num_workers = 1  # several workers may return another of several best decisions
        for name, value in self._options.items():
            setattr(parameters, name, value)
        status = self._solver.solve(self._model)
        if status not in (cp.OPTIMAL, cp.FEASIBLE):
            status = f"{self._solver.status_name(status)}. {self._model.validate()}".strip()
            raise ProblemError(f"CP-SAT found no decision: its status is {status}")

    def read(self) -> Decision:
        values = {name: self._values(group, group.shape) for name, group in self._groups.items()}
        return values.get(None, values)

    def fix(self, z: Decision) -> None:
        for name, group in self._groups.items():
            values = np.ravel(z if name is None else z[name]).tolist()
            for variable, value in zip(group.ravel(), values, strict=True):
                self._model.add(variable == round(value))

    def value(self) -> float:
        return float(self._solver.objective_value)

    def _built(self, *arguments: Array, context: InstanceContext) -> Any:
        """Build the model, and return its variables."""
        built = self._build(*arguments, context=context)
        if not (isinstance(built, tuple) and len(built) == 2):
            wanted = "a model and the variables that are decided"
            raise InvalidInputError(f"`build` must return {wanted}, got {built!r}.")
        self._model, variables = built
        if not isinstance(self._model, _cp_model().CpModel):
            wanted = "a `cp_model.CpModel` and the variables that are decided"
            got = f"a {type(self._model).__name__} for the model"
            raise InvalidInputError(f"`build` must return {wanted}, got {got}.")
        return variables

    @property
    def _model_sense(self) -> Sense | None:
        """The sense of the model's objective, or None if it has none."""
        if not self._model.has_objective():
            return None
        proto = self._model.proto
        if proto.has_objective():  # reading an absent objective would create it
            return "max" if proto.objective.scaling_factor < 0 else "min"
        return "max" if proto.floating_point_objective.maximize else "min"

    def _values(self, variables: npt.NDArray[Any], shape: tuple[int, ...]) -> Array:
        values = [float(self._solver.value(variable)) for variable in variables.ravel()]
        return np.array(values).reshape(shape)


class _ModelWithCosts(_Model):
    """A model that is kept until the context changes; its costs are set for each call."""

    def _take(self, context: InstanceContext) -> None:
        self._variables = np.array(self._built(context=context), dtype=object).ravel()
        if self._model_sense is not None:
            reason = "all costs are predicted. If some are known, use `OrtoolsProblem`."
            wrong = "The model that `build` returns must have no objective"
            raise InvalidInputError(f"{wrong}: {reason}")
        self._largest = [max(map(abs, v.proto.domain)) for v in self._variables]

    def set(self, y: Array, context: InstanceContext) -> None:
        self.build_for(context, partial(self._take, context))
        self._shape = np.shape(y)
        costs = check_size(y, len(self._variables), "costs, one per variable")
        integers, _ = integer_costs(costs, self._largest)
        total = _cp_model().LinearExpr.weighted_sum(self._variables.tolist(), integers.tolist())
        self._model.clear_objective()
        self._model.minimize(total) if self._sense == "min" else self._model.maximize(total)

    def read(self) -> Decision:
        return self._values(self._variables, self._shape)


def _cp_model() -> ModuleType:
    """Import CP-SAT, or say what keeps it from loading."""
    try:
        return require("ortools.sat.python.cp_model", "ortools")
    except MissingExtraError as error:
        if "undefined symbol" in str(error.__cause__):
            raise MissingExtraError(
                "OR-Tools cannot be loaded beside highspy 1.15 or later, whose library of HiGHS "
                "has the same name. Install an earlier one: pip install 'highspy<1.15'"
            ) from error
        raise
