"""How often a label's way through `learn_loss` changes file, in memory and with a store.

One label is learned in this process, and `sys.setprofile` follows the functions of `src/lodl`: a
call enters the file of the function called, a return goes back to the file of the nearest caller
within `src/lodl`. Three numbers are printed, and fewer are better:

- changes of file: all steps from one file to a different one, loops included;
- turns: the steps among them that lead back to the file the step before came from;
- calls to follow: pairs of a function and one it calls in another file, each pair counted once.

A first run, not counted, loads all modules.
"""

import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

import lodl
from lodl._typing import Array
from lodl.problems import VectorisedProblem

PACKAGE = str(Path(lodl.__file__).parent)


class Pick(VectorisedProblem):
    """Take the best item; all candidates are solved at once."""

    sense = "max"

    def solve_many(self, y_hats: Array, context: object) -> Array:
        return y_hats.argmax(axis=1)

    def objective_many(self, zs: Array, y: Array, context: object) -> Array:
        return y[zs]


class LabelPath:
    """The way of one call through the files of the package."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.calls: set[tuple[CodeType, CodeType]] = set()

    def follow(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return") or not is_ours(frame):
            return
        caller = frame.f_back
        while caller is not None and not is_ours(caller):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename == frame.f_code.co_filename:
            return
        if event == "call":
            self.calls.add((caller.f_code, frame.f_code))
        here = frame if event == "call" else caller
        if self.files[-1:] != [here.f_code.co_filename]:
            self.files.append(here.f_code.co_filename)


def is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(PACKAGE)


def learn(store: Path | None) -> None:
    lodl.learn_loss(
        Pick(),
        np.random.default_rng(0).random((1, 5)),
        family=lodl.DirectedWeightedMSE(),
        n_samples=100,
        store=store,
        progress=False,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        learn(Path(folder) / "first")
        for name, store in [("in memory", None), ("with a store", Path(folder) / "second")]:
            path = LabelPath()
            sys.setprofile(path.follow)
            learn(store)
            sys.setprofile(None)
            n_turns = sum(a == c for a, c in zip(path.files, path.files[2:], strict=False))
            print(
                f"{name:<14}{len(path.files):>4} changes of file, {n_turns} turns, "
                f"{len(path.calls)} calls to follow, {len(set(path.files))} files"
            )


if __name__ == "__main__":
    main()
