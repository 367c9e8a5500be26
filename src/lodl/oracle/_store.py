"""The store: answers by instance and points, in one SQLite file or in memory.

    answers    what one task answered about one instance and sampler, with a checksum
    header     format version, scale of the labels, identity of the problem, totals, facts

Rows are added and never changed, in transactions: a kill loses only answers that were not yet
written, and several processes can share a file. Of several answers about one point, reading takes
the best. A row whose checksum is wrong is ignored and computed again. Nothing in a file is code,
and a file whose tables are not exactly ours is refused.
"""

import json
import logging
import os
import threading
import time
import weakref
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lodl._digest import problem_parameters
from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._database import VERSION, Database, check_place
from lodl.oracle._failures import OK, Status, as_text
from lodl.problems import Problem

_MAX_UNSAVED = 2**24  # bytes of answers that are not yet written
_WRITE_EVERY = 20.0  # time between two writes, in units of the time that a write takes
_FIRST_WRITE = 0.005  # seconds that the first write is assumed to take
_IDS_PER_QUERY = 5000
_LAST_STATUS = max(Status)
_TOTALS = ("n_answers", "n_failures", "seconds")
_NOTE = "Nothing is kept; with `store=`, answers are kept and the next run resumes from them."

_logger = logging.getLogger(__name__)

ANSWER = np.dtype([("loss", "<f8"), ("status", "u1"), ("decision", "<i4")])
"""Decision loss (NaN if the call failed or was not made), outcome of the call (0 if it was not
made), and the row of its slope in `gradient`: -1 without a slope, -1 - s if that failed with s."""

NO_ANSWER = np.array((np.nan, 0, -1), dtype=ANSWER)
_RAW = np.dtype((np.void, ANSWER.itemsize))  # whole answers: ten times faster to copy
Answered = npt.NDArray[np.void]  # an array of `ANSWER`
_Rows = npt.NDArray[np.intp]


class Block(NamedTuple):
    """Answers about some instances in the same successive columns."""

    ids: Sequence[bytes]
    start: int  # first column
    answers: Answered  # shape (n, columns); answers that are missing have status 0
    gradient: Array  # derivatives of the loss of distinct decisions by the label, shape (m, D)
    messages: Mapping[tuple[int, str], str]  # the first message by row and kind of failure


class AnswerTable(NamedTuple):
    """Answers about some instances; arrays have shape (n, columns). See `ANSWER`."""

    loss: Array
    status: npt.NDArray[np.uint8]
    decision: npt.NDArray[np.int32]  # without meaning if slopes were not wanted
    gradient: Array  # shape (m, D)
    messages: Mapping[tuple[int, str], str]  # the first message by row and kind of failure


