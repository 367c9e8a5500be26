"""Linear and mixed-integer programs given as arrays, solved by HiGHS through SciPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

from lodl._arrays import check_instance_of
from lodl._typing import Array, Decision, Flags, Index, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems._model_problem import Model, ModelProblem, check_replacements, check_size
from lodl.problems._problem import LinearProblem
from lodl.problems._vertices import adjacent_vertices, solve_vertex

__all__ = ["LinearProgram", "RecourseProgram"]

_NEAR = 1e-6  # share of a number by which it may break a bound, as in HiGHS


class LinearProgram(LinearProblem, ModelProblem):
    """A linear or mixed-integer program whose costs are predicted.

        min_z or max_z  <z, y>     row_lower <= A z <= row_upper,   lower <= z <= upper,
                                   z_i a whole number where integrality_i = 1

    A label has one cost per variable, in any shape (a matrix of costs is read row by row), and a
    decision has the label's shape. If only some variables have predicted costs, a decision is the
    vector of all variables. An instance's context may replace arrays: `{"row_upper": capacities}`.

    Args:
        A: Matrix of the rows, shape (n_rows, n_variables), dense or sparse.
        sense: "min" or "max".
        row_lower: Least value of each row, `-inf` for none.
        row_upper: Largest value of each row, `inf` for none.
        lower: Least value of each variable.
        upper: Largest value of each variable.
        integrality: 1 for a whole number, 0 for any, as in `scipy.optimize.milp`.
        costs: Costs, shape (n_variables,), of the variables that are not in `predicted`.
        predicted: Positions of the variables with predicted costs. Defaults to all of them.
        options: Options of `scipy.optimize.milp`, e.g. `{"time_limit": 10}`; `mip_rel_gap` is 0.

    Example:
        >>> knapsack = LinearProgram([[3, 4, 5]], "max", row_upper=8, upper=1, integrality=1)
        >>> knapsack.solve(np.array([1.0, 3.0, 3.5]))
        array([1., 0., 1.])
        >>> knapsack.solve(np.array([1.0, 3.0, 3.5]), {"row_upper": 9})
        array([0., 1., 1.])
    """

    def __init__(
        self,
        A: npt.ArrayLike | Any,  # noqa: N803 - as everywhere
        sense: Sense,
        *,
        row_lower: npt.ArrayLike = -np.inf,
        row_upper: npt.ArrayLike = np.inf,
        lower: npt.ArrayLike = 0.0,
        upper: npt.ArrayLike = np.inf,
        integrality: npt.ArrayLike = 0,
        costs: npt.ArrayLike = 0.0,
        predicted: Sequence[int] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        arrays = {"A": A, "row_lower": row_lower, "row_upper": row_upper, "lower": lower}
        arrays |= {"upper": upper, "integrality": integrality, "costs": costs}
        self._arrays = _Arrays(arrays, options)
        every = np.arange(self._arrays.n_variables)
        self._predicted = None if predicted is None else _positions(predicted, len(every))
        places, read = (every, None) if self._predicted is None else (self._predicted, every)
        build = partial(_Model, self._arrays, sense, {"costs": places}, read)
        ModelProblem.__init__(self, sense, build)

    solve = ModelProblem.solve

    def has_neighbours(self, context: InstanceContext) -> bool:
        # With whole numbers, the neighbours of a relaxation's vertex are no decisions.
        is_own = type(self).solve is LinearProgram.solve
        return is_own and not self._arrays.of(context)["integrality"].any()

    def neighbours(self, y_hat: Array, context: InstanceContext = None) -> Array:
        model = cast(_Model, self._models.get())
        model.set(y_hat, context)
        return model.vertices()

    def are_feasible(self, zs: Array, context: InstanceContext) -> Flags | None:
        if self._predicted is not None:
            return None  # `zs` are no whole decisions
        given, xs = self._arrays.of(context), zs.reshape(len(zs), -1)
        if (given["integrality"] > 1).any():
            return None  # semi-continuous variables
        rows, near = xs @ given["A"].T, _NEAR * (1 + np.abs(xs))
        slack = _NEAR * (1 + np.abs(rows))
        is_within = (xs >= given["lower"] - near) & (xs <= given["upper"] + near)
        is_whole = (given["integrality"] == 0) | (np.abs(xs - np.rint(xs)) <= near)
        is_kept = (rows >= given["row_lower"] - slack) & (rows <= given["row_upper"] + slack)
        return np.asarray((is_within & is_whole).all(axis=1) & is_kept.all(axis=1))

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        if self._predicted is None:
            return super().objective_many(zs, y, context)
        costs = self._arrays.of(context)["costs"].copy()
        costs[self._predicted] = y.ravel()
        return super().objective_many(zs, costs)

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array:
        slope: Array = np.asarray(z, dtype=np.float64)
        return slope if self._predicted is None else slope[self._predicted].reshape(y.shape)


class RecourseProgram(ModelProblem):
    """A linear or mixed-integer program whose right-hand sides are predicted.

        solve:      min_{z, w}  <c, (z, w)>   with the predicted y_hat as right-hand sides
        objective:  min_w       <c, (z, w)>   with the true y, and z fixed at the decision

    `z` are the variables of the first stage, decided before the truth is known, and `w` the others,
    the recourse: what is bought, sold or left undone once it is known. A decision is the vector z.
    A label has one number for each row in `rows`: its lower bound, its upper bound, or both. An
    instance's context may replace arrays: `{"costs": prices}`. Slopes come from differences, two
    solves per number in a label.

    Args:
        program: The program, with the `costs` c of all variables.
        predicted: The predicted bound of the rows; "both" makes them equalities.
        first_stage: Positions of the variables z.
        rows: Positions of the rows with predicted bounds. Defaults to all of them.

    Example:
        >>> # Order at 1 a piece; buy what is missing at 3: order + missing >= demand.
        >>> program = LinearProgram([[1, 1]], "min", costs=[1, 3])
        >>> newsvendor = RecourseProgram(program, predicted="row_lower", first_stage=[0])
        >>> order = newsvendor.solve(np.array([5.0]))
        >>> newsvendor.objective(order, np.array([7.0]))
        11.0
    """

    def __init__(
        self,
        program: LinearProgram,
        *,
        predicted: Literal["row_lower", "row_upper", "both"],
        first_stage: Sequence[int],
        rows: Sequence[int] | None = None,
    ) -> None:
        check_instance_of(LinearProgram, "program", program, wanted="a `LinearProgram`")
        if predicted not in ("row_lower", "row_upper", "both"):
            wanted = '"row_lower", "row_upper" or "both"'
            raise InvalidInputError(f"`predicted` must be {wanted}, got {predicted!r}.")
        arrays = program._arrays
        at = _positions(range(arrays.n_rows) if rows is None else rows, arrays.n_rows)
        bounds = ("row_lower", "row_upper") if predicted == "both" else (predicted,)
        read = _positions(first_stage, arrays.n_variables)
        build = partial(_Model, arrays, program.sense, dict.fromkeys(bounds, at), read)
        super().__init__(program.sense, build)


class _Arrays:
    """The arrays of a program by name, and the arrays that replace them for one instance."""

    def __init__(self, arrays: Mapping[str, Any], options: Mapping[str, Any] | None) -> None:
        # HiGHS stops within 0.01 % of the optimum by default, which would show as regret.
        self.options: Any = {"mip_rel_gap": 0.0, **(options or {})}
        matrix = arrays["A"] if hasattr(arrays["A"], "tocsc") else np.atleast_2d(arrays["A"])
        self.n_rows, self.n_variables = matrix.shape
        self._arrays = {name: self._checked(name, a) for name, a in {**arrays, "A": matrix}.items()}

    def of(self, context: InstanceContext) -> dict[str, Any]:
        """Return the arrays of one instance, which the caller may replace but not write to."""
        replaced = check_replacements(context, self._arrays, "arrays")
        return self._arrays | {name: self._checked(name, a) for name, a in replaced.items()}

    def _checked(self, name: str, array: Any) -> Any:
        if name == "A":
            matrix, shape = csc_array(array), (self.n_rows, self.n_variables)
            if matrix.shape != shape:
                raise InvalidInputError(f"`A` must have shape {shape}, got {matrix.shape}.")
            return matrix
        length = self.n_rows if name.startswith("row") else self.n_variables
        try:
            full = np.broadcast_to(np.asarray(array, dtype=np.float64), (length,))
        except ValueError as error:
            wanted = f"a number or have shape ({length},), got shape {np.shape(array)}"
            raise InvalidInputError(f"`{name}` must be {wanted}.") from error
        if np.isnan(full).any():
            raise InvalidInputError(f"`{name}` must not have NaN.")
        return full


class _Model(Model):
    """A program with predicted numbers."""

    def __init__(
        self,
        arrays: _Arrays,
        sense: Sense,
        predicted: Mapping[str, Index],  # in each array
        decided: Index | None,  # None if a decision has all variables, in the label's shape
    ) -> None:
        self._arrays, self._sign = arrays, 1 if sense == "min" else -1
        self._predicted, self._decided = predicted, decided

    def set(self, y: Array, context: InstanceContext) -> None:
        self._given, self._shape = self._arrays.of(context), np.shape(y)
        for name, at in self._predicted.items():
            numbers = check_size(y, len(at), "costs" if name == "costs" else "right-hand sides")
            self._replace(name, at, numbers)

    def optimise(self) -> None:
        given = self._given
        result = milp(
            self._sign * given["costs"],
            integrality=given["integrality"],
            bounds=Bounds(given["lower"], given["upper"]),
            constraints=LinearConstraint(given["A"], given["row_lower"], given["row_upper"]),
            options=self._arrays.options,
        )
        if result.x is None:
            raise ProblemError(f"HiGHS found no decision. {result.message}")
        # Semi-continuous variables (2) are not whole numbers; 1 and 3 are.
        is_whole = given["integrality"] % 2 == 1
        self._x: Array = np.where(is_whole, np.rint(result.x), result.x)

    def vertices(self) -> Array:
        """Return the decision and its neighbours, unless the context has whole numbers."""
        given, costs = self._given, self._sign * self._given["costs"]
        if given["integrality"].any():
            self.optimise()
            xs = self._x[np.newaxis]
        else:
            x, reduced = solve_vertex(costs, given, self._arrays.options)
            xs = np.vstack([x, adjacent_vertices(x, reduced, costs, given)])
        return xs.reshape(len(xs), *self._shape) if self._decided is None else xs[:, self._decided]

    def read(self) -> Decision:
        return self._x.reshape(self._shape) if self._decided is None else self._x[self._decided]

    def fix(self, z: Decision) -> None:
        for bound in ("lower", "upper"):
            self._replace(bound, self._decided, z)

    def value(self) -> float:
        return float((self._given["costs"] * self._x).sum())

    def _replace(self, name: str, at: Index | None, numbers: Array) -> None:
        self._given[name] = self._given[name].copy()
        self._given[name][at] = numbers


def _positions(positions: Sequence[int], n: int) -> Index:
    """Return positions from 0 to n - 1 as an array."""
    array = np.asarray(positions)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(set(array.tolist())) < len(array):
        raise InvalidInputError(f"Positions must be distinct whole numbers, got {positions!r}.")
    if not all(0 <= position < n for position in array):
        raise InvalidInputError(f"Positions must be between 0 and {n - 1}, got {positions!r}.")
    return array.astype(np.intp)
