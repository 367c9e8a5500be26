"""The only caller of `solve`: counts calls, limits their time, and refuses None."""

import faulthandler
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any

import numpy as np

from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import ProblemError, ShapeError
from lodl.oracle._signals import Alarm
from lodl.problems import Problem

_GRACE = 2.0  # seconds between the alarm, which a solver may ignore, and the end of its process
_UNLIMITED = nullcontext()
_nowhere: Any = None  # an open file that swallows the traceback of a process that ends itself


class Guard:
    """Calls the solver of a problem.

    Attributes:
        problem: The problem.
        n_calls: Number of calls made, failed calls included.
        alarm: Interrupts calls that exceed the time limit, if a signal can.
    """

    def __init__(
        self, problem: Problem, timeout: float | None = None, *, may_exit: bool = False
    ) -> None:
        """Create a guard.

        Args:
            problem: The problem.
            timeout: Seconds that a call may take.
            may_exit: Whether `limited` ends this process if the solver ignores the alarm.
        """
        self.problem, self.n_calls = problem, 0
        self.alarm, self._n_limited, self._is_limited = Alarm(timeout), 1, timeout is not None
        self._seconds = timeout if may_exit else None

    def solve(self, y_hat: Array, context: InstanceContext) -> Decision:
        """Return the decision under one prediction, which the solver may write to."""
        self.n_calls += 1
        z = self.problem.solve(y_hat, context)
        if z is None:
            raise ProblemError(
                "`solve` returned None: is a `return` missing, or is there no solution?"
            )
        return z

    def solve_many(self, y_hats: Array, context: InstanceContext) -> Any:
        """Return the decisions under many predictions, which the solver may write to."""
        self.n_calls += len(y_hats)
        zs = self.problem.solve_many(y_hats, context)
        if zs is None or (isinstance(zs, Sequence) and any(z is None for z in zs)):
            raise ProblemError("`solve_many` returned None: is a `return` missing?")
        if len(zs) != len(y_hats):
            raise ShapeError(
                f"`solve_many` must return one decision per prediction ({len(y_hats)}), "
                f"got {len(zs)}."
            )
        return zs

    def copied(self, problem: Problem) -> "Guard":
        """Return a guard of another problem with the same limits, whose calls count from 0."""
        other = copy(self)
        other.problem, other.n_calls = problem, 0
        return other

    def limited(self, n_calls: int = 1) -> AbstractContextManager[None]:
        """Limit the time of the `with` block to that of `n_calls` calls."""
        self._n_limited = n_calls
        return self if self._is_limited else _UNLIMITED

    def __enter__(self) -> None:
        if self._seconds is not None:
            global _nowhere
            _nowhere = _nowhere or open(os.devnull, "w")  # noqa: PTH123 - never closed
            # Unlike a signal, this also ends a solver that never returns to Python.
            seconds = self._n_limited * self._seconds + _GRACE
            faulthandler.dump_traceback_later(seconds, exit=True, file=_nowhere)
        self.alarm(self._n_limited)

    def __exit__(self, *_: object) -> None:
        self.alarm(0)
        if self._seconds is not None:
            faulthandler.cancel_dump_traceback_later()


def owned(z: Decision) -> Decision:
    """Return a copy of a decision, which stays as it is when the solver reuses its buffers."""
    if isinstance(z, np.ndarray):
        return z.copy()
    if type(z) in (list, tuple):
        return type(z)(map(owned, z))
    if type(z) is dict:
        return {key: owned(value) for key, value in z.items()}
    return z