class _Index:
    """Blocks of answers in memory, whose rows are found by id."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._starts: list[int] = []  # number of the first row of each block
        self._n_rows = 0
        self._first: dict[bytes, int] = {}  # number of an id's first row
        self._next: dict[int, int] = {}  # the next row of the same id, if there is one

    def add(self, block: Block) -> None:
        self._blocks.append(block)
        self._starts.append(self._n_rows)
        for number, id_ in enumerate(block.ids, self._n_rows):
            row = self._first.setdefault(id_, number)
            while row != number:
                row = self._next.setdefault(row, number)
        self._n_rows += len(block.ids)

    def find(self, ids: Sequence[bytes]) -> Iterator[tuple[Block, _Rows, _Rows]]:
        """Yield blocks, rows of them, and the places of these rows' ids; the first answers first.

        A place is yielded with a block only once at a time. Rows that another thread adds meanwhile
        are not found.
        """
        n_rows, starts = self._n_rows, np.array(self._starts)
        numbers = np.fromiter(map(self._first.get, ids, repeat(-1)), np.intp, len(ids))
        places = np.arange(len(numbers))
        while (is_known := (numbers >= 0) & (numbers < n_rows)).any():
            numbers, places = numbers[is_known], places[is_known]
            of_block = np.searchsorted(starts, numbers, side="right") - 1
            for number in np.flatnonzero(np.bincount(of_block)).tolist():
                rows = of_block == number
                yield self._blocks[number], numbers[rows] - starts[number], places[rows]
            if not self._next:
                return
            following = map(self._next.get, numbers.tolist(), repeat(-1))
            numbers = np.fromiter(following, np.intp, len(numbers))


@dataclass(frozen=True)
class Progress:
    """Number and cost of the answers that a store holds and lacks."""

    n_answers: int  #: Solver calls whose answers it holds, failed calls included.
    n_failures: int  #: How many of these failed.
    n_planned: int  #: Answers that it holds when the last run is complete.
    seconds: float  #: Time that the answers took, summed over workers.

    @classmethod
    def read(cls, place: str | os.PathLike[str]) -> "Progress":
        """Return the progress of the store in a file, or raise `StoreError`."""
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
    """Answers by id, in a file or in memory. Threads and forked processes may share it."""

    def __init__(
        self, place: Path | None, label_scale: Array | None = None, problem: Problem | None = None
    ) -> None:
        """Open the store in a file. With a label scale, create it if there is none."""
        self.place = place
        self.note = _NOTE if place is None else f"What was done is kept in {place}."
        self._lock = threading.RLock()
        # A store in memory keeps an index of its answers, and facts in place of a header.
        self._index, self._facts = _Index(), dict[str, Any]()
        self._unsaved: list[Block] = []  # answers that are not yet in the file
        self._n_bytes = 0  # size of `_unsaved`
        self._totals = np.zeros(3)  # answers, failures and seconds that are not in the file
        self._damaged: set[int] = set()  # numbers of rows to delete
        self._written_at, self._writing = time.monotonic(), _FIRST_WRITE
        self._has_checked_scale = False
        self._file: Database | None = None
        self.is_verified = True  # whether the answers are known to be of the problem
        if place is None:
            assert label_scale is not None
            self.label_scale = label_scale
        else:
            identity, header = _identity(problem), None
            if label_scale is not None:
                header = {"version": VERSION, "label_scale": label_scale.tolist()}
                header |= {"problem": identity, **dict.fromkeys(_TOTALS, 0)}
            self._file = Database(place, header)
            # The unit of samplers with scale "auto" and of the steps by which slopes are taken. A
            # file keeps the scale of its first labels, so that a part of them finds its answers.
            self.label_scale = self._check_header(identity)
            self.is_verified = not self._file.read("SELECT 1 FROM answers LIMIT 1")
        _stores.add(self)

    def _check_header(self, identity: Mapping[str, str]) -> Array:
        """Return the label scale. Raise if the header is damaged, or of another problem."""
        assert self._file is not None
        texts = dict(self._file.read("SELECT key, value FROM header"))
        reason = "labels need a scale above 0, and problems parameters by name"
        try:
            version, problem = json.loads(texts["version"]), json.loads(texts["problem"])
            scale = np.array(json.loads(texts["label_scale"]), dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            version, problem, scale, reason = VERSION, None, np.empty(0), as_text(error)
        if version != VERSION:
            raise StoreError(
                f"{self.place} has format version {version}, this version of lodl reads {VERSION}. "
                "Choose another name and sample again."
            )
        has_scale = scale.size and np.isfinite(scale).all() and (scale > 0).all()
        if not has_scale or not isinstance(problem, dict):
            damage = f"The header of {self.place} is damaged: {reason}."
            raise StoreError(f"{damage} Remove it and sample again.")
        differences = "; ".join(
            f"its {name} is {problem[name]}, this one's is {identity[name]}"
            for name in sorted(problem.keys() & identity.keys())
            if problem[name] != identity[name]
        )
        if differences:
            message = f"{self.place} holds answers of another problem: {differences}."
            raise StoreError(f"{message} Choose another store.")
        return scale

    def check_labels(self, label_scale: Array, *, is_auto: bool) -> None:
        """Raise if the store is for labels of another shape, or warn if it is for other sizes."""
        stored = self.label_scale
        if label_scale.shape != stored.shape:
            what = f"{self.place} holds answers about labels of shape {stored.shape}"
            raise StoreError(f"{what}, these have shape {label_scale.shape}. Choose another store.")
        if self.place is None or not is_auto or self._has_checked_scale:
            return
        self._has_checked_scale = True
        has_more = stored.size > 1 and np.ptp(stored) > 0 and np.ptp(label_scale) == 0  # labels
        ratio = stored / label_scale
        if not has_more and (np.abs(np.log2(ratio)) > 1).any():
            _logger.warning(
                "%s was made with labels whose standard deviation is %.3g to %.3g times that of "
                'these, and the scale "auto" stays that of the first labels. Name another store '
                "for these labels.",
                *(self.place, ratio.min(), ratio.max()),
            )

    def add(self, blocks: Collection[Block], seconds: float = 0.0) -> None:
        """Add answers and the time that they took. A file is written periodically."""
        with self._lock:
            self._totals += (*_count(blocks), seconds)
            if self._file is None:
                for block in blocks:
                    self._index.add(block)
                return
            self._unsaved += blocks
            self._n_bytes += sum(block.answers.nbytes + block.gradient.nbytes for block in blocks)
            is_due = time.monotonic() - self._written_at > _WRITE_EVERY * self._writing
            if is_due or self._n_bytes > _MAX_UNSAVED:
                self._write()

    def _write(self) -> None:
        """Write all new answers to the file in one transaction."""
        if self._file is None or not (self._unsaved or self._totals.any()):
            return
        began = time.monotonic()
        rows = (row for block in self._unsaved for row in _as_rows(block))
        damaged = ((number,) for number in self._damaged)
        with self._file.writing() as connection:
            connection.executemany("DELETE FROM answers WHERE rowid = ?", damaged)
            connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", rows)
            totals = zip(self._totals.tolist(), _TOTALS, strict=True)
            connection.executemany("UPDATE header SET value = value + ? WHERE key = ?", totals)
        self._unsaved, self._totals, self._n_bytes, self._damaged = [], np.zeros(3), 0, set()
        self._written_at = time.monotonic()
        self._writing = self._written_at - began

    def close(self) -> None:
        """Write all answers added so far, and close the file until it is needed again."""
        with self._lock:
            self._write()
            if self._file is not None:
                self._file.disconnect()

    def remember(self, key: str, value: Any) -> None:
        """Keep a fact, in JSON values."""
        with self._lock:
            if self._file is None:
                self._facts[key] = value
                return
            with self._file.writing() as connection:
                query = "INSERT OR REPLACE INTO header VALUES (?, ?)"
                connection.execute(query, (key, json.dumps(value)))

    def recall(self, key: str) -> Any:
        """Return a fact, or nothing for a missing or damaged fact."""
        with self._lock:
            if self._file is None:
                return self._facts.get(key)
            rows = self._file.read("SELECT value FROM header WHERE key = ?", key)
            try:
                return json.loads(rows[0][0]) if rows else None
            except (TypeError, ValueError, RecursionError):
                return None

    @property
    def progress(self) -> Progress:
        """Number and cost of the answers, and of those that the last run lacks."""
        with self._lock:
            self._write()
            totals = self._totals.tolist() if self._file is None else map(self._total, _TOTALS)
            n_answers, n_failures, seconds = totals
            return Progress(int(n_answers), int(n_failures), int(self._total("n_planned")), seconds)

    def _total(self, key: str) -> float:
        """Return a number of the header, or 0 if it is missing or damaged."""
        value = self.recall(key)
        is_number = isinstance(value, int | float) and 0 <= value < 1e300  # NaN is not
        return float(value) if is_number else 0.0

    def table(
        self, columns: Sequence[tuple[Sequence[bytes], int]], *, slopes: bool = False
    ) -> AnswerTable:
        """Return the answers under the ids of some instances, for each group of columns.

        With `slopes`, an answer without a slope is a failure if the slope failed, else pending.
        """
        raw = np.full((len(columns[0][0]), sum(n for _, n in columns)), NO_ANSWER.view(_RAW))
        gradients, n_gradients = [np.empty((0, self.label_scale.size))], 0
        messages, first = dict[tuple[int, str], str](), 0
        for ids, n in columns:
            for whole, rows, targets in self._read(ids).find(ids if n else ()):
                if not 0 <= whole.start < n:
                    continue
                block = _taken(whole, rows, slopes=slopes)
                start, stop = block.start, min(block.start + block.answers.shape[1], n)
                place = targets, slice(first + start, first + stop)
                raw[place] = _better(raw[place], block.answers, n_gradients)
                gradients.append(block.gradient)
                n_gradients += len(block.gradient)
                for (source, kind), message in block.messages.items():
                    messages.setdefault((int(targets[source]), kind), str(message))
            first += n
        loss, status, decision = (raw.view(ANSWER)[name] for name in ("loss", "status", "decision"))
        if slopes:
            lacks = (status == OK) & (decision < 0)
            status[lacks] = -1 - decision[lacks]
        return AnswerTable(loss, status, decision, np.concatenate(gradients), messages)

    def part(self, ids: Iterable[bytes]) -> "Store":
        """Return the answers under some ids in memory, with their share of the time."""
        wanted = list(dict.fromkeys(ids))
        taken = [_taken(block, rows) for block, rows, _ in self._read(wanted).find(wanted)]
        store, per_call = Store(None, self.label_scale), self.progress.seconds_per_call
        store.add(taken, per_call * _count(taken)[0])
        store.note = self.note
        return store

    def _read(self, ids: Iterable[bytes]) -> _Index:
        """Return an index that has the answers under some ids."""
        with self._lock:
            self._write()
            if self._file is None:
                return self._index
            index, damaged, dim = _Index(), set[int](), self.label_scale.size
            rest = iter(dict.fromkeys(ids))
            while part := list(islice(rest, _IDS_PER_QUERY)):
                marks = ",".join("?" * len(part))
                query = f"SELECT rowid, * FROM answers WHERE id IN ({marks})"
                for block in _decoded(self._file.read(query, *part), dim, damaged):
                    index.add(block)
            if damaged and not self._damaged:
                _logger.warning(
                    "%d rows of answers in %s are damaged. They are ignored and computed again.",
                    *(len(damaged), self.place),
                )
            self._damaged |= damaged
            return index

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the place of a file, or the answers in memory."""
        self.close()
        if self.place is not None:
            return Store, (self.place,)
        names = ("_index", "_totals", "note")
        return Store, (None, self.label_scale), {name: vars(self)[name] for name in names}


