"""Where answers are kept: in memory, or in a folder that survives the process.

    lodl.json         format, shape and spread of the labels, the problem's name and version
    plan.json         how many answers were last asked for
    answers-….npz     answers of many instances each, never changed once written

A file appears all at once, so a kill loses what was not yet written and damages nothing. Several
processes may share a folder: each adds files of its own. Answers are known by what was asked, so
what two processes both found out is the same. A file that fails its checksums is left out, and its
answers are computed again.
"""

import json
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._failure import OK, PENDING
from lodl.oracle._folder import Folder
from lodl.oracle._shard import Note, Run, Shard

_HEADER = "lodl.json"
_PLAN = "plan.json"
_FORMAT = "lodl answers"
_VERSION = 2
_MAX_BYTES = 2**24  # of a shard
_MAX_LOADED = 2**29  # bytes of a folder's shards kept in memory

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Known:
    """What is known about the first columns of one instance; see `Run`."""

    loss: Array
    status: npt.NDArray[np.uint8]
    decision: npt.NDArray[np.int32]
    gradient: Array

    def is_pending(self, *, retry: bool) -> npt.NDArray[np.bool_]:
        """Return which calls must be made, failed ones again if `retry`."""
        return np.asarray(self.status != OK if retry else self.status == PENDING)


@dataclass(frozen=True)
class Progress:
    """How far a store is.

    Attributes:
        n_answers: Oracle calls whose answers it holds, failed ones included.
        n_failures: How many of these failed.
        n_planned: Answers that it holds when the last run is complete.
        seconds: Time that the answers took, summed over workers.
    """

    n_answers: int
    n_failures: int
    n_planned: int
    seconds: float

    @property
    def n_missing(self) -> int:
        """Calls that the last run has still to make."""
        return max(self.n_planned - self.n_answers, 0)

    def __str__(self) -> str:
        cost = self.seconds / max(self.n_answers, 1)
        left = (
            f"{self.n_missing:,} calls missing, about {self.n_missing * cost:.3g} s of one worker"
            if self.n_missing
            else "complete, as far as it was last asked for"
        )
        return "\n".join(
            [
                f"{self.n_answers:,} answers, {self.n_failures:,} of them failed calls",
                f"{cost * 1e3:.3g} ms a call",
                left,
            ]
        )


