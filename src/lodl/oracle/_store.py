"""Where answers are kept: in memory, or in a folder that survives the process.

    lodl.json         format, shape and spread of the labels, the problem's name and parameters
    plan.json         how many answers were last asked for
    answers-….npz     answers of many instances each

A file appears all at once, and only the last one of a process is replaced by a longer one: a kill
loses what was not yet written and damages nothing. Several processes may share a folder: each adds
files of its own. Answers are known by what was asked, so what two processes both found out is the
same. A file that fails its checksums is left out, and its answers are computed again.
"""

import json
import logging
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import numpy as np

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._failure import OK
from lodl.oracle._folder import Folder
from lodl.oracle._shard import Known, Shard

_HEADER, _PLAN = "lodl.json", "plan.json"
_FORMAT, _VERSION = "lodl answers", 2
_MAX_BYTES = 2**24  # of answers that are not yet written
_LONG = 2**22  # bytes of a file that is not written again
_MAX_LOADED = 2**29  # bytes of files kept in memory
_SELDOM = 20.0  # times as long as writing takes that passes before the next time
_WRITING = 0.005  # seconds that writing takes, until it is known

_NOTHING: Mapping[str, Any] = MappingProxyType({})

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
        left = "complete: nothing that was asked for is missing"
        if self.n_missing:
            seconds = f"about {self.n_missing * cost:.3g} s of one worker"
            left = f"{self.n_missing:,} calls missing, {seconds}"
        done = f"{self.n_answers:,} answers, {self.n_failures:,} of them failed calls"
        return f"{done}\n{cost * 1e3:.3g} ms a call\n{left}"


