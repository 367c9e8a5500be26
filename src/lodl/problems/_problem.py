"""The interface between `lodl` and a solver: `Problem`, `VectorisedProblem`, `LinearProblem`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from lodl import _arrays as arrays
from lodl._typing import Array, Context, Decision, Flags, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError, ShapeError


class Problem(ABC):
    """A decision to be made from a prediction, and its worth under the label.

    Attributes:
        sense: "min" if the objective is a cost, "max" if it is a gain. It has no default.
        unit: The unit of the objective ("EUR", "minutes"), for summaries and reports.
        label_names: Names of the numbers in a label, for reports. If there are any, a frame of
            labels must have these columns, in any order.
        mixes_instances: Whether a batch of `solve_many` may have predictions of several instances
            with the same context, which is fastest. Set it to False if the last digits of a
            decision depend on its batch and answers must not depend on how work is divided.

    Example:
        >>> class Cheapest(lodl.Problem):
        ...     sense = "min"
        ...     def solve(self, y_hat, context):
        ...         return int(y_hat.argmin())
        ...     def objective(self, z, y, context):
        ...         return float(y[z])
        >>> Cheapest().solve(np.array([3.0, 1.0, 2.0]), None)
        1
    """

    sense: Sense
    unit: str = ""
    label_names: Sequence[str] = ()
    mixes_instances: bool = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = cls.__dict__.get("sense")
        if declared is not None and not hasattr(declared, "__get__"):
            check_sense(declared, cls.__name__)

    @abstractmethod
    def solve(self, y_hat: Array, context: InstanceContext) -> Decision:
        """Return the decision `z`, any object, that would be best if `y_hat` were true."""

    @abstractmethod
    def objective(self, z: Decision, y: Array, context: InstanceContext) -> float:
        """Return what the decision `z` is worth under the label `y`, which is read-only."""

    def solve_many(self, y_hats: Array, context: InstanceContext) -> Any:
        """Return a sequence of decisions, one per prediction of `y_hats` (k, *label_shape)."""
        return [self.solve(y_hat, context) for y_hat in y_hats]

    def objective_many(self, zs: Any, y: Array, context: InstanceContext) -> Array:
        """Return the objective of each decision under one label, shape (k,)."""
        values = [self.objective(z, y, context) for z in zs]
        if any(value is None for value in values):
            raise ProblemError("`objective` returned None: is a `return` missing?")
        return np.array(values, dtype=np.float64)

    def project(self, y_hats: Array) -> Array:
        """Map predictions of shape (k, *label_shape) into the range that `solve` accepts.

        Labels must already be in the range. By default this is the identity.
        """
        return y_hats

    def slope(self, z: Decision, y: Array, context: InstanceContext) -> Array | None:
        """Return the derivative of the objective of `z` with respect to the label, at `y`.

        The derivative has the label's shape. If `slope` returns None, as it does by default, `lodl`
        takes central differences of `objective`: two evaluations per number in a label and distinct
        decision. They are exact if the objective is affine in the label.
        """
        return None

    def neighbours(self, y_hat: Array, context: InstanceContext) -> Any:
        """Return the decision that `solve` returns and others next to it, the nearest first.

        A problem may offer this if it knows other feasible decisions after a single solve, as the
        optimal basis of a linear program does. They show what a wrong prediction may cost, and
        `lodl.AdjacentVertices` samples them if `has_neighbours` says so.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `neighbours`.")

    def has_neighbours(self, context: InstanceContext) -> bool:
        """Return whether `neighbours` knows more than the decision of an instance."""
        return False

    def describe(self, z: Decision) -> str | None:
        """Return a description of a decision for reports. By default its numbers are shown."""
        return None

    def __sklearn_clone__(self) -> Problem:
        """Clones of an estimator share its problem, which may hold a solver that has no copy."""
        return self

    @property
    def is_vectorised(self) -> bool:
        """Whether `solve_many` is the problem's own, not the loop over `solve`."""
        return type(self).solve_many is not Problem.solve_many


