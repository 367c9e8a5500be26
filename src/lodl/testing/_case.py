"""A few instances of a user's problem, and the noise to try on them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl._typing import Array, Context, Decision, InstanceContext
from lodl._validation import context_of
from lodl.problems import Problem
from lodl.problems._regret import NO_DECISION
from lodl.problems._what_failed import what_failed

N_INSTANCES = 3
N_CANDIDATES = 4
RELATIVE = 1e-6
"""Solvers stop at tolerances of about this size."""

_PLAIN = (np.ndarray, list, tuple, set, Mapping)  # contexts to compare; others may cache


class FaultError(Exception):
    """A method of the problem raised, or returned something unusable; the message says which."""


@dataclass(frozen=True, eq=False)
class Case:
    """One instance and the noise to try on it."""

    problem: Problem
    y: Array
    context: InstanceContext
    noise: Array
    digest: str  # of the context before the first call

    @cached_property
    def candidates(self) -> Array:
        return self.project(self.y + self.noise)

    @cached_property
    def best(self) -> Decision:
        return self.solve(self.y)

    @cached_property
    def decisions(self) -> list[Decision]:
        return [self.solve(y_hat) for y_hat in self.candidates]

    @property
    def believed(self) -> list[float]:
        """What each decision would be worth if its prediction were true; equal if two tie."""
        return self.values_under_predictions(self.decisions)

    def values_under_predictions(self, zs: Sequence[Decision]) -> list[float]:
        return [self.value(z, y_hat) for z, y_hat in zip(zs, self.candidates, strict=True)]

    def project(self, y_hats: Array) -> Array:
        return np.asarray(self.call("project", y_hats.copy()))

    def solve(self, y_hat: Array) -> Decision:
        return self.call("solve", y_hat.copy(), self.context)

    def value(self, z: Decision, y: Array) -> float:
        value = self.call("objective", z, y, self.context)
        shape = getattr(value, "shape", ())
        if shape != ():
            raise FaultError(f"`objective` must return one number, got shape {shape}.")
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise FaultError(f"`objective` must return one number, got {value!r}.") from error

    def call(self, method: str, *arguments: Any) -> Any:
        try:
            found = getattr(self.problem, method)(*arguments)
        except Exception as error:
            raise FaultError(f"`{method}` raised {what_failed(error, self.context)}") from error
        if found is None and method == "solve":
            raise FaultError(NO_DECISION)
        return found


def cases(problem: Problem, y: Array, context: Context, seed: int) -> Iterator[Case]:
    """Yield the first few instances, each with noise as wide as the labels."""
    rng, scale = np.random.default_rng(seed), y.std() or 1.0
    for instance in range(min(N_INSTANCES, len(y))):
        noise = scale * rng.standard_normal((N_CANDIDATES, *y.shape[1:]))
        here = context_of(context, instance)
        yield Case(problem, y[instance], here, noise, digest_of(here))


def digest_of(context: InstanceContext) -> str:
    return digest(context if isinstance(context, _PLAIN) else None)