class Store:
    """Answers by what was asked, in memory or in a folder.

    Attributes:
        spread: How far labels lie apart in each coordinate: the noise of samplers whose scale is
            "auto", and the unit of the steps by which slopes are taken. A folder keeps that of
            the labels it was made with, so that a part of them finds its answers.
        verified_with: The problem that the answers were found to be of, if any.
        name, note: What a message calls the store, and says about what is kept.
        n_answers, seconds: How many answers there are, failed calls included, and their time.
        failures: Messages of failures; see `Shard`.
    """

    def __init__(
        self, spread: Array, folder: Folder | None = None, header: Mapping[str, Any] = _NOTHING
    ) -> None:
        self.spread, self._folder, self._header = spread, folder, header
        self.verified_with: object = None
        self.place = None if folder is None else folder.place
        self.name = "The store" if folder is None else folder.place
        self.note = (
            "Nothing is kept; with `store=`, answers are kept and the next run resumes from them."
            if folder is None
            else f"What was done is kept in {folder.place}."
        )
        self.n_answers, self.seconds = 0, 0.0
        self.failures: dict[str, str] = {}
        self._facts: dict[str, Any] = {}
        self._index: dict[bytes, list[tuple[int, int]]] = {}  # by id, shards and runs in them
        self._names: list[str] = []  # of the shards
        self._loaded: dict[str, Shard] = {}  # by name: all of them, or as many as memory allows
        self._unsaved: list[Shard] = []
        self._last: Shard | None = None  # that of a file which may be longer
        self._saved_at, self._writing = time.monotonic(), _WRITING
        self._n_planned = 0
        for name in [] if folder is None else sorted(folder.names("answers-")):
            try:
                shard = self._load(name)
            except (ValueError, FileNotFoundError) as error:
                _logger.warning("%s in %s is damaged: %s. It is left out.", name, self.name, error)
            except OSError as error:
                raise StoreError(f"{name} in {self.name} cannot be read: {error}.") from error
            else:
                self._names.append(name)
                self._register(shard)

    def check(self, spread: Array, problem: Mapping[str, Any]) -> None:
        """Raise if the store holds answers for another label shape or of another problem.

        Names that only one of the two has are not compared: an older store lacks them.
        """
        if spread.shape != self.spread.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.spread.shape}, these have "
                f"shape {spread.shape}. Choose another store."
            )
        there, here = _named(self._header), _named(problem)
        differences = [
            f"its {name} is {there[name]}, this one's is {here[name]}"
            for name in sorted(there.keys() & here.keys())
            if there[name] != here[name]
        ]
        if differences:
            raise StoreError(
                f"{self.name} holds answers of another problem: {'; '.join(differences)}. "
                "Choose another store."
            )

    @property
    def seconds_per_call(self) -> float:
        """Mean time of a solver call."""
        return self.seconds / max(self.n_answers, 1)

    # Writing ------------------------------------------------------------------------------------

    def add(self, shard: Shard) -> None:
        """Take answers; those of a folder are written now and again."""
        self._unsaved.append(shard)
        is_due = time.monotonic() - self._saved_at > _SELDOM * self._writing
        if self._folder is None or is_due or sum(x.n_bytes for x in self._unsaved) > _MAX_BYTES:
            self.flush()

    def flush(self) -> None:
        """Keep, and know, all answers taken so far."""
        if not self._unsaved:
            return
        began, new, n_before = time.monotonic(), Shard.join(self._unsaved), 0
        if self._last is None or self._last.n_bytes > _LONG:
            self._names.append(f"answers-{time.time_ns():019d}-{uuid4().hex[:8]}.npz")
            whole = new
        else:
            n_before, whole = len(self._last.start), Shard.join([self._last, new])
        if self._folder is not None:
            self._write(self._names[-1], whole.to_bytes())
            self._last = whole
        self._remember(self._names[-1], whole)
        self._register(new, n_before)
        self._unsaved = []
        self._saved_at = time.monotonic()
        self._writing = self._saved_at - began

    def plan(self, n_pending: int) -> None:
        """Note how many calls a run is about to make."""
        self._n_planned = self.n_answers + n_pending
        if n_pending and self._folder is not None:
            self._write(_PLAN, json.dumps({"n_answers": self._n_planned}).encode())

    def remember(self, name: str, fact: Mapping[str, Any]) -> None:
        """Keep a fact about the problem, in JSON values."""
        self._facts[name] = dict(fact)
        if self._folder is not None:
            self._write(f"fact-{name}.json", json.dumps(dict(fact)).encode())

    def recall(self, name: str) -> Any:
        """Return a fact, or None if it is not known."""
        if self._folder is not None and name not in self._facts:
            try:
                self._facts[name] = json.loads(
                    self._folder.read_if_there(f"fact-{name}.json") or b"null"
                )
            except (ValueError, OSError):
                return None
        return self._facts.get(name)

    def copy(self, other: "Store", ids: Iterable[bytes]) -> None:
        """Take the answers that another store has under some ids."""
        runs, n_before = defaultdict[int, list[int]](list), self.n_answers
        for id_ in dict.fromkeys(ids):
            for number, run in other._index.get(id_, ()):
                runs[number].append(run)
        for number in sorted(runs):
            self.add(other._shard(number).take(runs[number]))
        share = (self.n_answers - n_before) / max(other.n_answers, 1)
        self.seconds += other.seconds * share
        self.failures = other.failures | self.failures

    def _register(self, shard: Shard, n_before: int = 0) -> None:
        """Find the answers of the last shard from now on, of which runs before are known."""
        self.n_answers += shard.n_answers
        self.seconds += shard.seconds
        self.failures = shard.failures | self.failures
        for run, id_ in enumerate(shard.id_list(), n_before):
            self._index.setdefault(id_, []).append((len(self._names) - 1, run))

    def _write(self, name: str, content: bytes) -> None:
        assert self._folder is not None
        try:
            self._folder.write(name, content)
        except OSError as error:
            raise StoreError(
                f"Answers cannot be written to {self.name}: {error}. Those written before are "
                "kept, and the next run goes on from them."
            ) from error

    # Reading ------------------------------------------------------------------------------------

    def __contains__(self, id_: bytes) -> bool:
        return id_ in self._index

    def known(
        self, blocks: Sequence[tuple[Sequence[bytes], int]], *, slopes: bool = False
    ) -> Known:
        """Return what is known about instances: a block is their ids, and its number of columns.

        With `slopes` an answer that lacks one is a failure if the slope failed, else pending.
        """
        ends = list(accumulate((n_columns for _, n_columns in blocks), initial=0))
        known = Known(len(blocks[0][0]), ends[-1])
        for (ids, _), (start, stop) in zip(blocks, pairwise(ends), strict=True):
            places = (
                (*place, row) for row, id_ in enumerate(ids) for place in self._index.get(id_, ())
            )
            # Runs beside each other that belong to rows beside each other are laid at once.
            for _, stretch in groupby(enumerate(sorted(places)), _stretch):
                (_, (number, first, row)), *others = stretch
                last = first + 1 + len(others)
                known.lay(row, slice(start, stop), self._shard(number), first, last)
        if slopes:
            known.require_slopes()
        return known

    @property
    def progress(self) -> Progress:
        """How far the last run is, and what it costs."""
        shards = (self._shard(number) for number in range(len(self._names)))
        n_failures = sum(int(np.sum(shard.status > OK)) for shard in shards)
        n_planned = self._n_planned
        if self._folder is not None:
            try:
                n_planned = int(json.loads(self._folder.read_if_there(_PLAN) or b"0")["n_answers"])
            except (LookupError, TypeError, ValueError, OverflowError, RecursionError):
                n_planned = 0
        return Progress(self.n_answers, n_failures, n_planned, self.seconds)

    def _shard(self, number: int) -> Shard:
        name = self._names[number]
        try:
            return self._loaded[name] if name in self._loaded else self._load(name)
        except (ValueError, OSError) as error:
            raise StoreError(
                f"{name} in {self.name} was damaged while it was in use: {error}. Sample again: "
                "only what is missing is computed."
            ) from error

    def _load(self, name: str) -> Shard:
        assert self._folder is not None
        shard = Shard.from_bytes(self._folder.read(name))
        if len(shard.gradient) and shard.gradient.shape[1] != self.spread.size:
            raise ValueError(f"its slopes have {shard.gradient.shape[1]} coordinates")
        self._remember(name, shard)
        return shard

    def _remember(self, name: str, shard: Shard) -> None:
        """Keep a shard in memory, and if those of files are too many, this one only."""
        self._loaded[name] = shard
        if self._folder is not None:
            n_bytes = sum(one.n_bytes for one in self._loaded.values())
            self._loaded = {name: shard} if n_bytes > _MAX_LOADED else self._loaded


