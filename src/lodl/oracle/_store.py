"""The store: answers by instance and points, in one SQLite file or in memory.

    answers    a row for each instance, sampler and 500 points, with a checksum
    header     format version, scale of the labels, identity of the problem, totals, facts

Answers are written in transactions: a kill loses only answers that were not yet written, and
several processes can share a file. A row whose checksum is wrong is ignored and computed again.
Nothing in a file is code, and a file whose tables are not exactly ours is refused.
"""

import json
import logging
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._answer_table import AnswerTable, Block, is_sound
from lodl.oracle._database import VERSION, Database, check_place
from lodl.oracle._failures import OK, described
from lodl.problems import Problem
from lodl.problems._identity import problem_parameters
from lodl.samplers._samplers import BLOCK_SIZE

_MAX_UNSAVED = 2**24  # bytes of answers that are not yet written
_WRITE_EVERY = 20.0  # time between two writes, in units of the time that a write takes
_FIRST_WRITE = 0.005  # seconds that the first write is assumed to take
_IDS_PER_QUERY = 5000
_ADD = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_TOTALS = ("n_answers", "n_failures", "seconds")
_SET = "INSERT OR REPLACE INTO header VALUES (?, ?)"

_logger = logging.getLogger(__name__)

Run = tuple[bytes, int, Block]  # answers with their id and first column


@dataclass(frozen=True)
class Progress:
    """Number and cost of the answers that a store holds and lacks."""

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
    def seconds_per_call(self) -> float:
        """Mean time of a solver call."""
        return self.seconds / max(self.n_answers, 1)

    @property
    def n_missing(self) -> int:
        """Calls that the last run has still to make."""
        return max(self.n_planned - self.n_answers, 0)

    def __str__(self) -> str:
        left = "complete: no planned call is missing"
        if self.n_missing:
            seconds = f"about {self.n_missing * self.seconds_per_call:.3g} s of one worker"
            left = f"{self.n_missing:,} calls missing, {seconds}"
        done = f"{self.n_answers:,} answers, {self.n_failures:,} of them failed calls"
        return f"{done}\n{self.seconds_per_call * 1e3:.3g} ms a call\n{left}"


