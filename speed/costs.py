"""Costs of a `fit`: calls, seconds and memory, for the table of docs/explanation/costs.md.

    OMP_NUM_THREADS=1 python speed/costs.py                      # all rows, a quarter of an hour
    OMP_NUM_THREADS=1 python speed/costs.py linear-100,1000      # some

Paths on a 5x5 grid (labels of 40 numbers, five features, data seed 1001), one core. Every `fit`
runs in a new process, with the vectorised solver of the domain, which takes about 1 µs a
call. The columns for slower solvers are computed: the same seconds plus all calls one after another
at 1 ms or 1 s each.
"""

import resource
import subprocess
import sys
import time
from typing import Any, NamedTuple

from lodl import DecisionFocusedRegressor
from lodl.domains import shortest_path
from lodl.report.page import duration

SEED = 1001
SIZES = 100, 1000, 10_000, 100_000
KINDS = "linear", "LightGBM", "network"


class Cost(NamedTuple):
    """Calls, CPU seconds and memory of a fit of `n` instances."""

    n: float
    calls: float
    seconds: float
    megabytes: float


def estimator_of(kind: str) -> Any:
    if kind == "linear":
        return None
    if kind == "network":
        from lodl.training.torch import mlp

        return mlp(5, (40,), hidden=(64, 64))
    from lightgbm import LGBMRegressor

    return LGBMRegressor(verbosity=-1, n_jobs=1)


def measured(kind: str, n: int) -> Cost:
    """Return the cost of a fit, which nothing in this process has warmed up but its imports."""
    DecisionFocusedRegressor(shortest_path(1, sizes=(50, 1, 1)).problem, max_seconds=0)
    domain, estimator = shortest_path(SEED, sizes=(n, 1, 1)), estimator_of(kind)
    train, started = domain.splits.train, time.process_time()
    model = DecisionFocusedRegressor(domain.problem, estimator).fit(train.x, train.y)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(n, model.result_.n_calls, seconds, peak)


def in_a_process(kind: str, n: int) -> Cost:
    command = [sys.executable, __file__, "--one", kind, str(n)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Cost(*map(float, output.split()))


def line(kind: str, cost: Cost) -> str:
    times = [duration(cost.seconds + each * cost.calls) for each in (0, 1e-3, 1.0)]
    cells = kind, f"{int(cost.n):,}", f"{int(cost.calls):,}", *times, f"{cost.megabytes:,.0f} MB"
    return f"| {' | '.join(cells)} |"


def main(names: list[str]) -> None:
    """Print the rows of some learners and sizes, or of all."""
    wanted: dict[str, tuple[int, ...]] = dict.fromkeys(KINDS, SIZES)
    if names:
        pairs = (name.split("-") for name in names)
        wanted = {kind: tuple(map(int, sizes.split(","))) for kind, sizes in pairs}
    print("| model | instances | calls | solver of 1 µs | of 1 ms | of 1 s | memory |")
    print(f"|{'---|' * 7}")
    for kind, sizes in wanted.items():
        for n in sizes:
            print(line(kind, in_a_process(kind, n)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(*measured(sys.argv[2], int(sys.argv[3])))
    else:
        main(sys.argv[1:])