class VectorisedProblem(Problem):
    """A problem whose solver handles many predictions at once.

    A subclass writes `solve_many` and `objective_many`, which may return NaN for predictions
    without a decision. The decision for a prediction must not depend on the other predictions. If a
    call raises, each prediction of the batch is tried by itself.

    Example:
        >>> class Cheapest(lodl.problems.VectorisedProblem):
        ...     sense = "min"
        ...     def solve_many(self, y_hats, context):
        ...         return y_hats.argmin(axis=1)
        ...     def objective_many(self, zs, y, context):
        ...         return y[np.asarray(zs)]
        >>> Cheapest().solve_many(np.array([[3.0, 1.0], [1.0, 2.0]]), None)
        array([1, 0])
    """

    @abstractmethod
    def solve_many(self, y_hats: Array, context: InstanceContext) -> Any: ...

    @abstractmethod
    def objective_many(self, zs: Any, y: Array, context: InstanceContext) -> Array: ...

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        return self.solve_many(np.asarray(y_hat)[np.newaxis], context)[0]

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        zs = z[np.newaxis] if isinstance(z, np.ndarray) else [z]
        return float(self.objective_many(zs, y, context)[0])


class LinearProblem(Problem):
    """A problem whose objective is linear in the label.

        objective(z, y) = <z, y> = sum_i z_i y_i

    A subclass states its `sense` and writes one method: `solve`, or `solve_many` if the solver
    handles many predictions at once. Decision and label have the same shape.

    Example:
        >>> class Cheapest(lodl.LinearProblem):
        ...     sense = "min"
        ...     def solve(self, y_hat, context):
        ...         return np.eye(len(y_hat))[y_hat.argmin()]
        >>> Cheapest().objective(Cheapest().solve(np.array([3.0, 1.0]), None), np.array([3.0, 2.0]))
        2.0
    """

    def solve(self, y_hat: Array, context: InstanceContext) -> Decision:
        if not self.is_vectorised:
            raise NotImplementedError(f"{type(self).__name__} must write `solve` or `solve_many`.")
        return self.solve_many(np.asarray(y_hat)[np.newaxis], context)[0]

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        return float(self.objective_many(np.asarray(z)[np.newaxis], y, context)[0])

    def objective_many(self, zs: Any, y: Array, context: InstanceContext = None) -> Array:
        return inner_products(zs, y[np.newaxis])

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array:
        return np.asarray(z, dtype=np.float64)

    def are_feasible(self, zs: Array, context: InstanceContext) -> Flags | None:
        """Return which decisions of shape (k, *label_shape) a context allows; None if unknown.

        By default it is unknown, and instances with contexts learn from their own decisions alone.
        A problem that knows lets them share decisions, which takes far fewer solver calls.
        """
        return None


def inner_products(zs: Any, ys: Array) -> Array:
    """Return <z, y> of each decision and its label, shape (k,)."""
    decisions = np.asarray(zs, dtype=np.float64)
    if decisions.shape[1:] != ys.shape[1:]:
        shapes = f"the label's shape {ys.shape[1:]}, got {decisions.shape[1:]}"
        raise ShapeError(f"A decision of a linear problem must have {shapes}.")
    # Not `@`: BLAS rounds a row differently when the number of rows changes.
    products = np.ascontiguousarray(decisions * ys).reshape(len(decisions), -1)
    return np.asarray(products.sum(axis=1))


HOW_TO_TRAVEL = (  # advice for a problem that cannot be pickled: a solver often cannot once used
    "Let it rebuild its solver on the other side: `def __getstate__(self): return arguments` and "
    "`def __setstate__(self, arguments): self.__init__(*arguments)`."
)