# A connection must not cross a fork: both processes would believe they hold the other's locks.

_stores = weakref.WeakSet[Store]()
_held: list[Store] = []


def _before_fork() -> None:
    _held[:] = _stores
    for store in _held:
        store._lock.acquire()
        if store._file is not None:
            store._file.disconnect()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def _identity(problem: Problem | None) -> dict[str, str]:
    """Return what identifies a problem: its parameters, and a name and version if given."""
    given = {name: getattr(problem, name, None) for name in ("name", "version")}
    texts = {name: repr(text) for name, text in given.items() if isinstance(text, str)}
    return {} if problem is None else {**problem_parameters(problem), **texts}


def _count(blocks: Iterable[Block]) -> tuple[int, int]:
    """Return the number of answers, and of failed calls among them."""
    status = np.concatenate([np.empty(0), *(block.answers["status"].ravel() for block in blocks)])
    return int(np.sum(status > 0)), int(np.sum(status > OK))


def _taken(block: Block, rows: _Rows, *, slopes: bool = True) -> Block:
    """Return some rows of a block, with the slopes that they need, or without slopes."""
    if len(rows) == len(block.ids) and (rows == np.arange(len(rows))).all():
        return block if slopes else block._replace(gradient=block.gradient[:0])
    answers = block.answers.view(_RAW)[rows].view(ANSWER)
    is_used, is_known = np.zeros(len(block.gradient), np.bool_), answers["decision"] >= 0
    if slopes and is_used.size:
        is_used[answers["decision"][is_known]] = True
        answers["decision"][is_known] = (np.cumsum(is_used) - 1)[answers["decision"][is_known]]
    place = {row: new for new, row in enumerate(rows.tolist())} if block.messages else {}
    messages = {(place[r], kind): text for (r, kind), text in block.messages.items() if r in place}
    ids = [block.ids[row] for row in rows.tolist()]
    return Block(ids, block.start, answers, block.gradient[is_used], messages)


