"""Answers in one SQLite file, or in memory.

    answers    runs of answers, by the id of their instance and sampler, each with a checksum
    failures   the message of the first failure of each kind and id
    header     format version, spread of the labels, identity of the problem, totals, facts

Answers are written in transactions: a kill loses only answers that were not yet written, and
several processes can share a file. A run whose checksum is wrong is ignored and computed again.
Nothing in a file is code, and a file whose tables are not exactly ours is refused.
"""

import json
import logging
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._answer_table import AnswerTable, Run
from lodl.oracle._database import MAX_VALUE, VERSION, Database, check_place

_MAX_RUN = MAX_VALUE // 4  # bytes of a row; runs that are longer are cut
_MAX_UNSAVED = 2**24  # bytes of answers that are not yet written
_SELDOM = 20.0  # seconds between two writes, in units of the time that a write takes
_WRITING = 0.005  # seconds that the first write is assumed to take
_AT_ONCE = 5000  # ids in one query
_MAX_FAILURES = 1000  # messages in a store

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """How far a store is."""

    n_answers: int  # oracle calls whose answers it holds, failed ones included
    n_failures: int  # how many of these failed
    n_planned: int  # answers that it holds when the last run is complete
    seconds: float  # time that the answers took, summed over workers

    @classmethod
    def read(cls, place: str | os.PathLike[str]) -> "Progress":
        """Return the progress of the store in a file.

        Raises:
            StoreError: There is no store, or it is damaged.

        Example:
            >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
            >>> oracle = lodl.Oracle(lodl.domains.TopK(1), store="answers.db")
            >>> samples = oracle.sample(y, n_samples=10)
            >>> lodl.oracle.Progress.read("answers.db").n_answers
            22
        """
        return open_store(place).progress

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
    """Answers by id, in a file or in memory.

    Attributes:
        spread: How far labels lie apart in each coordinate: the noise of samplers whose scale is
            "auto", and the unit of the steps by which slopes are taken. A file keeps that of the
            labels it was made with, so that a part of them finds its answers.
        verified_with: The problem that the answers were found to be of, if any.
        place: The file, or None.
        name, note: What a message calls the store, and says about the answers that are kept.
    """

    def __init__(
        self,
        spread: Array,
        database: Database | None = None,
        problem: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self._database = Database(None, _header(spread, problem)) if database is None else database
        self._problem = problem
        self.spread, self.place = spread, self._database.path
        self.verified_with: object = None
        self.name = self._database.name
        self.note = (
            "Nothing is kept; with `store=`, answers are kept and the next run resumes from them."
            if self.place is None
            else f"What was done is kept in {self.place}."
        )
        self._unsaved: list[Run] = []
        self._n_bytes, self._seconds = 0, 0.0
        self._failures: dict[str, str] = {}
        self._written_at, self._writing = time.monotonic(), _WRITING
        self._has_warned = False

    def check(self, spread: Array, problem: Mapping[str, Any]) -> None:
        """Raise if the store holds answers for another label shape or of another problem."""
        if spread.shape != self.spread.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.spread.shape}, these have "
                f"shape {spread.shape}. Choose another store."
            )
        there, here = _named(self._problem), _named(problem)
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

    def add(
        self, runs: Sequence[Run], seconds: float = 0.0, failures: Mapping[str, str] = _NOTHING
    ) -> None:
        """Add answers. A store in a file writes them periodically.

        Args:
            runs: The answers.
            seconds: Time that they took.
            failures: By kind of failure and id, the message of the first such failure.
        """
        with self._database.lock:
            for run in runs:
                self._unsaved += run.pieces(_MAX_RUN, self.spread.size)
                self._n_bytes += run.n_bytes
            self._seconds += seconds
            self._failures = dict(failures) | self._failures
            is_due = time.monotonic() - self._written_at > _SELDOM * self._writing
            if self.place is None or is_due or self._n_bytes > _MAX_UNSAVED:
                self._write()

    def flush(self) -> None:
        """Write all answers added so far, and close the file: it can be copied now."""
        with self._database.lock:
            self._write()
            self._database.save()

    def _write(self) -> None:
        """Write all answers added so far, in one transaction."""
        with self._database.lock:
            if not self._unsaved and not self._seconds:
                return
            began, runs = time.monotonic(), self._unsaved
            totals = {
                "n_answers": sum(run.n_answers for run in runs),
                "n_failures": sum(run.n_failures for run in runs),
                "seconds": self._seconds,
            }
            with self._database.writing() as connection:
                connection.executemany(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
                    ((*run, run.checksum) for run in runs),
                )
                connection.executemany(
                    "UPDATE header SET value = value + ? WHERE key = ?",
                    ((amount, key) for key, amount in totals.items()),
                )
                ((n_there,),) = connection.execute("SELECT count(*) FROM failures").fetchall()
                connection.executemany(
                    "INSERT OR IGNORE INTO failures VALUES (?, ?)",
                    list(self._failures.items())[: max(_MAX_FAILURES - n_there, 0)],
                )
            self._unsaved, self._n_bytes, self._seconds, self._failures = [], 0, 0.0, {}
            self._written_at = time.monotonic()
            self._writing = self._written_at - began

    def plan(self, n_pending: int) -> None:
        """Note how many calls a run is about to make."""
        if n_pending or self.place is None:
            self._set("n_planned", self.n_answers + n_pending)

    def remember(self, name: str, fact: Mapping[str, Any]) -> None:
        """Keep a fact about the problem, in JSON values."""
        self._set(f"fact {name}", dict(fact))

    def recall(self, name: str) -> Any:
        """Return a fact, or None if it is not known."""
        return self._get(f"fact {name}")

    def copy(self, other: "Store", ids: Iterable[bytes]) -> None:
        """Add the answers that another store has under some ids."""
        runs = list(other._runs(list(dict.fromkeys(ids))))
        failures = dict(other._database.read("SELECT key, message FROM failures"))
        share = sum(run.n_answers for run in runs) / max(other.n_answers, 1)
        self.add(runs, other.seconds * share, failures)

    # Reading ------------------------------------------------------------------------------------

    @property
    def n_answers(self) -> int:
        """Number of answers, failed calls included."""
        return int(self._total("n_answers"))

    @property
    def is_empty(self) -> bool:
        """Whether there are no answers."""
        self._write()
        return not self._database.read("SELECT 1 FROM answers LIMIT 1")

    @property
    def seconds(self) -> float:
        """Time that the answers took, summed over workers."""
        return self._total("seconds")

    def failure(self, key: str) -> str | None:
        """Return the message of the first failure of a kind and id."""
        found = self._database.read("SELECT message FROM failures WHERE key = ?", key)
        return str(found[0][0]) if found else None

    def has(self, ids: Sequence[bytes]) -> set[bytes]:
        """Return the ids under which there are answers."""
        self._write()
        found: set[bytes] = set()
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            query = f"SELECT DISTINCT id FROM answers WHERE id IN ({_marks(some)})"
            found.update(id_ for (id_,) in self._database.read(query, *some))
        return found

    def known(
        self, blocks: Sequence[tuple[Sequence[bytes], int]], *, slopes: bool = False
    ) -> AnswerTable:
        """Return the answers about instances: a block is their ids, and its number of columns.

        With `slopes` an answer that lacks one is a failure if the slope failed, else pending.
        """
        n_columns = sum(n for _, n in blocks)
        table, first = AnswerTable(len(blocks[0][0]), n_columns, self.spread.size), 0
        for ids, n in blocks:
            rows: dict[bytes, list[int]] = {}
            for row, id_ in enumerate(ids):
                rows.setdefault(id_, []).append(row)
            seen: dict[bytes, int] = {}  # runs of an id so far
            alike: dict[tuple[int, ...], list[Run]] = {}  # laid at once; of an id, in their order
            for run in self._runs(list(rows)):
                number = seen[run.id] = seen.get(run.id, 0) + 1
                alike.setdefault((number, run.start, *map(len, run[2:])), []).append(run)
            for _, runs in sorted(alike.items()):
                if not table.lay(rows, first, first + n, runs):
                    self._warn(sum(not table.lay(rows, first, first + n, [run]) for run in runs))
            first += n
        if slopes:
            table.require_slopes()
        return table

    @property
    def progress(self) -> Progress:
        """How far the last run is, and what it costs."""
        self._write()
        n_planned, n_failures = int(self._total("n_planned")), int(self._total("n_failures"))
        return Progress(self.n_answers, n_failures, n_planned, self.seconds)

    def _runs(self, ids: Sequence[bytes]) -> Iterator[Run]:
        """Yield the runs of some ids in the order in which they were added."""
        self._write()
        for start in range(0, len(ids), _AT_ONCE):
            some = set(ids[start : start + _AT_ONCE])
            query = f"SELECT * FROM answers WHERE id IN ({_marks(some)}) ORDER BY rowid"
            n_damaged = 0
            for *columns, checksum in self._database.read(query, *some):
                run = Run(*columns)
                if run.is_sound(checksum) and run.id in some:
                    yield run
                else:
                    n_damaged += 1
            self._warn(n_damaged)

    def _warn(self, n_damaged: int) -> None:
        if n_damaged and not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "%d rows of answers in %s are damaged. They are ignored and computed again.",
                *(n_damaged, self.name),
            )

    # The header ---------------------------------------------------------------------------------

    def _get(self, key: str) -> Any:
        """Return a value of the header, or None if it is missing or damaged."""
        found = self._database.read("SELECT value FROM header WHERE key = ?", key)
        try:
            return json.loads(found[0][0]) if found else None
        except (TypeError, ValueError, RecursionError):
            return None

    def _total(self, key: str) -> float:
        """Return a number of the header, or 0 if it is missing or damaged."""
        value = self._get(key)
        is_number = isinstance(value, int | float) and 0 <= value < 1e300  # NaN is not
        return float(value) if is_number else 0.0

    def _set(self, key: str, value: Any) -> None:
        with self._database.writing() as connection:
            row = (key, json.dumps(value))
            connection.execute("INSERT OR REPLACE INTO header VALUES (?, ?)", row)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the place of a file, or the content of a store in memory."""
        self.flush()
        content = self._database.content() if self.place is None else b""
        return {"spread": self.spread, "place": self.place, "content": content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["place"] is None:
            Store.__init__(self, state["spread"])
            self._database.restore(state["content"])
        else:
            Store.__init__(self, *_opened(state["place"], None))


def open_store(
    place: str | os.PathLike[str],
    *,
    spread: Array | None = None,
    problem: Mapping[str, Any] = _NOTHING,
) -> Store:
    """Return the store in a file.

    Args:
        place: The file.
        spread: How far labels lie apart, to create the store if there is none. Without it, a
            missing store is an error.
        problem: What distinguishes the problem: its name, version and parameters.

    Raises:
        StoreError: There is no store and none is created, it is damaged, or of another problem.
    """
    header = None if spread is None else _header(spread, problem)
    return Store(*_opened(check_place(place), header))


def _header(spread: Array, problem: Mapping[str, Any]) -> dict[str, Any]:
    totals = {"n_answers": 0, "n_failures": 0, "seconds": 0.0}
    return {"version": VERSION, "spread": spread.tolist(), "problem": dict(problem), **totals}


def _opened(
    path: Path, header: Mapping[str, Any] | None
) -> tuple[Array, Database, Mapping[str, Any]]:
    """Open a file, and return what its header says: the arguments of a store."""
    database = Database(path, header)
    texts = dict(database.read("SELECT key, value FROM header"))
    try:
        version, problem = json.loads(texts["version"]), json.loads(texts["problem"])
        spread = np.array(json.loads(texts["spread"]), dtype=np.float64)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _damaged_header(path, f"{type(error).__name__}: {error}") from error
    if version != VERSION:
        raise StoreError(
            f"{path} has format version {version}, this version of lodl reads {VERSION}. Choose "
            "another name and sample again."
        )
    if not (spread.size and np.isfinite(spread).all() and (spread > 0).all()):
        raise _damaged_header(path, "the spread of its labels must be above 0")
    if not isinstance(problem, dict) or not isinstance(problem.get("parameters", {}), dict):
        raise _damaged_header(path, "its problem must have parameters by name")
    return spread, database, problem


def _damaged_header(path: Path, reason: str) -> StoreError:
    return StoreError(f"The header of {path} is damaged: {reason}. Remove it and sample again.")


def _named(problem: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that distinguish a problem, by the names that messages give them."""
    given = {"name": problem.get("name"), "version": problem.get("problem_version")}
    texts = {name: repr(text) for name, text in given.items() if text is not None}
    return {**texts, **{name: str(text) for name, text in problem.get("parameters", {}).items()}}


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values))