def describe(problem: Problem) -> str:
    """Return the repr of a problem if its class defines one, else the name of the class."""
    has_repr = type(problem).__repr__ is not object.__repr__
    return repr(problem) if has_repr else type(problem).__name__


def label_names_of(problem: Problem, dim: int) -> tuple[str, ...] | None:
    """Return the names of the `dim` numbers in a label, or None if the problem has none."""
    names = tuple(problem.label_names)
    if names and len(names) != dim:
        wanted = f"a name for each of the {dim} numbers in a label"
        raise ProblemError(f"`label_names` must have {wanted}, got {len(names)}.")
    return names or None


def label_columns(problem: Problem, y: Any, name: str = "y") -> tuple[str, ...] | None:
    """Return the names that label columns are matched by: the problem's, else the frame's."""
    return tuple(problem.label_names) or arrays.column_names(y, name)


def in_label_columns(problem: Problem, y: Any, name: str = "y") -> Any:
    """Return labels. The columns of a frame are put in the order of `label_names`."""
    return arrays.in_columns(y, label_columns(problem, y, name), name, "in `problem.label_names`")


def check_instances(problem: Problem, y: Any, context: Any = None) -> tuple[Array, Context]:
    """Return labels, of an array or a frame, as an array, and contexts as a sequence or None."""
    check_problem_type(problem)
    labels = arrays.check_labels(in_label_columns(problem, y))
    contexts = arrays.check_context(context, len(labels))
    arrays.check_same_rows(y=y, context=context)
    return labels, contexts


def check_predicted(
    problem: Problem, y_hat: Any, y: Any, context: Any = None
) -> tuple[Array, Array, Context]:
    """Return predictions, which may have leading axes, and what `check_instances` returns."""
    labels, contexts = check_instances(problem, y, context)
    names = label_columns(problem, y)
    array = arrays.check_labels(arrays.in_columns(y_hat, names, "y_hat", "of `y`"), "y_hat")
    if array.shape[max(0, array.ndim - labels.ndim) :] != labels.shape:
        wanted = f"the labels' shape {labels.shape}, with or without leading axes"
        raise InvalidInputError(f"`y_hat` must have {wanted}, got {array.shape}.")
    arrays.check_same_rows(y=y, y_hat=y_hat, context=context)
    return array, labels, contexts


def projected(problem: Problem, y_hats: Array) -> Array:
    """Return predictions of shape (k, *label_shape) in the problem's valid range."""
    try:
        inside = np.asarray(problem.project(y_hats), dtype=np.float64)
    except Exception as error:
        called = f"It is called with many predictions at once, here of shape {y_hats.shape}."
        raised = f"`project` raised {type(error).__name__}: {error}."
        raise ProblemError(f"{raised} {called}") from error
    if inside.shape != y_hats.shape:
        wanted = f"the shape {y_hats.shape} of its argument"
        raise ShapeError(f"`project` must keep {wanted}, got {inside.shape}.")
    return inside


def check_problem_type(problem: object) -> None:
    """Check that an argument is a problem with a sense. The error says how to make one."""
    hint = "To make one from two functions, use `lodl.problem(solve, objective, sense=...)`."
    arrays.check_instance_of(Problem, "problem", problem, wanted="a `lodl.Problem`", hint=hint)
    check_sense(getattr(problem, "sense", None), type(problem).__name__)


def sign_of(problem: Problem) -> int:
    """Return the factor that turns the objective into a loss: 1 for "min", -1 for "max"."""
    return 1 if problem.sense == "min" else -1


def check_sense(sense: object, owner: str) -> None:
    """Check that a sense is "min" or "max". `owner` names the problem in the message."""
    if sense is None:
        advice = 'Set `sense = "min"` if the objective is a cost, `sense = "max"` if it is a gain.'
        raise ProblemError(f"{owner} does not state its sense. {advice}")
    if sense not in get_args(Sense):
        raise ProblemError(f'`sense` of {owner} must be "min" or "max", got {sense!r}.')
