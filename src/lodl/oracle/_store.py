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
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import numpy as np

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._failure import OK
from lodl.oracle._folder import Folder
from lodl.oracle._known import Known
from lodl.oracle._shard import Shard

_HEADER = "lodl.json"
_PLAN = "plan.json"
_FORMAT = "lodl answers"
_VERSION = 2
_MAX_BYTES = 2**24  # of a shard
_MAX_LOADED = 2**29  # bytes of a folder's shards kept in memory

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """How far a store is."""

    n_answers: int  # oracle calls whose answers it holds, failed ones included
    n_failures: int  # how many of these failed
    n_planned: int  # answers that it holds when the last run is complete
    seconds: float  # time that the answers took, summed over workers

    @property
    def n_missing(self) -> int:
        """Calls that the last run has still to make."""
        return max(self.n_planned - self.n_answers, 0)

    def __str__(self) -> str:
        cost = self.seconds / max(self.n_answers, 1)
        left = "complete, as far as it was last asked for"
        if self.n_missing:
            seconds = f"about {self.n_missing * cost:.3g} s of one worker"
            left = f"{self.n_missing:,} calls missing, {seconds}"
        done = f"{self.n_answers:,} answers, {self.n_failures:,} of them failed calls"
        return f"{done}\n{cost * 1e3:.3g} ms a call\n{left}"


class Store:
    """Answers by what was asked; here in memory only.

    Attributes:
        spread: How far labels lie apart in each coordinate: the noise of samplers whose scale is
            "auto", and the unit of the steps by which slopes are taken. A folder keeps that of
            the labels it was made with, so that a part of them finds its answers.
        verified_with: The problem that the answers were found to be of, if any.
        name, note: What a message calls the store, and says about what is kept.
        n_answers, seconds: How many answers there are, failed calls included, and their time.
        failures: Messages of failures; see `Shard`.
    """

    verified_with: object = None
    name = "The store"
    note = "Nothing is kept; with `store=` what is done is kept and the next run goes on from it."

    def __init__(self, spread: Array) -> None:
        self.spread = spread
        self.n_answers, self.seconds = 0, 0.0
        self.failures: dict[str, str] = {}
        self._index: dict[bytes, list[tuple[int, int]]] = {}
        self._shards: list[Any] = []
        self._n_planned = 0

    def check(self, spread: Array, problem: Mapping[str, str]) -> None:
        """Raise if answers about labels of a spread, and a problem's name, do not belong here."""
        if np.shape(spread) != self.spread.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.spread.shape}, these have "
                f"shape {np.shape(spread)}. Choose another store."
            )

    def add(self, shard: Shard) -> None:
        """Take answers."""
        self._register(shard, shard)

    def flush(self) -> None:
        """Keep, and know, all answers taken so far."""

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._index

    def known(self, ids: Sequence[bytes], n_columns: int, *, slopes: bool = False) -> Known:
        """Return what is known about the first columns kept under some ids.

        With `slopes` an answer that lacks one is a failure if the slope failed, else pending.
        """
        known = Known(len(ids), n_columns)
        for row, id_ in enumerate(ids):
            for shard, number in self._index.get(id_, ()):
                known.lay(row, self._shard(shard), number)
        if slopes:
            known.require_slopes()
        return known

    def select(self, ids: Iterable[bytes]) -> "Store":
        """Return a store in memory with the answers kept under some ids."""
        runs = defaultdict[int, list[int]](list)
        for id_ in dict.fromkeys(ids):
            for shard, number in self._index.get(id_, ()):
                runs[shard].append(number)
        store = Store(self.spread)
        for shard in sorted(runs):
            store.add(self._shard(shard).take(runs[shard]))
        store.seconds = self.seconds * store.n_answers / max(self.n_answers, 1)
        store.failures = self.failures
        return store

    def update(self, other: "Store") -> None:
        """Take all answers of another store."""
        seconds = self.seconds + other.seconds
        for number in range(len(other._shards)):
            self.add(other._shard(number))
        self.seconds, self.failures = seconds, other.failures | self.failures

    def plan(self, n_pending: int) -> None:
        """Note how many calls a run is about to make."""
        self._n_planned = self.n_answers + n_pending

    @property
    def progress(self) -> Progress:
        """How far the last run is, and what it costs."""
        shards = (self._shard(number) for number in range(len(self._shards)))
        n_failures = sum(int(np.sum(shard.status > OK)) for shard in shards)
        return Progress(self.n_answers, n_failures, self._planned(), self.seconds)

    def _planned(self) -> int:
        return self._n_planned

    def _register(self, shard: Shard, kept: Any) -> None:
        """Find answers from now on; `kept` is what `_shard` knows the shard by."""
        self.n_answers += shard.n_answers
        self.seconds += shard.seconds
        self.failures = shard.failures | self.failures
        for place, id_ in enumerate(shard.id_list()):
            self._index.setdefault(id_, []).append((len(self._shards), place))
        self._shards.append(kept)

    def _shard(self, number: int) -> Shard:
        shard: Shard = self._shards[number]
        return shard


