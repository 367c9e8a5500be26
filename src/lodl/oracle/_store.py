"""Answers in one SQLite file, or in memory.

    answers    runs of answers, by the id of their instance and sampler, with a checksum each
    failures   the message of the first failure of each kind and id
    header     format, spread of the labels, identity of the problem, totals, facts

Answers appear in transactions, so that a kill loses only what was not yet written, and several
processes may share a file. A run whose checksum is wrong is left out and computed again. Nothing
in a file is code, and a file whose tables are not exactly ours is refused.
"""

import json
import logging
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle._answer_table import AnswerTable, Run

_VERSION = 3
_TABLES = {
    "answers": "CREATE TABLE answers (id BLOB, start INTEGER, loss BLOB, status BLOB, "
    "decision BLOB, gradient BLOB, checksum INTEGER)",
    "answers_by_id": "CREATE INDEX answers_by_id ON answers (id)",
    "failures": "CREATE TABLE failures (key TEXT PRIMARY KEY, message TEXT) WITHOUT ROWID",
    "header": "CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
}
_MAX_BLOB = 2**26  # bytes of one value; larger ones are refused, as a file may come from elsewhere
_MAX_BYTES = 2**24  # bytes of answers that are not yet written
_PATIENCE = 60.0  # seconds to wait for another process that writes
_SELDOM = 20.0  # times as long as writing takes that passes before the next time
_WRITING = 0.005  # seconds that writing takes, until it is known
_AT_ONCE = 5000  # ids of one query
_MAX_FAILURES = 1000  # messages that are kept

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
        place: Path | None = None,
        connection: sqlite3.Connection | None = None,
    ) -> None:
        self.spread, self.place = spread, place
        self.verified_with: object = None
        self.name = "The store" if place is None else str(place)
        self.note = (
            "Nothing is kept; with `store=`, answers are kept and the next run resumes from them."
            if place is None
            else f"What was done is kept in {place}."
        )
        self._connection = _in_memory() if connection is None else connection
        self._lock = threading.RLock()
        self._unsaved: list[Run] = []
        self._n_bytes, self._seconds = 0, 0.0
        self._failures: dict[str, str] = {}
        self._saved_at, self._writing = time.monotonic(), _WRITING
        self._has_warned = False

    def check(self, spread: Array, problem: Mapping[str, Any]) -> None:
        """Raise if the store holds answers for another label shape or of another problem."""
        if spread.shape != self.spread.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.spread.shape}, these have "
                f"shape {spread.shape}. Choose another store."
            )
        there, here = _named(self._get("problem", {})), _named(problem)
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
        self._unsaved += runs
        self._n_bytes += sum(len(part) for run in runs for part in run[2:])
        self._seconds += seconds
        self._failures = dict(failures) | self._failures
        is_due = time.monotonic() - self._saved_at > _SELDOM * self._writing
        if self.place is None or is_due or self._n_bytes > _MAX_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write all answers added so far, in one transaction."""
        if not self._unsaved and not self._seconds:
            return
        began, runs = time.monotonic(), self._unsaved
        totals = {
            "n_answers": sum(run.n_answers for run in runs),
            "n_failures": sum(run.n_failures for run in runs),
            "seconds": self._seconds,
        }
        with self._writes() as connection:
            connection.executemany(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((*run, run.checksum) for run in runs),
            )
            connection.executemany(
                "UPDATE header SET value = value + ? WHERE key = ?",
                ((amount, key) for key, amount in totals.items()),
            )
            n_room = (
                _MAX_FAILURES - connection.execute("SELECT count(*) FROM failures").fetchone()[0]
            )
            connection.executemany(
                "INSERT OR IGNORE INTO failures VALUES (?, ?)",
                list(self._failures.items())[: max(n_room, 0)],
            )
        self._unsaved, self._n_bytes, self._seconds, self._failures = [], 0, 0.0, {}
        self._saved_at = time.monotonic()
        self._writing = self._saved_at - began

    def plan(self, n_pending: int) -> None:
        """Note how many calls a run is about to make."""
        if n_pending or self.place is None:
            self._set("n_planned", self.n_answers + n_pending)

    def remember(self, name: str, fact: Mapping[str, Any]) -> None:
        """Keep a fact about the problem, in JSON values."""
        self._set(f"fact {name}", dict(fact))

    def recall(self, name: str) -> Any:
        """Return a fact, or None if it is not known."""
        return self._get(f"fact {name}", None)

    def copy(self, other: "Store", ids: Iterable[bytes]) -> None:
        """Add the answers that another store has under some ids."""
        before = self.n_answers
        runs = list(other._runs(list(dict.fromkeys(ids))))
        failures = dict(other._execute("SELECT key, message FROM failures"))
        share = sum(run.n_answers for run in runs) / max(other.n_answers, 1)
        self.add(runs, other.seconds * share, failures)
        assert self.n_answers >= before

    # Reading ------------------------------------------------------------------------------------

    @property
    def n_answers(self) -> int:
        """Number of answers, failed calls included."""
        return int(self._get("n_answers", 0))

    @property
    def seconds(self) -> float:
        """Time that the answers took, summed over workers."""
        return float(self._get("seconds", 0.0))

    def failure(self, key: str) -> str | None:
        """Return the message of the first failure of a kind and id."""
        found = self._execute("SELECT message FROM failures WHERE key = ?", key)
        return str(found[0][0]) if found else None

    def has(self, ids: Sequence[bytes]) -> set[bytes]:
        """Return the ids under which there are answers."""
        self.flush()
        found: set[bytes] = set()
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            query = f"SELECT DISTINCT id FROM answers WHERE id IN ({_marks(some)})"
            found.update(id_ for (id_,) in self._execute(query, *some))
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
            alike: dict[tuple[int, ...], list[Run]] = {}  # by sizes, laid at once
            for run in self._runs(list(rows)):
                alike.setdefault((run.start, *map(len, run[2:])), []).append(run)
            for runs in alike.values():
                at = [row for run in runs for row in rows[run.id]]
                repeated = [run for run in runs for _ in rows[run.id]]
                if not table.lay(at, first, first + n, repeated):
                    self._warn(len(runs))
            first += n
        if slopes:
            table.require_slopes()
        return table

    @property
    def progress(self) -> Progress:
        """How far the last run is, and what it costs."""
        self.flush()
        planned, failures = int(self._get("n_planned", 0)), int(self._get("n_failures", 0))
        return Progress(self.n_answers, failures, planned, self.seconds)

    def _runs(self, ids: Sequence[bytes]) -> Iterable[Run]:
        """Return the runs of some ids in the order in which they were added."""
        self.flush()
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            query = f"SELECT * FROM answers WHERE id IN ({_marks(some)}) ORDER BY rowid"
            n_damaged = 0
            for *columns, checksum in self._execute(query, *some):
                try:
                    run = Run(*columns)
                    is_sound = run.checksum == checksum
                except TypeError:  # a value of another type
                    is_sound = False
                if is_sound:
                    yield run
                else:
                    n_damaged += 1
            self._warn(n_damaged)

    def _warn(self, n_damaged: int) -> None:
        if n_damaged and not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "%d runs of answers in %s are damaged. They are left out, and computed again.",
                n_damaged,
                self.name,
            )

    # The file -----------------------------------------------------------------------------------

    def _execute(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise _damaged(self.name, error) from error

    @contextmanager
    def _writes(self) -> Any:
        """Write in one transaction."""
        with self._lock:
            try:
                with self._connection:
                    yield self._connection
            except sqlite3.Error as error:
                raise StoreError(
                    f"Answers cannot be written to {self.name}: {error}. Those written before are "
                    "kept, and the next run goes on from them."
                ) from error

    def _get(self, key: str, default: Any) -> Any:
        found = self._execute("SELECT value FROM header WHERE key = ?", key)
        try:
            return json.loads(str(found[0][0])) if found else default
        except (ValueError, RecursionError) as error:
            raise _damaged(self.name, error) from error

    def _set(self, key: str, value: Any) -> None:
        with self._writes() as connection:
            row = (key, json.dumps(value))
            connection.execute("INSERT OR REPLACE INTO header VALUES (?, ?)", row)

    def close(self) -> None:
        """Write what is left, and close the file. The store cannot be used any more."""
        with self._lock:
            self.flush()
            self._connection.close()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the place of a file, or the content of a store in memory."""
        self.flush()
        content = None if self.place is not None else self._connection.serialize()
        return {"spread": self.spread, "place": self.place, "content": content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        place = state["place"]
        connection = _in_memory() if place is None else _connect(place)
        if place is None:
            connection.deserialize(state["content"])
        Store.__init__(self, state["spread"], place, connection)


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

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y, n_samples=10, store="answers.db")
        >>> lodl.oracle.open_store("answers.db").progress.n_answers >= 22
        True
    """
    path = check_place(place)
    exists = _check_file(path)
    if not exists and spread is None:
        raise StoreError(f"There is no store at {path}. `lodl.oracle.sample` makes it.")
    connection = _connect(path)
    try:
        if spread is not None:
            _create(connection, spread, problem)
        return Store(_check_header(connection, path), path, connection)
    except sqlite3.Error as error:
        connection.close()
        raise _damaged(str(path), error) from error
    except BaseException:
        connection.close()
        raise


def check_place(place: str | os.PathLike[str]) -> Path:
    """Return the place of a store, independent of later changes of the working folder."""
    text = os.fspath(place)
    if not text.strip() or "\0" in text:
        raise InvalidInputError(f"`store` must be the name of a file, got {place!r}.")
    if "://" in text:
        raise InvalidInputError(f"`store` must be a file of this machine, got {place!r}.")
    return Path(text).absolute()


def _check_file(path: Path) -> bool:
    """Return whether there is a file; raise if it cannot be a store."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"No store can be made at {path}: {error}.") from error
        return False
    except OSError as error:
        raise StoreError(f"No store can be opened at {path}: {error}.") from error
    if stat.S_ISDIR(mode):
        what = "a folder"
        if (path / "lodl.json").exists() or (path / "zarr.json").exists():
            what = "a store of an older version of lodl"
        if (path / "model.json").exists():
            what = "a saved model, which `lodl.load_model` reads"
        raise StoreError(f"{path} is {what}. A store is a single file: choose another place.")
    if not stat.S_ISREG(mode):
        raise StoreError(f"{path} is no regular file. Choose another place for the store.")
    return path.stat().st_size > 0


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file, with a write-ahead log if its file system has one, or only for reading."""
    try:
        try:
            connection = _configured(sqlite3.connect(path, _PATIENCE, check_same_thread=False))
            connection.execute("PRAGMA journal_mode = wal").fetchall()
        except sqlite3.OperationalError:
            if not path.exists() or os.access(path.parent, os.W_OK):
                raise
            uri = f"file:{quote(str(path))}?mode=ro&immutable=1"  # a medium that is read-only
            connection = _configured(
                sqlite3.connect(uri, _PATIENCE, check_same_thread=False, uri=True)
            )
        connection.execute("PRAGMA synchronous = normal").fetchall()
    except sqlite3.Error as error:
        raise _damaged(str(path), error) from error
    return connection


def _in_memory() -> sqlite3.Connection:
    connection = _configured(sqlite3.connect(":memory:", check_same_thread=False))
    _create(connection, np.zeros(0), _NOTHING)
    return connection


def _configured(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_BLOB)
    connection.execute("PRAGMA trusted_schema = off")
    connection.execute("PRAGMA cell_size_check = on")
    return connection


def _create(connection: sqlite3.Connection, spread: Array, problem: Mapping[str, Any]) -> None:
    """Create the tables of an empty file. Of two processes that do, the first one wins."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return
        for sql in _TABLES.values():
            connection.execute(sql)
        header = {
            "version": _VERSION,
            "spread": spread.tolist(),
            "n_answers": 0,
            "n_failures": 0,
            "seconds": 0.0,
            "problem": dict(problem),
        }
        rows = ((key, json.dumps(value)) for key, value in header.items())
        connection.executemany("INSERT INTO header VALUES (?, ?)", rows)


