"""Size and speed of a store: bytes an answer, and answers written and read per CPU second.

    python speed/store.py

Losses are random, so that none repeat; without slopes. Reading is what `samples.table` does, 256
instances at a time.
"""

import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from lodl.oracle._store import ANSWER, Block, Store

SIZES = [(50_000, 20), (2_000, 1_000)]  # instances, answers an instance
AT_ONCE = 256  # instances of a task, and of a read


def blocks(n: int, k: int) -> list[Block]:
    rng = np.random.default_rng(0)
    ids, answers, none = rng.bytes(16 * n), np.empty((n, k), ANSWER), np.empty((0, 50))
    answers["loss"], answers["status"], answers["decision"] = rng.exponential(size=(n, k)), 1, -1
    names = [ids[16 * i : 16 * (i + 1)] for i in range(n)]
    starts = range(0, n, AT_ONCE)
    return [Block(names[i : i + AT_ONCE], 0, answers[i : i + AT_ONCE], none, {}) for i in starts]


def write(store: Store, answers: list[Block]) -> float:
    began = process_time()
    for block in answers:
        store.add([block])
    store.close()
    return process_time() - began


def read(store: Store, answers: list[Block], k: int) -> float:
    began = process_time()
    for block in answers:
        assert np.isfinite(store.table([(block.ids, k)]).loss).all()
    return process_time() - began


def main() -> None:
    print(f"{'answers':>20}{'bytes each':>12}{'written/s':>12}{'read/s':>12}")
    for n, k in SIZES:
        answers = blocks(n, k)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "answers.db")
            written = write(Store(path, np.ones(50)), answers)
            size = path.stat().st_size / (n * k)
            seconds = read(Store(path), answers, k)
        speeds = f"{n * k / written / 1e6:9.2f} mio{n * k / seconds / 1e6:8.2f} mio"
        print(f"{f'{n:,} x {k:,}':>20}{size:12.1f}{speeds}")


if __name__ == "__main__":
    main()
