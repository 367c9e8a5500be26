"""How often a label's way through `learn_loss` changes file, in memory and with a store.

One label is learned in this process, and `sys.setprofile` follows the functions of `src/lodl`. Four
numbers are printed, and fewer are better:

- changes while reading: a reader follows the run and reads each function once, where it is first
  called; comprehensions belong to the function around them. This is how often the next function
  stands in another file than the one before. The code before the oracle knew instances by content
  (40200a2^) has 100 with the default family, about the 102 that were once counted in it;
- changes in that part of the way which is between the call of `Oracle.sample` and its return;
- changes while running: all steps from one file to another, loops and returns included;
- calls to follow: pairs of a function and one it calls in another file, each pair counted once.

A first run, not counted, loads all modules.
"""

import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import lodl
from lodl._typing import Array
from lodl.oracle import Oracle
from lodl.problems import VectorisedProblem

PACKAGE = str(Path(lodl.__file__).parent)


class Pick(VectorisedProblem):
    """Take the best item; all candidates are solved at once."""

    sense = "max"

    def solve_many(self, y_hats: Array, context: object) -> Array:
        return y_hats.argmax(axis=1)

    def objective_many(self, zs: Any, y: Array, context: object) -> Array:
        return y[zs]


class LabelPath:
    """The way of one call through the files of the package."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.calls: set[tuple[CodeType, CodeType]] = set()
        self.read: dict[CodeType, bool] = {}  # in the order of first calls; whether in `sample`
        self.is_sampling = False

    def follow(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return") or not is_ours(frame):
            return
        code = frame.f_code
        if code is Oracle.sample.__code__:
            self.is_sampling = event == "call"
        if event == "call" and not code.co_name.startswith("<"):
            self.read.setdefault(code, self.is_sampling)
        caller = frame.f_back
        while caller is not None and not is_ours(caller):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename == code.co_filename:
            return
        if event == "call":
            self.calls.add((caller.f_code, code))
        here = frame if event == "call" else caller
        if self.files[-1:] != [here.f_code.co_filename]:
            self.files.append(here.f_code.co_filename)

    def n_changes(self, *, sampling_only: bool = False) -> int:
        read = [code for code, is_sampling in self.read.items() if is_sampling or not sampling_only]
        return sum(a.co_filename != b.co_filename for a, b in pairwise(read))


def is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGE)


def learn(store: Path | None) -> None:
    y = np.random.default_rng(0).random((1, 5))
    lodl.learn_loss(Oracle(Pick(), store=store, progress=False), y, n_samples=100)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        learn(Path(folder) / "first")
        for name, store in [("in memory", None), ("with a store", Path(folder) / "second")]:
            path = LabelPath()
            sys.setprofile(path.follow)
            learn(store)
            sys.setprofile(None)
            print(
                f"{name:<14}{path.n_changes():>4} changes while reading "
                f"({path.n_changes(sampling_only=True)} in `sample`), {len(path.files)} while "
                f"running, {len(path.calls)} calls to follow, {len(set(path.files))} files"
            )


if __name__ == "__main__":
    main()