class Store:
    """Answers by what was asked; here in memory only.

    Attributes:
        spread: How far labels lie apart in each coordinate: the noise of samplers whose scale is
            "auto", and the unit of the steps by which slopes are taken. A folder keeps that of
            the labels it was made with, so that a part of them finds its answers.
        verified_with: The problem that the answers were found to be of, if any.
        name: What a message calls the store.
        note: What a message says about what is kept.
    """

    verified_with: object = None
    name = "The store"
    note = "Nothing is kept; with `store=` what is done is kept and the next run goes on from it."

    def __init__(self, spread: Array) -> None:
        self.spread = spread
        self._index: dict[bytes, list[tuple[int, int]]] = {}
        self._shards: list[Shard | str] = []
        self._buffer: list[Run] = []
        self._buffered: dict[bytes, list[Run]] = {}
        self._note = Note()
        self._n_bytes = self._n_answers = self._n_planned = 0

    def check(self, spread: Array, problem: Mapping[str, str]) -> None:
        """Check that answers about some labels and problem may be kept here.

        Args:
            spread: How far the labels lie apart.
            problem: Name and version that the user gave the problem, if any.

        Raises:
            StoreError: The labels have another shape, or the problem another name or version.
        """
        if np.shape(spread) != self.spread.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.spread.shape}, these have "
                f"shape {np.shape(spread)}. Choose another store."
            )

    def add(self, runs: Iterable[Run]) -> None:
        """Take answers."""
        for run in runs:
            self._buffer.append(run)
            self._buffered.setdefault(run.id, []).append(run)
            self._n_bytes += run.n_bytes
            self._n_answers += len(run.loss)
        if self._n_bytes > _MAX_BYTES:
            self.flush()

    def add_note(self, seconds: float, failures: dict[str, str]) -> None:
        """Take what else is worth keeping."""
        self._note = Note(self._note.seconds + seconds, failures | self._note.failures)

    def flush(self) -> None:
        """Keep all answers taken so far."""
        if self._buffer:
            shard = Shard.of(self._buffer, self._note)
            self._register(shard, self._keep(shard))
            self._buffer, self._buffered, self._n_bytes = [], {}, 0
            self._note = Note()

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._index or id_ in self._buffered

    def known(self, id_: bytes, n_columns: int, *, slopes: bool = False) -> Known:
        """Return what is known about the first columns kept under an id.

        Args:
            id_: What they are kept under.
            n_columns: How many columns.
            slopes: Whether an answer needs a slope: without one it is a failure if the slope
                failed, and pending if it was never asked for.
        """
        failed: npt.NDArray[np.uint8] | np.uint8
        runs = [self._shard(shard).run(number) for shard, number in self._index.get(id_, ())]
        runs += self._buffered.get(id_, ())
        if len(runs) == 1 and runs[0].start == 0 and len(runs[0].loss) == n_columns:
            run, failed = runs[0], np.uint8(PENDING)
            known = Known(run.loss, run.status, run.decision, run.gradient)
        else:
            known, failed = _merge(runs, n_columns)
        if slopes:
            lacks = (known.status == OK) & (known.decision < 0)
            known = replace(known, status=np.where(lacks, failed, known.status))
        return known

    @property
    def notes(self) -> Note:
        """What else is kept, of all shards together."""
        shards = [shard for shard in self._shards if isinstance(shard, Shard)]
        return _joined([*(shard.note for shard in shards), self._note])

    def select(self, ids: Iterable[bytes]) -> "Store":
        """Return a store in memory with the answers kept under some ids."""
        store = Store(self.spread)
        for id_ in dict.fromkeys(ids):
            store.add(self._shard(shard).run(number) for shard, number in self._index.get(id_, ()))
            store.add(self._buffered.get(id_, ()))
        store.flush()
        share = store.n_answers / max(self.n_answers, 1)
        store.add_note(share * self.notes.seconds, self.notes.failures)
        return store

    def update(self, other: "Store") -> None:
        """Take all answers of another store."""
        for id_ in {**other._index, **other._buffered}:
            self.add(other._shard(shard).run(number) for shard, number in other._index.get(id_, ()))
            self.add(other._buffered.get(id_, ()))
        self.flush()
        self.add_note(other.notes.seconds, other.notes.failures)

    @property
    def n_answers(self) -> int:
        """How many answers there are, whatever became of the calls."""
        return self._n_answers

    def plan(self, n_pending: int) -> None:
        """Note how many calls a run is about to make."""
        self._n_planned = self.n_answers + n_pending

    @property
    def progress(self) -> Progress:
        """How far the last run is, and what it costs."""
        runs = [self._shard(i).run(j) for at in self._index.values() for i, j in at]
        runs += self._buffer
        n_failures = sum(int(np.sum(run.status > OK)) for run in runs)
        return Progress(self.n_answers, n_failures, self._planned(), self.notes.seconds)

    def _planned(self) -> int:
        return self._n_planned

    def _register(self, shard: Shard, kept: Shard | str) -> None:
        number = len(self._shards)
        self._shards.append(kept)
        for place, id_ in enumerate(shard.ids()):
            self._index.setdefault(id_, []).append((number, place))

    def _keep(self, shard: Shard) -> Shard | str:
        return shard

    def _shard(self, number: int) -> Shard:
        shard = self._shards[number]
        assert isinstance(shard, Shard)
        return shard


class FolderStore(Store):
    """A store in a folder, or behind a URL that fsspec understands."""

    def __init__(self, place: str, header: dict[str, Any]) -> None:
        super().__init__(np.array(header["spread"], dtype=np.float64))
        self.name = place
        self.note = f"What was done is kept in {place}."
        self.header = header
        self._folder = Folder(place)
        self._loaded: OrderedDict[int, Shard] = OrderedDict()
        self._n_loaded = 0
        self._notes: list[Note] = []
        self._folder.remove_old_drafts()
        for name in sorted(self._folder.names("answers-")):
            try:
                shard = Shard.from_bytes(self._folder.read(name))
            except (ValueError, FileNotFoundError) as error:
                _logger.warning("%s in %s is damaged: %s. It is left out.", name, place, error)
                continue
            except OSError as error:
                raise StoreError(f"{name} in {place} cannot be read: {error}.") from error
            self._notes.append(shard.note)
            self._n_answers += shard.n_answers
            self._register(shard, name)

    def check(self, spread: Array, problem: Mapping[str, str]) -> None:
        super().check(spread, problem)
        for name in ("name", "problem_version"):
            there, here = self.header.get(name), problem.get(name)
            if there is not None and here is not None and there != here:
                raise StoreError(
                    f"{self.name} holds answers of a problem whose "
                    f"{name.removeprefix('problem_')} is {there!r}, this one's is {here!r}. "
                    "Choose another store."
                )

    @property
    def notes(self) -> Note:
        return _joined([*self._notes, self._note])

    def plan(self, n_pending: int) -> None:
        if n_pending:
            planned = {"n_answers": self.n_answers + n_pending}
            self._write(_PLAN, json.dumps(planned).encode())

    def _planned(self) -> int:
        try:
            return int(json.loads(self._folder.read_if_there(_PLAN) or b"{}")["n_answers"])
        except (KeyError, TypeError, ValueError):  # absent, or damaged
            return 0

    def _keep(self, shard: Shard) -> str:
        name = f"answers-{time.time_ns():019d}-{uuid4().hex[:8]}.npz"
        self._write(name, shard.to_bytes())
        self._notes.append(shard.note)
        return name

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._folder.write(name, content)
        except OSError as error:
            raise StoreError(
                f"Answers cannot be written to {self.name}: {error}. Those written before are "
                "kept, and the next run goes on from them."
            ) from error

    def _shard(self, number: int) -> Shard:
        shard = self._loaded.get(number)
        if shard is None:
            name = self._shards[number]
            assert isinstance(name, str)
            try:
                shard = Shard.from_bytes(self._folder.read(name))
            except (ValueError, OSError) as error:
                raise StoreError(
                    f"{name} in {self.name} was damaged while it was in use: {error}. Sample "
                    "again: only what is missing is computed."
                ) from error
            self._loaded[number] = shard
            self._n_loaded += shard.n_bytes
            while self._n_loaded > _MAX_LOADED and len(self._loaded) > 1:
                self._n_loaded -= self._loaded.popitem(last=False)[1].n_bytes
        self._loaded.move_to_end(number)
        return shard


