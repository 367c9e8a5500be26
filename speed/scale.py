"""CPU seconds and memory of `learn_loss`, and of a linear `fit`, at the largest sizes.

    OMP_NUM_THREADS=1 python speed/scale.py paths 1000000     # labels of 40 numbers; `learn_loss`
    OMP_NUM_THREADS=1 python speed/scale.py top 300 5000      # labels of 5,000 numbers; both

"paths" are the domain's on a 5x5 grid. "top" are the best 50 of D items with labels from a gamma
distribution and random features, so that nothing can be predicted. Data seed 1001, both solvers are
vectorised.
"""

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lodl
from lodl._typing import Array
from lodl.domains import TopK, shortest_path


def measured(name: str, run: Callable[[], Any]) -> None:
    started = time.process_time()
    run()
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {seconds:.1f} CPU s, at most {peak:,.0f} MB", flush=True)


def main(kind: str, n: int, dim: int = 40) -> None:
    problem: lodl.Problem
    y: Array
    if kind == "paths":
        domain = shortest_path(1001, sizes=(n, 1, 1))
        problem, y = domain.problem, domain.splits.train.y
    else:
        problem, y = TopK(50), np.random.default_rng(1001).gamma(2.0, size=(n, dim))
    measured("learn_loss", lambda: lodl.learn_loss(problem, y))
    if kind == "top":
        x = np.random.default_rng(1).normal(size=(n, 5))
        measured("fit", lambda: lodl.DecisionFocusedRegressor(problem).fit(x, y))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
