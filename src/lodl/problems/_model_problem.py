"""The base of solver adapters: a model per thread that is set, optimised and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl._threads import PerThread
from lodl._typing import Array, Decision, InstanceContext, Sense
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems._problem import Problem, check_sense


class Model(ABC):
    """A model of a solver library, as one thread uses it. An adapter derives from it.

    For a decision, `ModelProblem` calls `set`, `optimise` and `read`; for its objective `set`,
    `fix`, `optimise` or `check_fixed`, and `value`. `set` must leave no trace of the call before.
    """

    has_recourse: bool = True  # whether other variables are solved for once a decision is fixed
    _context: str | None = None  # digest of the context that the model was built for

    @abstractmethod
    def set(self, y: Array, context: InstanceContext) -> None:
        """Set the predicted numbers to `y`, everything else as the context or the model says."""

    @abstractmethod
    def optimise(self) -> None:
        """Solve the model. If there is no decision, raise `ProblemError` with the status."""

    @abstractmethod
    def read(self) -> Decision:
        """Return the decision of the last solve, in arrays that no later call changes."""

    @abstractmethod
    def fix(self, z: Decision) -> None:
        """Fix the variables of a decision, until the next `set`."""

    @abstractmethod
    def value(self) -> float:
        """Return the model's objective at the present values of its variables."""

    def build_for(self, context: InstanceContext, build: Callable[[], None]) -> None:
        """Build the model, unless it was built for the same context."""
        try:
            key = digest(context)
        except InvalidInputError:  # contexts that cannot be compared
            key = None
        if key is None or key != self._context:
            self._context = None
            build()
            self._context = key

    def check_fixed(self) -> None:  # noqa: B027 - predicted costs forbid no decision
        """Raise `ProblemError` if the numbers that are set forbid the decision that is fixed."""

    def slope(self, z: Decision, y: Array, context: InstanceContext) -> Array | None:
        """Return the derivative of the objective with respect to `y`, or None if unknown."""
        return None

    def project(self, y_hats: Array) -> Array:
        """Map predictions of shape (k, *label_shape) into the range that the model accepts."""
        return y_hats


class ModelProblem(Problem):
    """A problem solved by a model of a solver library, built once per process and thread."""

    _made_of = ""  # name of the model, or of the function that builds it

    def __init__(
        self, sense: Sense, build: Callable[..., Model], *, first_stage: Any = None
    ) -> None:
        check_sense(sense, type(self).__name__)
        self.sense = sense
        self._models = PerThread(build)
        # In one model, to fix and free the first stage would make a solver start anew.
        scorer = partial(build, is_fixed=True)
        self._scorers = self._models if first_stage is None else PerThread(scorer)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._made_of})" if self._made_of else type(self).__name__

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        model = self._models.get()
        model.set(y_hat, context)
        model.optimise()
        return model.read()

    def objective(self, z: Decision, y: Array, context: InstanceContext = None) -> float:
        model = self._scorers.get()
        model.set(y, context)
        model.fix(z)
        try:
            model.optimise() if model.has_recourse else model.check_fixed()
            return model.value()
        except ProblemError as error:
            raise ProblemError(
                f"The decision cannot be scored under the label: {error} Give the model recourse: "
                "variables that are not part of the decision and make up for a wrong one, at a "
                "price. The decision consists of `first_stage`, or of what `build` returns."
            ) from error

    def slope(self, z: Decision, y: Array, context: InstanceContext = None) -> Array | None:
        return self._scorers.get().slope(z, y, context)

    def project(self, y_hats: Array) -> Array:
        return self._models.get().project(y_hats)


def check_replacements(context: InstanceContext, names: Collection[str], kind: str) -> Any:
    """Return the context of an instance as a dict from known names, of a `kind`, to values."""
    if context is None:
        return {}
    if isinstance(context, Mapping) and set(context) <= set(names):
        return context
    given = f"keys {list(context)}" if isinstance(context, Mapping) else type(context).__name__
    wanted = f"a dict of {kind} among {list(names)}"
    raise InvalidInputError(f"The context of an instance must be {wanted}, got {given}.")


def check_size(y: Array, size: int, numbers: str) -> Array:
    """Return a prediction as a vector of `size` numbers; `numbers` says which they are."""
    if np.size(y) != size:
        raise ShapeError(f"A prediction must have {size} {numbers}, got shape {np.shape(y)}.")
    return np.ravel(y)
