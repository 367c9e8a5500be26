"""Linear and mixed-integer programs given as arrays, solved by HiGHS through SciPy.

`LinearProgram` takes predicted costs, `RecourseProgram` predicted right-hand sides. Both need no
modelling language, no licence and no extra package.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csc_array

from lodl._arrays import check_instance_of
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems._linear_problem import LinearProblem
from lodl.problems._problem import Problem, check_sense

__all__ = ["LinearProgram", "RecourseProgram"]


class _Arrays:
    """The arrays of a program, and what one instance's context replaces in them.

    Args:
        arrays: A, row_lower, row_upper, lower, upper, integrality and costs, by name; an array that
            broadcasts to its full shape is enough.
        options: Options of `scipy.optimize.milp`.
    """

    def __init__(self, arrays: Mapping[str, Any], options: Mapping[str, Any] | None) -> None:
        # HiGHS stops within 0.01 % of the optimum by default, which would show as regret.
        self._options: Any = {"mip_rel_gap": 0.0, **(options or {})}
        matrix = csc_array(np.atleast_2d(arrays["A"]) if _is_dense(arrays["A"]) else arrays["A"])
        self._shape: tuple[int, int] = matrix.shape
        self._arrays = self._read({**arrays, "A": matrix})
        self.n_rows, self.n_variables = self._shape

    def of(self, context: InstanceContext) -> dict[str, Any]:
        """Return the arrays of one instance, which the caller may replace but not write to."""
        if context is None:
            return dict(self._arrays)
        if not isinstance(context, Mapping) or not set(context) <= set(self._arrays):
            raise InvalidInputError(
                "The context of an instance must be a dict of arrays to replace, with keys among "
                f"{', '.join(map(repr, self._arrays))}, got {_outline(context)}."
            )
        return self._arrays | self._read(context)

    def optimum(self, arrays: Mapping[str, Any], sense: Sense) -> OptimizeResult:
        """Return what HiGHS finds, with integer variables rounded; raise if it finds nothing."""
        found = milp(
            arrays["costs"] if sense == "min" else -arrays["costs"],
            integrality=arrays["integrality"],
            bounds=Bounds(arrays["lower"], arrays["upper"]),
            constraints=LinearConstraint(arrays["A"], arrays["row_lower"], arrays["row_upper"]),
            options=self._options,
        )
        if found.x is None:
            raise ProblemError(f"HiGHS found no decision. {found.message}")
        # Semi-continuous variables (2) are not whole numbers; 1 and 3 are.
        found.x = np.where(arrays["integrality"] % 2 == 1, np.rint(found.x), found.x)
        return found

    def _read(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._read_one(name, array) for name, array in arrays.items()}

    def _read_one(self, name: str, array: Any) -> Any:
        if name == "A":
            matrix = array if isinstance(array, csc_array) else csc_array(array)
            if matrix.shape != self._shape:
                raise InvalidInputError(f"`A` must have shape {self._shape}, got {matrix.shape}.")
            return matrix
        length = self._shape[0 if name.startswith("row") else 1]
        try:
            full = np.broadcast_to(np.asarray(array, dtype=np.float64), (length,))
        except ValueError as error:
            raise InvalidInputError(
                f"`{name}` must be a number or have shape ({length},), got shape {np.shape(array)}."
            ) from error
        if np.isnan(full).any():
            raise InvalidInputError(f"`{name}` must not have NaN.")
        return full


class LinearProgram(LinearProblem):
    """A linear or mixed-integer program whose costs are predicted.

        min_z or max_z  <z, y>     row_lower <= A z <= row_upper,   lower <= z <= upper,
                                   z_i a whole number where integrality_i = 1

    Use it for a model of moderate size that is given by its matrix. A label has one cost per
    variable, in any shape (a matrix of costs is read row by row), and a decision has the label's
    shape. Where only some variables have predicted costs, `predicted` names them, `costs` has the
    costs of the others, and a decision is the vector of all variables.

    An instance's context may replace arrays: `{"row_upper": capacities}`.

    A call fails, with the status that HiGHS gives, if the program is infeasible or unbounded, or if
    the time limit passes before any decision is found. A decision found within the time limit is
    taken, although it may not be the best one, and may not come again.

    Args:
        A: Matrix of the rows, shape (n_rows, n_variables), dense or sparse.
        sense: "min" or "max".
        row_lower: Least value of each row, `-inf` for none.
        row_upper: Largest value of each row, `inf` for none.
        lower: Least value of each variable.
        upper: Largest value of each variable.
        integrality: 1 for a whole number, 0 for any, as in `scipy.optimize.milp`.
        costs: Costs, shape (n_variables,), which count for the variables that are not in
            `predicted`.
        predicted: Positions of the variables with predicted costs; None is all of them.
        options: Options of `scipy.optimize.milp`, e.g. `{"time_limit": 10}`. Whole-number programs
            are solved to optimality unless it has another `mip_rel_gap` than 0.

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
        check_sense(sense, "LinearProgram")
        self.sense = sense
        arrays = {"A": A, "row_lower": row_lower, "row_upper": row_upper, "lower": lower}
        arrays |= {"upper": upper, "integrality": integrality, "costs": costs}
        self._arrays = _Arrays(arrays, options)
        n_variables = self._arrays.n_variables
        self._predicted = None if predicted is None else _places(predicted, n_variables)

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        arrays = self._arrays.of(context)
        arrays["costs"] = self._costs(y_hat, arrays)
        z: Array = self._arrays.optimum(arrays, self.sense).x
        return z.reshape(y_hat.shape) if self._predicted is None else z

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        if self._predicted is None:
            return super().objective_many(zs, y, context)
        known = self._costs(np.zeros(y.shape), self._arrays.of(context))
        decisions = np.asarray(zs, dtype=np.float64)
        values: Array = super().objective_many(decisions, known)
        return values + super().objective_many(decisions[:, self._predicted], y.ravel())

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array:
        slope: Array = np.asarray(z, dtype=np.float64)
        return slope if self._predicted is None else slope[self._predicted].reshape(y.shape)

    def _costs(self, y_hat: Array, arrays: Mapping[str, Any]) -> Array:
        """Return the costs of all variables if a prediction were true."""
        n = self._arrays.n_variables if self._predicted is None else len(self._predicted)
        if y_hat.size != n:
            raise ShapeError(f"A prediction must have {n} costs, got shape {y_hat.shape}.")
        if self._predicted is None:
            return y_hat.ravel()
        costs: Array = arrays["costs"].copy()
        costs[self._predicted] = y_hat.ravel()
        return costs