def _check_header(connection: sqlite3.Connection, path: Path) -> Array:
    """Return the spread of a store's labels; raise if a file is no store of ours."""
    tables = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL"))
    if tables != _TABLES:
        raise StoreError(f"{path} is a database, but no store of answers. Choose another place.")
    header = dict(connection.execute("SELECT key, value FROM header"))
    try:
        version = json.loads(header["version"])
        spread = np.array(json.loads(header["spread"]), dtype=np.float64)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"The header of {path} is damaged: {error}. Remove the store.") from error
    if version != _VERSION:
        raise StoreError(
            f"{path} is of format version {version}, this version of lodl reads {_VERSION}. "
            "Choose another place and sample again."
        )
    if not (spread.size and np.isfinite(spread).all() and (spread > 0).all()):
        raise StoreError(f"The header of {path} is damaged: its spread is no spread of labels.")
    return spread


def _named(problem: Any) -> dict[str, str]:
    """Return what distinguishes a problem, each by the name that a message gives it."""
    if not isinstance(problem, Mapping):
        return {}
    given = {"name": problem.get("name"), "version": problem.get("problem_version")}
    texts = {name: repr(text) for name, text in given.items() if text is not None}
    parameters = problem.get("parameters", {})
    known = parameters if isinstance(parameters, Mapping) else {}
    return {**texts, **{str(name): str(text) for name, text in known.items()}}


def _damaged(name: str, error: BaseException) -> StoreError:
    return StoreError(
        f"{name} cannot be read: {error}. If it is damaged, remove it, and sample again."
    )


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