def _better(old: npt.NDArray[np.void], new: Answered, n_gradients: int) -> npt.NDArray[np.void]:
    """Return old answers, or new ones where these are worth more; rows of slopes are shifted."""
    new = new[:, : old.shape[1]]
    if n_gradients:
        new = new.copy()
        new["decision"][new["decision"] >= 0] += n_gradients
    present = old.view(ANSWER)
    if not present["status"].any():
        return new.view(_RAW)
    before, after = _worth(present), _worth(new)
    slope_failed = (before == 2) & (after == 1)
    present["decision"][slope_failed] = -1 - new["status"][slope_failed].astype(np.int32)
    old[after > before] = new.view(_RAW)[after > before]
    return old


def _worth(answers: Answered) -> npt.NDArray[np.int8]:
    """Return 0 for pending calls, 1 for failures, 2 for successes, 3 for those with slopes."""
    status, decision = answers["status"], answers["decision"]
    return np.asarray((status > 0).astype(np.int8) + (status == OK) + (decision >= 0))


def _as_rows(block: Block) -> Iterator[tuple[Any, ...]]:
    """Yield the answers about each instance as a row of the file."""
    for row in np.flatnonzero(block.answers["status"].any(axis=1)).tolist():
        (id_,), start, answers, gradient, messages = _taken(block, np.array([row]))
        text = json.dumps({kind: text for (_, kind), text in messages.items()}) if messages else ""
        whole = (id_, start, answers.tobytes(), gradient.tobytes(), text)
        yield (*whole, _checksum(*whole))