class RecourseProgram(Problem):
    """A linear or mixed-integer program whose right-hand sides are predicted.

        solve:      min_{z, w}  <c, (z, w)>   with the predicted y_hat as right-hand sides
        objective:  min_w       <c, (z, w)>   with the true y, and z as it was decided

    `z` are the variables of the first stage, decided before the truth is known, and `w` the others,
    the recourse: what is bought, sold or left undone once it is known. A decision is the vector z.
    A label has one number for each row in `rows`, its lower bound, its upper bound, or both.

    An instance's context may replace arrays: `{"costs": prices}`.

    A call fails, with the status that HiGHS gives, if a stage is infeasible or unbounded, or if the
    time limit passes before a decision is found. If the second stage is infeasible, the model
    lacks recourse: give it variables that make up for a wrong decision, at a price.

    The objective is piecewise linear in the label. Its slope comes from differences, two solves
    per number in a label.

    Args:
        program: The program, with the `costs` c of all variables.
        predicted: Which bound of the rows is predicted; "both" makes equalities of them.
        first_stage: Positions of the variables z.
        rows: Positions of the rows with predicted bounds; None is all of them.

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
            raise InvalidInputError(
                f'`predicted` must be "row_lower", "row_upper" or "both", got {predicted!r}.'
            )
        self.sense = program.sense
        self._arrays = program._arrays
        self._predicted = ("row_lower", "row_upper") if predicted == "both" else (predicted,)
        self._first_stage = _places(first_stage, self._arrays.n_variables)
        n_rows = self._arrays.n_rows
        self._rows = _places(range(n_rows) if rows is None else rows, n_rows)

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        return self._arrays.optimum(self._given(y_hat, context), self.sense).x[self._first_stage]

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        arrays = self._given(y, context)
        for bound in ("lower", "upper"):
            arrays[bound] = arrays[bound].copy()
            arrays[bound][self._first_stage] = z
        try:
            found = self._arrays.optimum(arrays, self.sense)
        except ProblemError as error:
            raise ProblemError(
                f"Under the true right-hand sides, with the decision fixed: {error} Give the model "
                "recourse: variables outside `first_stage` that make up for a wrong decision, at a "
                "price."
            ) from error
        return float((arrays["costs"] * found.x).sum())

    def _given(self, y: Array, context: InstanceContext) -> dict[str, Any]:
        """Return the arrays of an instance with some right-hand sides."""
        if y.size != len(self._rows):
            raise ShapeError(
                f"A prediction must have {len(self._rows)} right-hand sides, got shape {y.shape}."
            )
        arrays = self._arrays.of(context)
        for bound in self._predicted:
            arrays[bound] = arrays[bound].copy()
            arrays[bound][self._rows] = y.ravel()
        return arrays


def _places(positions: Sequence[int], n: int) -> npt.NDArray[np.intp]:
    """Return positions from 0 to n - 1 as an array."""
    places = np.asarray(positions)
    if places.ndim != 1 or places.dtype.kind not in "iu" or len(set(places.tolist())) < len(places):
        raise InvalidInputError(f"Positions must be distinct whole numbers, got {positions!r}.")
    if len(places) and not (places.min() >= 0 and places.max() < n):
        raise InvalidInputError(f"Positions must lie between 0 and {n - 1}, got {positions!r}.")
    return places.astype(np.intp)


def _is_dense(matrix: Any) -> bool:
    return not hasattr(matrix, "tocsc")


def _outline(context: object) -> str:
    keys = list(context) if isinstance(context, Mapping) else None
    return f"a {type(context).__name__}" if keys is None else f"a dict with keys {keys}"
