"""Models written with gurobipy, with predicted costs or right-hand sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import require
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems._functions import FunctionWithContext
from lodl.problems._model_problem import Model, ModelProblem, check_size

__all__ = ["GurobiProblem"]

_OPTIONS = {"OutputFlag": 0, "Threads": 1, "MIPGap": 0.0}  # a gap would show as regret


class GurobiProblem(ModelProblem):
    """A Gurobi model in which costs or right-hand sides are predicted.

    `build` makes the model, once per process and thread while the context stays the same, and
    returns it with what is predicted: variables, whose costs are a label, or constraints, whose
    right-hand sides are. A label has any shape (row by row). A third value names the variables that
    are decided; the others are recourse, solved for again under the truth. By default the variables
    with predicted costs are decided. A decision is an array of values.

    Every process and thread starts an environment of Gurobi. A floating, WLS or compute server
    licence counts each of them until the workers end: `n_jobs` must not exceed your licences.

    Args:
        build: `build(env)`, or `build(env, context)`, returns `gp.Model(env=env)`, what is
            predicted and, if it is not the same, what is decided: an `MVar`, an `MConstr`, the
            result of `addVars` or `addConstrs`, or a list.
        sense: "min" or "max", as in the model.
        options: Parameters of the environment, such as `TimeLimit`, `MIPGap` or the licence
            (`WLSAccessID`, ...). By default there is no output, one thread and no gap.
        warm_start: Whether to continue from the thread's last solution. This is faster, but if
            several decisions are best, earlier calls determine which of them is returned.

    Example:
        >>> import gurobipy as gp
        >>> def build(env, context):
        ...     model = gp.Model(env=env)
        ...     take = model.addMVar(3, vtype="B")
        ...     model.addConstr(np.array([3, 4, 5]) @ take <= context["limit"])
        ...     return model, take
        >>> problem = GurobiProblem(build, "max")
        >>> problem.solve(np.array([1.0, 3.0, 3.5]), {"limit": 8})
        array([1., 0., 1.])
    """

    def __init__(
        self,
        build: Callable[..., tuple[Any, ...]],
        sense: Sense,
        *,
        options: Mapping[str, Any] | None = None,
        warm_start: bool = False,
    ) -> None:
        require("gurobipy", "gurobi")  # if it is missing, say so before a worker does
        builder = FunctionWithContext("build", build, 1)
        self._made_of = str(builder)
        settings = {**_OPTIONS, **(options or {})}
        super().__init__(sense, partial(_Model, builder, sense, settings, warm_start))


class _Model(Model):
    """A model and its environment, kept until the context changes."""

    _is_fixed = False

    def __init__(
        self, build: FunctionWithContext, sense: Sense, options: dict[str, Any], warm_start: bool
    ) -> None:
        self._gp: Any = require("gurobipy", "gurobi")
        self._build, self._sense, self._warm_start = build, sense, warm_start
        try:
            self._env = self._gp.Env(params=options)
        except self._gp.GurobiError as error:
            licence = " Each worker needs a licence: use fewer (`n_jobs`)."
            advice = "" if "parameter" in str(error) else licence
            raise ProblemError(f"Gurobi cannot start: {error}.{advice}") from error

    def set(self, y: Array, context: InstanceContext) -> None:
        self.build_for(context, partial(self._take, context))
        if self._is_fixed:
            self._set_bounds(self._lower, self._upper)
            self._is_fixed = False
        attribute, what = ("Obj", "costs") if self._has_costs else ("RHS", "right-hand sides")
        self._y = check_size(y, len(self._predicted), f"{what}, one per entry that is predicted")
        self._shape = np.shape(y) if self._decides_costs else self._decided_shape
        self._model.setAttr(attribute, self._predicted, self._y.tolist())

    def optimise(self) -> None:
        if not self._warm_start:
            self._model.reset()
        try:
            self._model.optimize()
        except self._gp.GurobiError as error:
            raise ProblemError(f"Gurobi found no decision: {error}.") from error
        codes = self._gp.GRB.Status
        names = {getattr(codes, name): name for name in dir(codes) if name.isupper()}
        status = names[self._model.Status]
        if status == "INTERRUPTED":  # by Ctrl-C, of which gurobipy raises nothing
            raise KeyboardInterrupt
        if status in ("INFEASIBLE", "INF_OR_UNBD", "UNBOUNDED") or not self._model.SolCount:
            status = status.replace("INF_OR_UNBD", "INFEASIBLE or UNBOUNDED")
            raise ProblemError(f"Gurobi found no decision: its status is {status}.")

    def read(self) -> Decision:
        return self._values(self._decided).reshape(self._shape)

    def fix(self, z: Decision) -> None:
        self._z: Array = np.ravel(z).astype(np.float64)
        if self.has_recourse:
            self._set_bounds(self._z.tolist(), self._z.tolist())
            self._is_fixed = True

    def value(self) -> float:
        return float(self._model.ObjVal if self.has_recourse else (self._z * self._y).sum())

    def slope(self, z: Decision, y: Array, context: InstanceContext) -> Array | None:
        self.set(y, context)
        if not self._has_costs:
            return None
        self.fix(z)
        if self.has_recourse:
            self.optimise()
        return (self._values(self._predicted) if self.has_recourse else self._z).reshape(y.shape)

    def _take(self, context: InstanceContext) -> None:
        """Build a model, and take what is predicted and what is decided."""
        self._is_fixed, built = False, self._build(self._env, context=context)
        if not isinstance(built, tuple) or len(built) not in (2, 3):
            wanted = "a model, what is predicted and, if it is not the same, what is decided"
            raise InvalidInputError(f"`build` must return {wanted}, got {built!r}.")
        self._model, predicted, decided = built[0], _entries(built[1]), _entries(built[-1])
        kinds = {type(entry) for entry in predicted.flat}
        is_model = isinstance(self._model, self._gp.Model)
        decides_variables = all(isinstance(entry, self._gp.Var) for entry in decided.flat)
        is_predictable = kinds in ({self._gp.Var}, {self._gp.Constr})
        if not (is_model and is_predictable and decides_variables):
            wanted = "a `gp.Model`, variables or linear constraints, and variables to decide"
            raise InvalidInputError(f"`build` must return {wanted}, got {built!r}.")
        self._predicted, self._has_costs = predicted.ravel().tolist(), kinds == {self._gp.Var}
        self._decided, self._decided_shape = decided.ravel().tolist(), decided.shape
        self._decides_costs = len(built) == 2
        self._set_sense()

    def _set_sense(self) -> None:
        """Set the model's sense, and find out whether it knows costs, too."""
        self._model.update()
        if self._has_costs:
            self._model.setAttr("Obj", self._predicted, [0.0] * len(self._predicted))
            self._model.update()
        self._lower = self._model.getAttr("LB", self._decided)
        self._upper = self._model.getAttr("UB", self._decided)
        costs = self._model.getAttr("Obj", self._model.getVars())
        knows_costs = bool(any(costs) or self._model.IsQP)
        sign = 1 if self._sense == "min" else -1
        if knows_costs and self._model.ModelSense != sign:
            wrong = "but the model that `build` returns has the other one"
            raise InvalidInputError(f'`sense` is "{self._sense}", {wrong}.')
        self._model.ModelSense = sign
        self.has_recourse = knows_costs or not self._decides_costs

    def _set_bounds(self, lower: list[float], upper: list[float]) -> None:
        self._model.setAttr("LB", self._decided, lower)
        self._model.setAttr("UB", self._decided, upper)

    def _values(self, variables: list[Any]) -> Array:
        """Return the values of variables in the last solution; whole numbers are rounded."""
        values = np.array(self._model.getAttr("X", variables))
        is_whole = np.isin(self._model.getAttr("VType", variables), ["B", "I"])
        return np.where(is_whole, np.rint(values), values) + 0.0  # no -0.0


def _entries(entries: Any) -> npt.NDArray[Any]:
    """Return variables or constraints as an array of objects."""
    if isinstance(entries, Mapping):  # `addVars` and `addConstrs` return one
        entries = list(entries.values())
    if isinstance(entries, list | tuple):  # whose members may be matrix objects of one entry
        entries = [entry.tolist() if hasattr(entry, "tolist") else entry for entry in entries]
    return np.array(entries.tolist() if hasattr(entries, "tolist") else entries, dtype=object)