def _checksum(id_: bytes, start: int, answers: bytes, gradient: bytes, messages: str) -> int:
    start_bytes = start.to_bytes(8, "little", signed=True)
    return zlib.crc32(b"".join((id_, start_bytes, answers, gradient, messages.encode())))


def _decoded(rows: Sequence[Sequence[Any]], dim: int, damaged: set[int]) -> Iterator[Block]:
    """Yield the rows that can be ours in blocks, and collect the numbers of the others."""
    damaged |= {number for number, *row in rows if not _is_intact(row, dim)}
    alike = defaultdict[tuple[int, int], list[Sequence[Any]]](list)
    for row in rows:
        if row[0] not in damaged:
            alike[row[2], len(row[3])].append(row)
    for (start, _), group in alike.items():
        answers = np.frombuffer(b"".join(row[3] for row in group), ANSWER).copy()
        answers = answers.reshape(len(group), -1)
        gradient = np.frombuffer(b"".join(row[4] for row in group), "<f8").reshape(-1, dim)
        edges = np.append(0, np.cumsum([len(row[4]) // (8 * dim) for row in group]))
        n_unsound = np.append(0, np.cumsum(~np.isfinite(gradient).all(axis=1)))
        is_sound = _is_sound(answers, np.diff(edges)[:, np.newaxis]).all(axis=1)
        is_sound &= np.diff(n_unsound[edges]) == 0
        damaged |= {group[row][0] for row in np.flatnonzero(~is_sound)}
        answers["decision"] += np.where(answers["decision"] >= 0, edges[:-1, np.newaxis], 0)
        messages = {
            (number, kind): message
            for number, row in enumerate(group)
            for kind, message in (json.loads(row[5]) if row[5] else {}).items()
        }
        block = Block([row[1] for row in group], start, answers, gradient, messages)
        yield _taken(block, np.flatnonzero(is_sound))


def _is_intact(row: Sequence[Any], dim: int) -> bool:
    """Return whether a row has its checksum, and values of the right type and size."""
    try:
        *content, checksum = row
        if _checksum(*content) != checksum:
            return False
        _, _, answers, gradient, messages = content
        fits = answers and len(answers) % ANSWER.itemsize == len(gradient) % (8 * dim) == 0
        return fits and (not messages or isinstance(json.loads(messages), dict))
    except (AttributeError, TypeError, ValueError, RecursionError, OverflowError):
        return False


def _is_sound(answers: Answered, n_slopes: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return which answers can be ours: exactly the successes have a loss, and maybe a slope."""
    status, decision = answers["status"], answers["decision"]
    is_ok, is_known = status == OK, status <= _LAST_STATUS
    may_be = (decision >= -1 - _LAST_STATUS) & (decision != -1 - OK) & (decision < n_slopes)
    has_loss = np.isfinite(answers["loss"])
    return np.asarray(is_known & may_be & (has_loss == is_ok) & (is_ok | (decision == -1)))