class Store:
    """Answers by id, in a file or in memory.

    Attributes:
        label_scale: Standard deviation of the labels in each coordinate: the noise of samplers
            whose scale is "auto", and the unit of the steps by which slopes are taken. A file keeps
            the scale of its first labels, so that a part of them finds its answers.
        verified_with: The problem with which the answers were verified, if any.
        place: The file, or None.
        name: The name of the store in messages.
        note: What messages say about the answers that are kept.
    """

    def __init__(
        self,
        place: Path | None,
        label_scale: Array | None = None,
        problem: Problem | None = None,
    ) -> None:
        """Open the store in a file. With a label scale, create it if there is none."""
        header: dict[str, Any] | None = None
        if label_scale is not None:
            header = {"version": VERSION, "label_scale": label_scale.tolist()}
            header |= {
                "problem": _identity(problem),
                "n_answers": 0,
                "n_failures": 0,
                "seconds": 0.0,
            }
        self._database = Database(place, header)
        self.place, self.name = place, self._database.name
        self.label_scale, self._problem = self._read_header()
        self.verified_with: object = None
        self.note = (
            "Nothing is kept; with `store=`, answers are kept and the next run resumes from them."
            if place is None
            else f"What was done is kept in {place}."
        )
        self._unsaved: dict[tuple[bytes, int], Block] = {}
        self._n_bytes, self._seconds = 0, 0.0
        self._written_at, self._writing = time.monotonic(), _FIRST_WRITE
        self._has_warned = self._has_checked_scale = False

    def _read_header(self) -> tuple[Array, Mapping[str, Any]]:
        """Return the label scale and the identity of the problem."""
        texts = dict(self._database.read("SELECT key, value FROM header"))
        try:
            version, problem = json.loads(texts["version"]), json.loads(texts["problem"])
            scale = np.array(json.loads(texts.get("label_scale", "[]")), dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            version, problem, scale, reason = VERSION, None, np.empty(0), described(error)
        else:
            reason = "labels need a scale above 0, and problems parameters by name"
        if version != VERSION:
            raise StoreError(
                f"{self.place} has format version {version}, this version of lodl reads {VERSION}. "
                "Choose another name and sample again."
            )
        has_scale = scale.size and np.isfinite(scale).all() and (scale > 0).all()
        if not has_scale or not isinstance(problem, dict):
            damage = f"The header of {self.place} is damaged: {reason}."
            raise StoreError(f"{damage} Remove it and sample again.")
        return scale, problem

    def check(self, label_scale: Array, problem: Problem) -> None:
        """Raise if the store holds answers for another label shape or of another problem."""
        if label_scale.shape != self.label_scale.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.label_scale.shape}, these "
                f"have shape {label_scale.shape}. Choose another store."
            )
        stored, given = self._problem, _identity(problem)
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

    def check_scale(self, label_scale: Array) -> None:
        """Warn once if the scale of the store's first labels does not fit these labels."""
        stored = self.label_scale
        has_more = stored.size > 1 and np.ptp(stored) > 0 and np.ptp(label_scale) == 0  # labels
        ratio = stored / label_scale
        if not self._has_checked_scale and not has_more and (np.abs(np.log2(ratio)) > 1).any():
            _logger.warning(
                "%s was made with labels whose standard deviation is %.3g to %.3g times that of "
                'these, and the scale "auto" stays that of the first labels. Name another store '
                "for these labels.",
                *(self.name, ratio.min(), ratio.max()),
            )
        self._has_checked_scale = True

    # Writing ------------------------------------------------------------------------------------

    def add(self, runs: Iterable[Run], seconds: float = 0.0) -> None:
        """Add answers and the time that they took. A file is written periodically."""
        with self._database.lock:
            for id_, start, run in runs:
                for number, offset, block in run.in_blocks(start, BLOCK_SIZE):
                    key = id_, number
                    self._unsaved[key] = Block.merged(self._unsaved.get(key), block, offset)
                self._n_bytes += run.n_bytes
            self._seconds += seconds
            is_due = time.monotonic() - self._written_at > _WRITE_EVERY * self._writing
            if self.place is None or is_due or self._n_bytes > _MAX_UNSAVED:
                self._write()

    def copy(self, other: "Store", ids: Iterable[bytes]) -> None:
        """Add the answers that another store has under some ids."""
        runs = [(id_, number * BLOCK_SIZE, run) for (id_, number), run in other._read(set(ids))]
        n_answers, _ = _count([run for _, _, run in runs])
        self.add(runs, other.progress.seconds_per_call * n_answers)

    def flush(self) -> None:
        """Write all answers added so far, and close the file: it can be copied now."""
        with self._database.lock:
            self._write()
            self._database.save()

    def close(self) -> None:
        """Write all answers added so far, and close the file until it is needed again."""
        self.flush()
        self._database.disconnect()

    def plan(self, n_pending: int) -> None:
        """Note how many calls a run is about to make."""
        if n_pending or self.place is None:
            self._set("n_planned", self.progress.n_answers + n_pending)

    def remember(self, name: str, fact: Mapping[str, Any]) -> None:
        """Keep a fact about the problem, in JSON values."""
        self._set(f"fact {name}", dict(fact))

    def _set(self, key: str, value: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(_SET, (key, json.dumps(value)))

    def _write(self) -> None:
        """Write all new answers in one transaction, merged with the answers in the file."""
        with self._database.lock:
            if not self._unsaved and not self._seconds:
                return
            began, blocks = time.monotonic(), self._unsaved
            with self._database.writing() as connection:
                replaced = list[Block]()
                for key, old in self._stored({id_ for id_, _ in blocks}):
                    if key in blocks and is_sound(*old[:3]).all():
                        blocks[key] = Block.merged(old, blocks[key], 0)
                        replaced.append(old)
                connection.executemany(_ADD, (new.as_row(*key) for key, new in blocks.items()))
                (n_new, n_failed), (n_old, n_failed_old) = map(_count, (blocks.values(), replaced))
                totals = {"n_answers": n_new - n_old, "n_failures": n_failed - n_failed_old}
                for name, amount in {**totals, "seconds": self._seconds}.items():
                    add = "UPDATE header SET value = value + ? WHERE key = ?"
                    connection.execute(add, (amount, name))
            self._unsaved, self._n_bytes, self._seconds = {}, 0, 0.0
            self._written_at = time.monotonic()
            self._writing = self._written_at - began

    # Reading ------------------------------------------------------------------------------------

    def recall(self, name: str) -> Any:
        """Return a fact, or None if it is not known."""
        return self._get(f"fact {name}")

    @property
    def progress(self) -> Progress:
        """Number and cost of the answers, and of those that the last run lacks."""
        self._write()
        counts = [int(self._total(key)) for key in ("n_answers", "n_failures", "n_planned")]
        return Progress(counts[0], counts[1], counts[2], self._total("seconds"))

    @property
    def is_empty(self) -> bool:
        """Whether there are no answers."""
        self._write()
        return not self._database.read("SELECT 1 FROM answers LIMIT 1")

    def has(self, ids: Sequence[bytes]) -> set[bytes]:
        """Return the ids under which there are answers."""
        self._write()
        stored: set[bytes] = set()
        for part in _parts(ids):
            query = f"SELECT DISTINCT id FROM answers WHERE id IN ({_marks(part)})"
            stored.update(id_ for (id_,) in self._database.read(query, *part))
        return stored

    def table(
        self, columns: Sequence[tuple[Sequence[bytes], int]], *, slopes: bool = False
    ) -> AnswerTable:
        """Return the answers about some instances.

        Args:
            columns: The ids of the instances and a number of columns, for each group of columns.
            slopes: Whether an answer without a slope is a failure if the slope failed, else
                pending.
        """
        n_columns, first = sum(n for _, n in columns), 0
        table = AnswerTable(len(columns[0][0]), n_columns, self.label_scale.size)
        for ids, n in columns:
            rows: dict[bytes, list[int]] = {}
            for row, id_ in enumerate(ids):
                rows.setdefault(id_, []).append(row)
            for (id_, number), block in self._read(rows):
                if 0 <= number * BLOCK_SIZE < n:
                    table.put(rows[id_], first + number * BLOCK_SIZE, first + n, block)
            self._warn(table.drop_unsound(first, first + n))
            first += n
        if slopes:
            table.require_slopes()
        return table

    def _read(self, ids: Collection[bytes]) -> Iterator[tuple[tuple[bytes, int], Block]]:
        """Yield the answers under some ids, by id and number of the block."""
        self._write()
        return self._stored(ids)

    def _stored(self, ids: Collection[bytes]) -> Iterator[tuple[tuple[bytes, int], Block]]:
        """Yield the answers under some ids that are written, by id and number of the block."""
        n_damaged = 0
        for part in _parts(list(ids)):
            query = f"SELECT * FROM answers WHERE id IN ({_marks(part)})"
            for row in self._database.read(query, *part):
                block = Block.of_row(row, self.label_scale.size)
                if block is None or row[0] not in ids:
                    n_damaged += 1
                else:
                    yield (row[0], row[1]), block
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
        """Pickle the place of a file, or the rows of a store in memory."""
        self.flush()
        names = () if self.place else ("answers", "header")
        rows = {name: self._database.read(f"SELECT * FROM {name}") for name in names}
        return {"place": self.place, "label_scale": self.label_scale, **rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        scale = None if state["place"] else state["label_scale"]
        Store.__init__(self, state["place"], scale)
        if scale is not None:
            with self._database.writing() as connection:
                connection.executemany(_SET, state["header"])
                connection.executemany(_ADD, state["answers"])


def _identity(problem: Problem | None) -> dict[str, str]:
    """Return what identifies a problem: its parameters, and a name and version if given."""
    given = {name: getattr(problem, name, None) for name in ("name", "version")}
    texts = {name: repr(text) for name, text in given.items() if isinstance(text, str)}
    return {} if problem is None else {**problem_parameters(problem), **texts}


def _count(blocks: Collection[Block]) -> tuple[int, int]:
    """Return the number of answers, and of failed calls among them."""
    n_answers = sum(int(np.count_nonzero(block.status)) for block in blocks)
    return n_answers, n_answers - sum(int(np.count_nonzero(b.status == OK)) for b in blocks)


def _parts(ids: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (ids[i : i + _IDS_PER_QUERY] for i in range(0, len(ids), _IDS_PER_QUERY))


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values))