class FolderStore(Store):
    """A store in a folder, or behind a URL that fsspec understands."""

    def __init__(self, place: str, header: dict[str, Any]) -> None:
        super().__init__(np.array(header["spread"], dtype=np.float64))
        self.name = place
        self.note = f"What was done is kept in {place}."
        self.header = header
        self._folder = Folder(place)
        self._loaded: OrderedDict[str, Shard] = OrderedDict()
        self._buffer: list[Shard] = []
        self._folder.remove_old_drafts()
        for name in sorted(self._folder.names("answers-")):
            try:
                shard = self._load(name)
            except (ValueError, FileNotFoundError) as error:
                _logger.warning("%s in %s is damaged: %s. It is left out.", name, place, error)
            except OSError as error:
                raise StoreError(f"{name} in {place} cannot be read: {error}.") from error
            else:
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

    def plan(self, n_pending: int) -> None:
        if n_pending:
            planned = {"n_answers": self.n_answers + n_pending}
            self._write(_PLAN, json.dumps(planned).encode())

    def _planned(self) -> int:
        try:
            return int(json.loads(self._folder.read_if_there(_PLAN) or b"{}")["n_answers"])
        except (KeyError, TypeError, ValueError):  # absent, or damaged
            return 0

    def add(self, shard: Shard) -> None:
        self._buffer.append(shard)
        if sum(one.n_bytes for one in self._buffer) > _MAX_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._buffer:
            shard = Shard.join(self._buffer)
            name = f"answers-{time.time_ns():019d}-{uuid4().hex[:8]}.npz"
            self._write(name, shard.to_bytes())
            self._remember(name, shard)
            self._register(shard, name)
            self._buffer = []

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._folder.write(name, content)
        except OSError as error:
            raise StoreError(
                f"Answers cannot be written to {self.name}: {error}. Those written before are "
                "kept, and the next run goes on from them."
            ) from error

    def _shard(self, number: int) -> Shard:
        name = self._shards[number]
        if name in self._loaded:
            self._loaded.move_to_end(name)
            return self._loaded[name]
        try:
            return self._load(name)
        except (ValueError, OSError) as error:
            raise StoreError(
                f"{name} in {self.name} was damaged while it was in use: {error}. Sample "
                "again: only what is missing is computed."
            ) from error

    def _load(self, name: str) -> Shard:
        shard = Shard.from_bytes(self._folder.read(name))
        self._remember(name, shard)
        return shard

    def _remember(self, name: str, shard: Shard) -> None:
        """Keep a shard in memory, and let go of those that were not used for longest."""
        self._loaded[name] = shard
        n_bytes = sum(one.n_bytes for one in self._loaded.values())
        while n_bytes > _MAX_LOADED and len(self._loaded) > 1:
            n_bytes -= self._loaded.popitem(last=False)[1].n_bytes


def open_store(
    place: str | os.PathLike[str],
    *,
    spread: Array | None = None,
    problem: Mapping[str, str] = MappingProxyType({}),
) -> FolderStore:
    """Return the store at a folder or URL.

    Args:
        place: The folder or URL.
        spread: How far labels lie apart, for a store that is made now; None opens what is there.
        problem: Name and version that the user gave the problem, if any.

    Raises:
        StoreError: There is none and none is made, it is damaged, or of another problem.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, n_samples=10, store="answers")
        >>> lodl.oracle.open_store("answers").progress.n_answers
        22
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
