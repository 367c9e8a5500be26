"""Answers of many instances in one block, in memory or as one file.

A file is a NumPy archive (`.npz`): a zip file of plain arrays, each with a checksum. Nothing in it
is code.
"""

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.oracle._failure import OK

_DTYPES = {
    "ids": "|u1",
    "start": "<i4",
    "count": "<i4",
    "n_gradients": "<i4",
    "loss": "<f8",
    "status": "|u1",
    "decision": "<i4",
    "gradient": "<f8",
    "note": "|u1",
}


@dataclass(frozen=True, eq=False)
class Run:
    """Answers of one instance in successive columns.

    Attributes:
        id: What they are kept under.
        start: The first column.
        loss: Decision losses, NaN where a call failed.
        status: What became of each call.
        decision: Which row of `gradient` each decision has, -1 where it is not known.
        gradient: Derivatives of the loss by the label, shape (m, D).
    """

    id: bytes
    start: int
    loss: Array
    status: npt.NDArray[np.uint8]
    decision: npt.NDArray[np.int32]
    gradient: Array

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return 13 * len(self.loss) + self.gradient.nbytes + 100


@dataclass(frozen=True)
class Note:
    """What is worth keeping of the work besides its answers.

    Attributes:
        seconds: Time spent in tasks, summed over workers.
        failures: The first message of each kind of failure.
    """

    seconds: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)


class Shard:
    """Runs, joined into a few long arrays."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]], note: Note) -> None:
        self._arrays = arrays
        self.note = note
        self._first = np.concatenate([[0], np.cumsum(arrays["count"], dtype=np.int64)])
        self._first_gradient = np.concatenate(
            [[0], np.cumsum(arrays["n_gradients"], dtype=np.int64)]
        )

    @classmethod
    def of(cls, runs: Iterable[Run], note: Note) -> "Shard":
        """Join some runs; those with slopes must have labels of one size."""
        runs = list(runs)
        gradients = [run.gradient for run in runs if len(run.gradient)]
        arrays: dict[str, npt.NDArray[Any]] = {
            "ids": np.frombuffer(b"".join(run.id for run in runs), dtype=np.uint8).reshape(-1, 16),
            "start": np.array([run.start for run in runs], dtype=np.int32),
            "count": np.array([len(run.loss) for run in runs], dtype=np.int32),
            "n_gradients": np.array([len(run.gradient) for run in runs], dtype=np.int32),
            "loss": np.concatenate([run.loss for run in runs]),
            "status": np.concatenate([run.status for run in runs]),
            "decision": np.concatenate([run.decision for run in runs]),
            "gradient": np.concatenate(gradients) if gradients else np.empty((0, 0)),
        }
        return cls(arrays, note)

    @property
    def n_answers(self) -> int:
        """How many answers there are, whatever became of the calls."""
        return int(self._first[-1])

    @property
    def n_bytes(self) -> int:
        """Size in memory."""
        return sum(array.nbytes for array in self._arrays.values())

    def ids(self) -> list[bytes]:
        """Return what each run is kept under."""
        content = self._arrays["ids"].tobytes()
        return [content[i : i + 16] for i in range(0, len(content), 16)]

    def run(self, number: int) -> Run:
        """Return one of the runs."""
        arrays = self._arrays
        part = slice(self._first[number], self._first[number + 1])
        rows = slice(self._first_gradient[number], self._first_gradient[number + 1])
        return Run(
            arrays["ids"][number].tobytes(),
            int(arrays["start"][number]),
            arrays["loss"][part],
            arrays["status"][part],
            arrays["decision"][part],
            arrays["gradient"][rows],
        )

    def to_bytes(self) -> bytes:
        """Return the content of a file."""
        note = json.dumps({"seconds": self.note.seconds, "failures": self.note.failures})
        arrays = self._arrays | {"note": np.frombuffer(note.encode(), dtype=np.uint8)}
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Shard":
        """Read the content of a file.

        Raises:
            ValueError: It is damaged, or no such file.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                arrays = {name: _read(archive, name, dtype) for name, dtype in _DTYPES.items()}
            note = Note(**json.loads(arrays.pop("note").tobytes()))
        except Exception as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        _check(arrays)
        return cls(arrays, note)


def _read(archive: zipfile.ZipFile, name: str, dtype: str) -> npt.NDArray[Any]:
    array = np.lib.format.read_array(
        io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False, max_header_size=1000
    )
    if array.dtype.str != dtype:
        raise ValueError(f"{name} has type {array.dtype}")
    return array


def _check(arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Check that the arrays fit each other, and that every success has its value."""
    n_runs, total = len(arrays["start"]), int(arrays["count"].sum(dtype=np.int64))
    n_gradients = int(arrays["n_gradients"].sum(dtype=np.int64))
    is_sound = (
        arrays["ids"].shape == (n_runs, 16)
        and arrays["count"].shape == arrays["n_gradients"].shape == (n_runs,)
        and all(arrays[name].shape == (total,) for name in ("loss", "status", "decision"))
        and arrays["gradient"].shape[:1] == (n_gradients,)
        and min(arrays[name].min(initial=0) for name in ("start", "count", "n_gradients")) >= 0
        and (arrays["decision"] < np.repeat(arrays["n_gradients"], arrays["count"])).all()
        and np.isfinite(arrays["loss"][arrays["status"] == OK]).all()
        and np.isfinite(arrays["gradient"]).all()
    )
    if not is_sound:
        raise ValueError("its arrays do not fit each other")
