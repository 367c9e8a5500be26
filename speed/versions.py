"""CPU time of `fit` and `learn_loss`, compared with an earlier version of the package.

    python speed/versions.py [REVISION]

Both versions run in turn, each time in a new process with one thread; imports are not counted.
The revision defaults to the last one before the oracle became an object with options.
"""

import gc
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from statistics import median
from time import process_time

REVISION = "c675d7e"
ROOT = Path(__file__).parents[1]
N_RUNS = 3
TASKS = {
    "fit, path, n = 100": lambda: fit("shortest_path", 100),
    "fit, path, n = 1,000": lambda: fit("shortest_path", 1000),
    "fit, knapsack, n = 500": lambda: fit("knapsack", 500),
    "fit, newsvendor, n = 300": lambda: fit("newsvendor", 300),
    "learn_loss, path, DecisionHinges, 20 samples": lambda: learn("DecisionHinges", 20),
    "learn_loss, path, DirectedWeightedMSE, 200 samples": lambda: learn("DirectedWeightedMSE", 200),
}


def fit(domain: str, n: int) -> Callable[[], object]:
    import lodl
    from lodl import DecisionFocusedRegressor

    data = getattr(lodl.domains, domain)(0, sizes=(n, 1, 1))
    part = data.splits.train
    return lambda: DecisionFocusedRegressor(data.problem).fit(part.x, part.y)


def learn(family: str, n_samples: int) -> Callable[[], object]:
    import lodl

    data = lodl.domains.shortest_path(0, sizes=(300, 1, 1))
    how = {"family": getattr(lodl, family)(), "n_samples": n_samples}
    return lambda: lodl.learn_loss(data.problem, data.splits.train.y, **how)


def run(task: str) -> None:
    """Print the CPU time of a task, after a first run that imports what it needs."""
    TASKS[min(TASKS)]()()
    work = TASKS[task]()
    gc.collect()
    gc.freeze()  # what was imported is not searched for garbage again
    started = process_time()
    work()
    print(process_time() - started)


def seconds(source: Path, task: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--task", task]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def compare(revision: str) -> None:
    command = ["git", "-C", str(ROOT), "archive", revision, "src"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        sources = Path(folder) / "src", ROOT / "src"
        print(f"{'CPU seconds':52} {revision:>8} {'now':>8}  now / {revision}")
        for task in TASKS:
            runs = [[seconds(source, task) for source in sources] for _ in range(N_RUNS)]
            before, now = map(median, zip(*runs, strict=True))
            print(f"{task:52} {before:8.2f} {now:8.2f}  {now / before:.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        run(sys.argv[2])
    else:
        compare(*sys.argv[1:] or [REVISION])
