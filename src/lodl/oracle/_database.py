"""The SQLite file of a store: created, opened, refused if it is not a store, closed.

A file is open while it is read or written, and closed at the end of each run and before a fork. The
last process to close it moves the write-ahead log into it: the file alone can then be copied.
"""

import json
import os
import sqlite3
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lodl._typing import FilePath
from lodl.errors import InvalidInputError, StoreError

VERSION = 5
MAX_VALUE = 2**29  # bytes; larger values are refused, as a file may come from elsewhere
_PATIENCE = 60.0  # seconds to wait for another process that writes
_COLUMNS = "id BLOB, start INTEGER, answers BLOB, gradient BLOB, messages TEXT, checksum INTEGER"
_SCHEMA = [
    ("table", "answers", f"CREATE TABLE answers ({_COLUMNS})"),
    ("index", "answers_by_id", "CREATE INDEX answers_by_id ON answers (id)"),
    ("table", "header", "CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID"),
]
_FAULTS = (sqlite3.Error, UnicodeDecodeError)  # a message may quote a damaged name


class Database:
    """A connection to the file of a store, opened when it is needed. Its user holds a lock."""

    def __init__(self, path: Path, header: Mapping[str, Any] | None) -> None:
        """Open a file. With a header, create it if there is none."""
        self.path = path
        self._connection: sqlite3.Connection | None = None
        if not _is_file(path):
            if header is None:
                raise StoreError(
                    f"There is no store at {path}. `lodl.Oracle(problem, store=...)` creates it."
                )
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"No store can be made at {path}: {error}.") from error
        try:
            self._open("rw" if header is None else "rwc")
            if header is not None and not self._schema():
                self._create(header)
            is_store = self._schema() == _SCHEMA
        except BaseException as error:
            self.disconnect()
            if isinstance(error, _FAULTS):
                raise self._unreadable(error) from error
            raise
        if not is_store:
            self.disconnect()
            what = "is a database, but not a store of answers"
            raise StoreError(f"{path} {what}. Choose another file.")

    def read(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._connected().execute(query, values).fetchall()
        except _FAULTS as error:
            raise self._unreadable(error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction."""
        try:
            with self._connected() as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"Answers cannot be written to {self.path}: {error}. Answers written before are "
                "kept, and the next run resumes from them."
            ) from error

    def disconnect(self) -> None:
        """Close the file. It is opened again when it is needed."""
        if self._connection is not None:
            self._close()
            self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._open("rw")
        assert self._connection is not None
        return self._connection

    def _open(self, mode: str) -> None:
        try:
            self._connect(mode)
            self._connected().execute("PRAGMA synchronous = normal")
            self._schema()
        except sqlite3.OperationalError as error:
            if _code(error) == sqlite3.SQLITE_BUSY:
                raise
            if self.path.exists() and not os.access(self.path.parent, os.W_OK):
                log = self.path.with_name(f"{self.path.name}-wal")
                if log.exists() and log.stat().st_size > 0:  # it holds answers
                    raise
                self._connect("ro&immutable=1")
            else:
                self._switch_to_rollback_journal()

    def _connect(self, mode: str) -> None:
        self.disconnect()
        uri = f"file:{quote(os.fsencode(self.path))}?mode={mode}"
        self._connection = connection = sqlite3.connect(
            uri, _PATIENCE, isolation_level=None, check_same_thread=False, uri=True
        )
        self._close = weakref.finalize(self, connection.close)  # also at the end of the program
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        connection.execute("PRAGMA trusted_schema = off")
        connection.execute("PRAGMA cell_size_check = on")

    def _schema(self) -> list[tuple[Any, ...]]:
        query = "SELECT type, name, sql FROM sqlite_master ORDER BY name, type, sql"
        return self._connected().execute(query).fetchall()

    def _create(self, header: Mapping[str, Any]) -> None:
        """Create the tables, unless another process has just done so."""
        # With a write-ahead log commits are fast, and readers never wait. A file keeps a rollback
        # journal if its system has no logs, or if several processes compete to create it.
        try:
            self._connected().execute("PRAGMA journal_mode = wal").fetchall()
            self._schema()
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY:
                self._switch_to_rollback_journal()
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not self._schema():
                for _, _, sql in _SCHEMA:
                    connection.execute(sql)
                rows = ((key, json.dumps(value)) for key, value in header.items())
                connection.executemany("INSERT INTO header VALUES (?, ?)", rows)

    def _switch_to_rollback_journal(self) -> None:
        """Do without a log, which needs memory that processes share and some file systems lack."""
        self._connect("rw")
        self._connected().execute("PRAGMA locking_mode = exclusive")  # needs no such memory
        self._connected().execute("PRAGMA journal_mode = delete").fetchall()
        self._connect("rw")
        self._schema()

    def _unreadable(self, error: Exception) -> StoreError:
        code = _code(error)
        if code == sqlite3.SQLITE_BUSY:
            return StoreError(
                f"{self.path} is locked: another process has been writing to it for "
                f"{_PATIENCE:g} seconds. Try again later."
            )
        if code == sqlite3.SQLITE_NOTADB:
            return StoreError(f"{self.path} is not a store of answers: {error}. Choose another.")
        advice = "If it is damaged, remove it and sample again."
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            advice = "Copy it, with its -wal file if it has one, to a folder that can be written."
        return StoreError(f"{self.path} cannot be read: {error}. {advice}")


def check_place(place: FilePath) -> Path:
    """Return the path of a store, independent of later changes of the working folder."""
    text = os.fspath(place) if isinstance(place, str | os.PathLike) else place
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidInputError(f"`store` must be the name of a file, got {place!r}.")
    if "://" in text:
        got = f"{place!r}. Copy a store to this machine to use it"
        raise InvalidInputError(f"`store` must be a file, got {got}.")
    return Path(text).absolute()


def _is_file(path: Path) -> bool:
    """Return whether there is a file that is not empty. Raise if there is something else."""
    try:
        if path.is_dir():
            is_model = (path / "checksums.json").exists()
            kind = "a saved model, which `lodl.load_model` reads" if is_model else "a folder"
            raise StoreError(f"{path} is {kind}. A store is a file: choose another name.")
        for file in (path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal")):
            if file.exists() and not file.is_file():  # SQLite would wait for a pipe forever
                raise StoreError(f"{file} is not a regular file. Choose another name.")
        return path.exists() and path.stat().st_size > 0
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}. Choose another.") from error


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
