"""A CVXPY model as its solver takes it, for predictions that stand in the objective alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lodl._typing import Array

_NOT_FOR_THE_SOLVER = {
    "canon_backend", "enforce_dpp", "gp", "ignore_dpp", "method", "qcp", "requires_grad",
    "solver_path", "verbose",
}  # fmt: skip


class Compiled:
    """A compiled model that is solved again for new costs.

    CVXPY compiles a DPP model to a program with the costs c and other arrays, each affine in the
    parameters. Where only

        c = Q (theta, 1),   theta the values of all parameters,

    depends on the predicted one, it is all that is made for a call. `cp.Problem.solve` makes every
    array again and unpacks dual values, which takes longer than most solves of a millisecond.

    Args:
        problem: The `cp.Problem`.
        parameter: The parameter that is predicted.
        options: What `cp.Problem.solve` would be called with.
    """

    def __init__(self, problem: Any, parameter: Any, options: Mapping[str, Any]) -> None:
        self._problem, self._parameter = problem, parameter
        asked = dict(options)
        self._solver, warm_start = asked.pop("solver"), asked.pop("warm_start")
        self._options = asked
        can_be = not warm_start and not _NOT_FOR_THE_SOLVER & set(asked) and problem.is_dpp()
        self._is_usable: bool | None = None if can_be else False

    def refresh(self) -> None:
        """Compile again, because another parameter has changed."""
        if self._is_usable is False:
            return
        self._data, self._chain, self._inverse = self._compile()
        if self._is_usable is None:
            self._is_usable = self._depends_by_costs_alone()
        if self._is_usable:
            self._theta = self._values_of_parameters()

    def solve(self) -> dict[int, Array] | None:
        """Return the best values of variables by their id; None if that takes CVXPY's own `solve`.

        That is so where more than costs depends on the prediction, and where the solver does not
        find an optimum: CVXPY then says why.
        """
        if not self._is_usable:
            return None
        self._theta[self._place] = _flat(self._parameter.value)
        data = {**self._data, self._costs: self._matrix @ self._theta}
        raw = self._chain.solve_via_data(self._problem, data, False, False, self._options)
        found = self._chain.invert(raw, self._inverse)
        values: dict[int, Array] = found.primal_vars
        return values if found.status == "optimal" else None

    def _compile(self) -> tuple[dict[str, Any], Any, Any]:
        found: tuple[dict[str, Any], Any, Any] = self._problem.get_problem_data(
            self._solver, solver_opts=self._options
        )
        return found

    def _depends_by_costs_alone(self) -> bool:
        """Compile for another value of the parameter and compare all arrays."""
        program: Any = self._data.get("param_prob")
        parameter = self._parameter
        self._costs = "c" if "c" in self._data else "q"
        if parameter.id not in getattr(program, "param_id_to_col", {}):
            return False
        first = program.param_id_to_col[parameter.id]
        self._place = slice(first, first + parameter.size)
        self._matrix = program.q.tocsr()[:-1]  # the last row is the constant of the objective
        here = parameter.value
        noise = np.random.default_rng(0).uniform(0.5, 1.5, np.shape(here))
        parameter.value = parameter.project(here * noise + noise)
        other, costs = self._compile()[0], self._matrix @ self._values_of_parameters()
        parameter.value = here
        is_known = self._costs in other and np.array_equal(other[self._costs], costs)
        return is_known and all(
            _is_same(self._data[name], other[name]) for name in self._data if name != self._costs
        )

    def _values_of_parameters(self) -> Array:
        """Return the values of all parameters and the constant 1, as CVXPY orders them."""
        program = self._data["param_prob"]
        theta = np.ones(program.q.shape[1])
        for number, parameter in program.id_to_param.items():
            first = program.param_id_to_col[number]
            theta[first : first + parameter.size] = _flat(parameter.value)
        return theta


def _flat(value: Any) -> Array:
    """Return the value of a parameter as CVXPY writes it in a program, column by column."""
    return np.asarray(value, dtype=np.float64).ravel(order="F")


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two arrays are equal; what is no array does not depend on parameters."""
    if hasattr(one, "tocsc"):
        return bool(one.shape == other.shape and (one != other).nnz == 0)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else True