def open_store(
    place: str | os.PathLike[str],
    *,
    spread: Array | None = None,
    problem: Mapping[str, str] = MappingProxyType({}),
) -> FolderStore:
    """Return the store at a place.

    Args:
        place: A folder or a URL.
        spread: How far labels lie apart, for a store that is made now; None opens what is there.
        problem: Name and version that the user gave the problem, if any.

    Raises:
        StoreError: There is none and none is made, it is damaged, or of another problem.
    """
    place = absolute(place)
    folder = Folder(place)
    names = folder.names("")  # before the header is looked for: it is the first file of a store
    raw = folder.read_if_there(_HEADER)
    if raw is None:
        _check_empty(names, place)
        if spread is None:
            raise StoreError(f"There is no store at {place}. `lodl.oracle.sample` makes it.")
        header = {"format": _FORMAT, "version": _VERSION, "spread": spread.tolist(), **problem}
        try:
            folder.write_once(_HEADER, json.dumps(header).encode())
        except OSError as error:
            raise StoreError(f"No store can be made at {place}: {error}.") from error
        raw = folder.read(_HEADER)
    store = FolderStore(place, _check_header(place, raw))
    store.check(store.spread if spread is None else spread, problem)
    return store


def absolute(place: str | os.PathLike[str]) -> str:
    """Return a place that does not move with the working folder."""
    text = os.fspath(place).removeprefix("file://")
    return text if "://" in text else os.path.abspath(text)  # noqa: PTH100 - symlinks stay


def _check_header(place: str, raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw)
        version = header["version"] if header["format"] == _FORMAT else None
        np.array(header["spread"], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{_HEADER} in {place} is damaged: {error}. Remove the store.") from error
    if version != _VERSION:
        raise StoreError(
            f"{place} is of format version {version}, this version of lodl reads {_VERSION}. "
            "Choose another place and sample again."
        )
    return dict(header)


def _check_empty(names: list[str], place: str) -> None:
    if "zarr.json" in names:
        raise StoreError(
            f"{place} was written by an older version of lodl. Choose another place and sample "
            "again."
        )
    if names:
        raise StoreError(
            f"{place} is not empty and has no {_HEADER}: it is no store, or a damaged one. "
            "Choose another place, or remove it."
        )


def _joined(notes: list[Note]) -> Note:
    failures: dict[str, str] = {}
    for note in notes:
        failures = note.failures | failures
    return Note(sum(note.seconds for note in notes), failures)


def _merge(runs: list[Run], n_columns: int) -> tuple[Known, npt.NDArray[np.uint8]]:
    """Lay runs over each other: a success covers a failure, one with a slope one without.

    Returns:
        What is known, and the status of failures that came after a success without a slope: it
        is the slope that failed.
    """
    loss, status = np.full(n_columns, np.nan), np.zeros(n_columns, dtype=np.uint8)
    decision = np.full(n_columns, -1, dtype=np.int32)
    rank, failed = np.zeros(n_columns, dtype=np.int8), np.zeros(n_columns, dtype=np.uint8)
    n_gradients = 0
    for run in runs:
        at = slice(run.start, min(run.start + len(run.loss), n_columns))
        n = max(at.stop - at.start, 0)
        if n == 0:
            continue
        new = replace(run, status=run.status[:n], decision=run.decision[:n], loss=run.loss[:n])
        worth = (new.status > 0).astype(np.int8) + (new.status == OK) + (new.decision >= 0)
        failed[at] = np.where((rank[at] == 2) & (worth == 1), new.status, failed[at])
        better = worth > rank[at]
        rank[at] = np.where(better, worth, rank[at])
        loss[at] = np.where(better, new.loss, loss[at])
        status[at] = np.where(better, new.status, status[at])
        shifted = np.where(new.decision >= 0, new.decision + n_gradients, -1)
        decision[at] = np.where(better, shifted, decision[at])
        n_gradients += len(run.gradient)
    gradients = [run.gradient for run in runs if len(run.gradient) and run.start < n_columns]
    gradient = np.concatenate(gradients) if gradients else np.empty((0, 0))
    return Known(loss, status, decision, gradient), failed
