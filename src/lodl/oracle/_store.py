"""The store: answers by instance and points, in one SQLite file or in memory.

    answers    runs of answers, by the id of their instance and sampler, each with a checksum
    failures   the message of the first failure of each kind and id
    header     format version, scale of the labels, identity of the problem, totals, facts

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

_MAX_RUN = MAX_VALUE // 4  # bytes of a row; longer runs are cut
_MAX_UNSAVED = 2**24  # bytes of answers that are not yet written
_WRITE_EVERY = 20.0  # time between two writes, in units of the time that a write takes
_FIRST_WRITE = 0.005  # seconds that the first write is assumed to take
_IDS_PER_QUERY = 5000
_MAX_FAILURES = 1000  # messages in a store

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """How many answers a store holds and lacks, and what they cost."""

    n_answers: int  # solver calls whose answers it holds, failed calls included
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
        return Store(check_place(place)).progress

    @property
    def n_missing(self) -> int:
        """Calls that the last run has still to make."""
        return max(self.n_planned - self.n_answers, 0)

    def __str__(self) -> str:
        cost = self.seconds / max(self.n_answers, 1)
        left = "complete: no planned call is missing"
        if self.n_missing:
            seconds = f"about {self.n_missing * cost:.3g} s of one worker"
            left = f"{self.n_missing:,} calls missing, {seconds}"
        done = f"{self.n_answers:,} answers, {self.n_failures:,} of them failed calls"
        return f"{done}\n{cost * 1e3:.3g} ms a call\n{left}"


class Store:
    """Answers by id, in a file or in memory.

    Attributes:
        label_scale: Standard deviation of the labels in each coordinate: the noise of samplers
            whose scale is "auto", and the unit of the steps by which slopes are taken. A file keeps
            that of its first labels, so that a part of them finds its answers.
        verified_with: The problem with which the answers were verified, if any.
        place: The file, or None.
        name: The name of the store in messages.
        note: What messages say about the answers that are kept.
    """

    def __init__(
        self,
        place: Path | None,
        label_scale: Array | None = None,
        problem: Mapping[str, Any] = _NOTHING,
    ) -> None:
        """Open the store in a file. With a label scale, create it if there is none."""
        header: dict[str, Any] | None = None
        if label_scale is not None:
            header = {"version": VERSION, "label_scale": label_scale.tolist()}
            header |= {"problem": dict(problem), "n_answers": 0, "n_failures": 0, "seconds": 0.0}
        self._database = Database(place, header)
        self.place, self.name = place, self._database.name
        self.label_scale, self._problem = self._read_header()
        self.verified_with: object = None
        self.note = (
            "Nothing is kept; with `store=`, answers are kept and the next run resumes from them."
            if place is None
            else f"What was done is kept in {place}."
        )
        self._unsaved: list[Run] = []
        self._n_bytes, self._seconds = 0, 0.0
        self._failures: dict[str, str] = {}
        self._written_at, self._writing = time.monotonic(), _FIRST_WRITE
        self._has_warned = False

    def _read_header(self) -> tuple[Array, Mapping[str, Any]]:
        """Return the label scale and the identity of the problem."""
        texts = dict(self._database.read("SELECT key, value FROM header"))
        try:
            version, problem = json.loads(texts["version"]), json.loads(texts["problem"])
            scale = np.array(json.loads(texts.get("label_scale", "[]")), dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._damaged_header(f"{type(error).__name__}: {error}") from error
        if version != VERSION:
            raise StoreError(
                f"{self.place} has format version {version}, this version of lodl reads {VERSION}. "
                "Choose another name and sample again."
            )
        if not (scale.size and np.isfinite(scale).all() and (scale > 0).all()):
            raise self._damaged_header("the scale of its labels must be above 0")
        if not isinstance(problem, dict) or not isinstance(problem.get("parameters", {}), dict):
            raise self._damaged_header("its problem must have parameters by name")
        return scale, problem

    def _damaged_header(self, reason: str) -> StoreError:
        message = f"The header of {self.place} is damaged: {reason}."
        return StoreError(f"{message} Remove it and sample again.")

    def check(self, label_scale: Array, problem: Mapping[str, Any]) -> None:
        """Raise if the store holds answers for another label shape or of another problem."""
        if label_scale.shape != self.label_scale.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.label_scale.shape}, these "
                f"have shape {label_scale.shape}. Choose another store."
            )
        stored, given = _named(self._problem), _named(problem)
        differences = [
            f"its {name} is {stored[name]}, this one's is {given[name]}"
            for name in sorted(stored.keys() & given.keys())
            if stored[name] != given[name]
        ]
        if differences:
            raise StoreError(
                f"{self.name} holds answers of another problem: {'; '.join(differences)}. "
                "Choose another store."
            )

    # Writing ------------------------------------------------------------------------------------

    def add(
        self, runs: Sequence[Run], seconds: float = 0.0, failures: Mapping[str, str] = _NOTHING
    ) -> None:
        """Add answers. A store in a file writes them periodically.

        Args:
            runs: The answers.
            seconds: Time that they took.
            failures: The message of the first failure by kind of failure and id.
        """
        with self._database.lock:
            for run in runs:
                self._unsaved += run.pieces(_MAX_RUN, self.label_scale.size)
                self._n_bytes += run.n_bytes
            self._seconds += seconds
            self._failures = dict(failures) | self._failures
            is_due = time.monotonic() - self._written_at > _WRITE_EVERY * self._writing
            if self.place is None or is_due or self._n_bytes > _MAX_UNSAVED:
                self._write()

    def flush(self) -> None:
        """Write all answers added so far, and close the file: it can be copied now."""
        with self._database.lock:
            self._write()
            self._database.save()

    def close(self) -> None:
        """Write all answers added so far, and close the file until it is needed again."""
        self.flush()
        self._database.disconnect()

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
                ((n_stored,),) = connection.execute("SELECT count(*) FROM failures").fetchall()
                connection.executemany(
                    "INSERT OR IGNORE INTO failures VALUES (?, ?)",
                    list(self._failures.items())[: max(_MAX_FAILURES - n_stored, 0)],
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

    def _set(self, key: str, value: Any) -> None:
        with self._database.writing() as connection:
            row = (key, json.dumps(value))
            connection.execute("INSERT OR REPLACE INTO header VALUES (?, ?)", row)

    def copy(self, other: "Store", ids: Iterable[bytes]) -> None:
        """Add the answers that another store has under some ids."""
        runs = list(other._runs(list(dict.fromkeys(ids))))
        failures = dict(other._database.read("SELECT key, message FROM failures"))
        share = sum(run.n_answers for run in runs) / max(other.n_answers, 1)
        self.add(runs, other.seconds * share, failures)

    # Reading ------------------------------------------------------------------------------------

    def recall(self, name: str) -> Any:
        """Return a fact, or None if it is not known."""
        return self._get(f"fact {name}")

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

    @property
    def seconds_per_call(self) -> float:
        """Mean time of a solver call."""
        return self.seconds / max(self.n_answers, 1)

    @property
    def progress(self) -> Progress:
        """How many answers there are, and how many the last run lacks."""
        self._write()
        n_planned, n_failures = int(self._total("n_planned")), int(self._total("n_failures"))
        return Progress(self.n_answers, n_failures, n_planned, self.seconds)

    def failure(self, key: str) -> str | None:
        """Return the message of the first failure of a kind and id."""
        rows = self._database.read("SELECT message FROM failures WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def has(self, ids: Sequence[bytes]) -> set[bytes]:
        """Return the ids under which there are answers."""
        self._write()
        stored: set[bytes] = set()
        for start in range(0, len(ids), _IDS_PER_QUERY):
            part = ids[start : start + _IDS_PER_QUERY]
            query = f"SELECT DISTINCT id FROM answers WHERE id IN ({_marks(part)})"
            stored.update(id_ for (id_,) in self._database.read(query, *part))
        return stored

    def table(
        self, blocks: Sequence[tuple[Sequence[bytes], int]], *, slopes: bool = False
    ) -> AnswerTable:
        """Return the answers about some instances.

        Args:
            blocks: The ids of the instances and a number of columns, for each block of columns.
            slopes: Whether an answer without a slope is a failure if the slope failed, else
                pending.
        """
        n_columns = sum(n for _, n in blocks)
        table, first = AnswerTable(len(blocks[0][0]), n_columns, self.label_scale.size), 0
        for ids, n in blocks:
            rows: dict[bytes, list[int]] = {}
            for row, id_ in enumerate(ids):
                rows.setdefault(id_, []).append(row)
            n_runs: dict[bytes, int] = {}  # runs of an id so far
            alike: dict[tuple[int, ...], list[Run]] = {}  # added at once; of an id, in their order
            for run in self._runs(list(rows)):
                number = n_runs[run.id] = n_runs.get(run.id, 0) + 1
                alike.setdefault((number, run.start, *map(len, run[2:])), []).append(run)
            for _, runs in sorted(alike.items()):
                if not table.add(rows, first, first + n, runs):
                    self._warn(sum(not table.add(rows, first, first + n, [run]) for run in runs))
            first += n
        if slopes:
            table.require_slopes()
        return table

    def _runs(self, ids: Sequence[bytes]) -> Iterator[Run]:
        """Yield the runs of some ids in the order in which they were added."""
        self._write()
        for start in range(0, len(ids), _IDS_PER_QUERY):
            part = set(ids[start : start + _IDS_PER_QUERY])
            query = f"SELECT * FROM answers WHERE id IN ({_marks(part)}) ORDER BY rowid"
            n_damaged = 0
            for *columns, checksum in self._database.read(query, *part):
                run = Run(*columns)
                if run.is_sound(checksum) and run.id in part:
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

    def _get(self, key: str) -> Any:
        """Return a value of the header, or None if it is missing or damaged."""
        rows = self._database.read("SELECT value FROM header WHERE key = ?", key)
        try:
            return json.loads(rows[0][0]) if rows else None
        except (TypeError, ValueError, RecursionError):
            return None

    def _total(self, key: str) -> float:
        """Return a number of the header, or 0 if it is missing or damaged."""
        value = self._get(key)
        is_number = isinstance(value, int | float) and 0 <= value < 1e300  # NaN is not
        return float(value) if is_number else 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the place of a file, or the content of a store in memory."""
        self.flush()
        content = self._database.content() if self.place is None else b""
        return {"label_scale": self.label_scale, "place": self.place, "content": content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["place"] is None:
            Store.__init__(self, None, state["label_scale"])
            self._database.restore(state["content"])
        else:
            Store.__init__(self, state["place"])


def _named(problem: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that identify a problem, by the names that messages give them."""
    given = {"name": problem.get("name"), "version": problem.get("problem_version")}
    texts = {name: repr(text) for name, text in given.items() if text is not None}
    return {**texts, **{name: str(text) for name, text in problem.get("parameters", {}).items()}}


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values))
