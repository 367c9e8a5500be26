"""Size and speed of a store: bytes an answer, and answers written and read per CPU second.

    python speed/store.py

Losses are random, so that none repeat; without slopes. Reading is what `samples.table` does, 256
instances at a time.
"""

import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from lodl.oracle._store import ANSWER, Block, Run, Store

SIZES = [(50_000, 20), (2_000, 1_000)]  # instances, answers an instance
AT_ONCE = 256  # instances of a task, and of a read


def runs(n: int, k: int) -> list[Run]:
    rng = np.random.default_rng(0)
    ids, answers, none = rng.bytes(16 * n), np.empty((n, k), ANSWER), np.empty((0, 50))
    answers["loss"], answers["status"], answers["decision"] = rng.exponential(size=(n, k)), 1, -1
    return [(ids[16 * i : 16 * (i + 1)], 0, Block(answers[i], none, {})) for i in range(n)]


def write(store: Store, answers: list[Run]) -> float:
    began = process_time()
    for first in range(0, len(answers), AT_ONCE):
        store.add(answers[first : first + AT_ONCE])
    store.close()
    return process_time() - began


def read(store: Store, answers: list[Run], k: int) -> float:
    began = process_time()
    for first in range(0, len(answers), AT_ONCE):
        ids = [id_ for id_, _, _ in answers[first : first + AT_ONCE]]
        assert np.isfinite(store.table([(ids, k)]).loss).all()
    return process_time() - began


def main() -> None:
    print(f"{'answers':>20}{'bytes each':>12}{'written/s':>12}{'read/s':>12}")
    for n, k in SIZES:
        answers = runs(n, k)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "answers.db")
            written = write(Store(path, np.ones(50)), answers)
            size = path.stat().st_size / (n * k)
            seconds = read(Store(path), answers, k)
        speeds = f"{n * k / written / 1e6:9.2f} mio{n * k / seconds / 1e6:8.2f} mio"
        print(f"{f'{n:,} x {k:,}':>20}{size:12.1f}{speeds}")


if __name__ == "__main__":
    main()
