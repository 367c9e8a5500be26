"""A problem whose solver counts its calls, the same one for every method."""

import copy
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar

from lodl._typing import Array, Decision, InstanceContext
from lodl.problems import Problem

Purpose: TypeAlias = Literal["training", "looks", "test"]

_P = TypeVar("_P", bound=Problem)


class Ledger:
    """Oracle calls by their purpose.

    Attributes:
        calls: Calls so far: for training, to look at held-out decisions, and for the test.
        seconds: Processor time spent in them.
    """

    def __init__(self) -> None:
        self.calls: Counter[Purpose] = Counter()
        self.seconds: Counter[Purpose] = Counter()
        self._purpose: Purpose = "training"
        self._is_inside = False

    @contextmanager
    def purpose(self, purpose: Purpose) -> Iterator[None]:
        """Book calls in this block under another purpose."""
        before, self._purpose = self._purpose, purpose
        try:
            yield
        finally:
            self._purpose = before

    def move(self, n_calls: int, source: Purpose, target: Purpose) -> None:
        """Book calls under another purpose, once it is known what they were for."""
        self.calls[source] -= n_calls
        self.calls[target] += n_calls

    @contextmanager
    def booked(self, n_calls: int) -> Iterator[None]:
        """Book calls and their time; those that a call makes of the same solver are part of it."""
        if self._is_inside:
            yield
            return
        self._is_inside, started = True, time.process_time()
        try:
            yield
        finally:
            self._is_inside = False
            self.calls[self._purpose] += n_calls
            self.seconds[self._purpose] += time.process_time() - started  # type: ignore[assignment]


def counted(problem: _P) -> tuple[_P, Ledger]:
    """Return the problem with a solver that books every call, and its book."""
    twin, ledger = copy.copy(problem), Ledger()
    object.__setattr__(twin, "__class__", _counting(type(problem)))
    object.__setattr__(twin, "ledger", ledger)
    return twin, ledger


@cache
def _counting(kind: type[Problem]) -> type[Problem]:
    """Return a class like another one, whose solver books its calls."""

    def solve(self: Any, y_hat: Array, context: InstanceContext = None) -> Decision:
        with self.ledger.booked(1):
            return kind.solve(self, y_hat, context)

    def solve_many(self: Any, y_hats: Array, context: InstanceContext = None) -> Any:
        with self.ledger.booked(len(y_hats)):
            return kind.solve_many(self, y_hats, context)

    members: dict[str, Any] = {"solve": solve}
    if kind.solve_many is not Problem.solve_many:
        members["solve_many"] = solve_many
    return type(kind.__name__, (kind,), members)
