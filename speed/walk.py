"""Walks of `learn_loss` and `fit`: files entered, records made, and records that hold the labels.

`python speed/walk.py` counts with `sys.setprofile` what a reader of one call has to follow: 40
instances with labels of five numbers, a linear model, a solver without context.
"""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import lodl

ROOT = str(Path(lodl.__file__).parent)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.exp(0.7 * X @ RNG.normal(size=(3, 5)))


class Truck(lodl.LinearProblem):
    """The best two of five."""

    sense = "max"
    n_solved = 0

    def solve(self, y_hat: np.ndarray, context: Any = None) -> np.ndarray:
        self.n_solved += 1
        return np.isin(np.arange(5), np.argsort(y_hat)[-2:]).astype(float)


class Walk:
    """Counts files of the package, changes from one to another, and instances of its classes."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self.holders: set[str] = set()
        self.n_changes = 0
        self._last = ""

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        code = frame.f_code
        if code.co_name == "__init__" and event == "return":
            self._note(next(iter(frame.f_locals.values())))
        if event == "call" and code.co_filename.startswith(ROOT):
            self.files[code.co_filename] += 1
            self.n_changes += code.co_filename != self._last
            self._last = code.co_filename

    def _note(self, thing: object) -> None:
        kind = type(thing)
        if str(kind.__module__).startswith("lodl."):
            self.classes[kind.__qualname__] += 1
            if any(map(_is_labels, vars(thing).values() if hasattr(thing, "__dict__") else ())):
                self.holders.add(kind.__qualname__)


def _is_labels(value: object) -> bool:
    if not isinstance(value, np.ndarray) or value.size != Y.size or value.dtype.kind != "f":
        return False
    return np.allclose(value.ravel(), Y.ravel(), rtol=1e-6)  # single precision is a copy, too


def walk(name: str, work: Callable[[lodl.Oracle], Any]) -> None:
    work(lodl.Oracle(Truck(), progress=False))  # imports what is loaded on first use
    oracle, counts = lodl.Oracle(Truck(), progress=False), Walk()
    sys.setprofile(counts)
    try:
        work(oracle)
    finally:
        sys.setprofile(None)
    print(f"{name}: {len(counts.files)} files entered, {counts.n_changes:,} changes of file")
    print(f"  {len(counts.classes)} classes, {counts.classes.total():,} instances of them")
    print(f"  labels are in {len(counts.holders)}: {', '.join(sorted(counts.holders))}")
    print(f"  {vars(oracle.problem)['n_solved']} solver calls made, {oracle.n_calls} counted")


if __name__ == "__main__":
    walk("learn_loss", lambda oracle: lodl.learn_loss(oracle, Y))
    walk("fit", lambda oracle: lodl.DecisionFocusedRegressor(oracle).fit(X, Y))