def _named(problem: Mapping[str, Any]) -> dict[str, str]:
    """Return what distinguishes a problem, each by the name that a message gives it."""
    given = {"name": problem.get("name"), "version": problem.get("problem_version")}
    texts = {name: repr(text) for name, text in given.items() if text is not None}
    return {**texts, **problem.get("parameters", {})}


def _stretch(one: tuple[int, tuple[int, int, int]]) -> tuple[int, int, int]:
    """Return what successive places have in common if their runs and rows succeed each other."""
    i, (number, run, row) = one
    return number, run - i, row - i


def open_store(
    place: str | os.PathLike[str],
    *,
    spread: Array | None = None,
    problem: Mapping[str, Any] = _NOTHING,
) -> Store:
    """Return the store at a folder or URL.

    Args:
        place: The folder or URL.
        spread: How far labels lie apart, for a store that is made now; None opens what is there.
        problem: What distinguishes the problem: its name, version and parameters.

    Raises:
        StoreError: There is none and none is made, it is damaged, or of another problem.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> samples = lodl.Oracle(lodl.domains.TopK(1), store="answers").sample(y, n_samples=10)
        >>> lodl.oracle.open_store("answers").progress.n_answers
        22
    """
    folder = Folder(place)
    names = folder.names("")  # before the header is looked for: it is the first file of a store
    raw = _header_of(folder)
    if raw is None:
        if names:
            raise StoreError(f"{folder.place} {_what_is_there(names)}.")
        if spread is None:
            raise StoreError(f"There is no store at {folder.place}. `lodl.oracle.sample` makes it.")
        header = {"format": _FORMAT, "version": _VERSION, "spread": spread.tolist(), **problem}
        try:
            folder.write_once(_HEADER, json.dumps(header).encode())
        except OSError as error:
            raise StoreError(f"No store can be made at {folder.place}: {error}.") from error
        raw = folder.read(_HEADER)
    try:
        header = json.loads(raw)
        version = header["version"] if header["format"] == _FORMAT else None
        there = np.array(header["spread"], dtype=np.float64)
        if not there.ndim or not ((there > 0) & np.isfinite(there)).all():
            raise ValueError("`spread` must be positive numbers")
        if not all(isinstance(text, str) for text in header.get("parameters", {}).values()):
            raise ValueError("`parameters` must be texts")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{_HEADER} in {folder.place} is damaged: {error}. Remove the store."
        ) from error
    if version != _VERSION:
        raise StoreError(
            f"{folder.place} is of format version {version}, this version of lodl reads {_VERSION}."
            " Choose another place and sample again."
        )
    return Store(there, folder, header)


def _header_of(folder: Folder) -> bytes | None:
    try:
        return folder.read_if_there(_HEADER)
    except (OSError, ValueError) as error:
        raise StoreError(f"{_HEADER} in {folder.place} cannot be read: {error}.") from error


def _what_is_there(names: list[str]) -> str:
    """Return what a folder without a header is, and what to do."""
    if "model.json" in names:
        return "is a saved model, not a store. `lodl.load_model` reads it; choose another folder"
    if "zarr.json" in names:
        return "was written by an older version of lodl. Choose another folder and sample again"
    missing = f"is not empty and has no {_HEADER}"
    if any(name.startswith("answers-") for name in names):
        return f"{missing}: it is a damaged store. Remove it and sample again"
    return f"{missing}: it is not a store. Choose another folder"
