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
import threading
import time
import weakref
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lodl._digest import problem_parameters
from lodl._typing import Array
from lodl.errors import StoreError
from lodl.oracle._database import VERSION, Database, check_place
from lodl.oracle._failures import OK, Status, described
from lodl.problems import Problem
from lodl.samplers._samplers import BLOCK_SIZE

_MAX_UNSAVED = 2**24  # bytes of answers that are not yet written
_WRITE_EVERY = 20.0  # time between two writes, in units of the time that a write takes
_FIRST_WRITE = 0.005  # seconds that the first write is assumed to take
_IDS_PER_QUERY = 5000
_LAST_STATUS = max(Status)
_NOTE = "Nothing is kept; with `store=`, answers are kept and the next run resumes from them."

_logger = logging.getLogger(__name__)

ANSWER = np.dtype([("loss", "<f8"), ("status", "u1"), ("decision", "<i4")])
"""Decision loss (NaN if the call failed or was not made), outcome of the call (0 if it was not
made), and the row of its slope in `gradient`: -1 without a slope, -1 - s if that failed with s."""

NO_ANSWER = np.array((np.nan, 0, -1), dtype=ANSWER)
_RAW = np.dtype((np.void, ANSWER.itemsize))  # whole answers: ten times faster to copy
Answered = npt.NDArray[np.void]  # an array of `ANSWER`


class Block(NamedTuple):
    """Answers of one instance in successive columns."""

    answers: Answered
    gradient: Array  # derivatives of the loss of distinct decisions by the label, shape (m, D)
    messages: Mapping[str, str]  # the first message of each kind of failure


Run = tuple[bytes, int, Block]  # answers with their id and first column
_Blocks = dict[bytes, dict[int, Block]]  # answers by id and number of the block


class AnswerTable(NamedTuple):
    """Answers about some instances; arrays have shape (n, columns). See `ANSWER`."""

    loss: Array
    status: npt.NDArray[np.uint8]
    decision: npt.NDArray[np.int32]
    gradient: Array  # shape (m, D)
    messages: Mapping[tuple[int, str], str]  # the first message by row and kind of failure


@dataclass(frozen=True)
class Progress:
    """Number and cost of the answers that a store holds and lacks.

    Attributes:
        n_answers: Solver calls whose answers it holds, failed calls included.
        n_failures: How many of these failed.
        n_planned: Answers that it holds when the last run is complete.
        seconds: Time that the answers took, summed over workers.
    """

    n_answers: int
    n_failures: int
    n_planned: int
    seconds: float

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
    """Answers by id, in a file or in memory. Threads and forked processes may share it."""

    def __init__(
        self,
        place: Path | None,
        label_scale: Array | None = None,
        problem: Problem | None = None,
    ) -> None:
        """Open the store in a file. With a label scale, create it if there is none."""
        self.place, self.name = place, "The store" if place is None else str(place)
        self.verified_with: object = None  # the problem with which answers were verified, if any
        self._lock = threading.RLock()
        self._blocks: _Blocks = {}  # all answers, or those that are not yet in the file
        self._header: dict[str, Any] = {}  # of a store in memory
        self._n_bytes, self._seconds = 0, 0.0  # of the answers in `_blocks`
        self._written_at, self._writing = time.monotonic(), _FIRST_WRITE
        self._has_warned = self._has_checked_scale = False
        self._file: Database | None = None
        if place is None:
            assert label_scale is not None
            self.label_scale = label_scale
        else:
            identity, header = _identity(problem), None
            if label_scale is not None:
                header = {"version": VERSION, "label_scale": label_scale.tolist()}
                header |= {"problem": identity, "n_answers": 0, "n_failures": 0, "seconds": 0.0}
            self._file = Database(place, header)
            # The unit of samplers with scale "auto" and of the steps by which slopes are taken. A
            # file keeps the scale of its first labels, so that a part of them finds its answers.
            self.label_scale = self._check_header(identity)
        self.note = _NOTE if place is None else f"What was done is kept in {place}."
        _stores.add(self)

    def _check_header(self, identity: Mapping[str, str]) -> Array:
        """Return the label scale. Raise if the header is damaged, or of another problem."""
        assert self._file is not None
        texts = dict(self._file.read("SELECT key, value FROM header"))
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
        differences = [
            f"its {name} is {problem[name]}, this one's is {identity[name]}"
            for name in sorted(problem.keys() & identity.keys())
            if problem[name] != identity[name]
        ]
        if differences:
            raise StoreError(
                f"{self.name} holds answers of another problem: {'; '.join(differences)}. "
                "Choose another store."
            )
        return scale

    def check_shape(self, label_scale: Array) -> None:
        """Raise if the store holds answers about labels of another shape."""
        if label_scale.shape != self.label_scale.shape:
            raise StoreError(
                f"{self.name} holds answers about labels of shape {self.label_scale.shape}, these "
                f"have shape {label_scale.shape}. Choose another store."
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
        with self._lock:
            for id_, start, run in runs:
                blocks = self._blocks.setdefault(id_, {})
                for number in range(start // BLOCK_SIZE, -(-(start + len(run[0])) // BLOCK_SIZE)):
                    offset = max(start - number * BLOCK_SIZE, 0)
                    first = number * BLOCK_SIZE + offset - start
                    part = run.answers[first : first + BLOCK_SIZE - offset]
                    new = Block(part, run.gradient, run.messages)
                    blocks[number] = _merged(blocks.get(number), new, offset)
                self._n_bytes += run.answers.nbytes + run.gradient.nbytes
            self._seconds += seconds
            is_due = time.monotonic() - self._written_at > _WRITE_EVERY * self._writing
            if is_due or self._n_bytes > _MAX_UNSAVED:
                self._write()

    def _write(self) -> None:
        """Write all new answers to the file in one transaction, merged with those in the file."""
        if self._file is None or not (self._blocks or self._seconds):
            return
        began, replaced = time.monotonic(), list[Block]()
        with self._file.writing() as connection:
            for id_, stored in self._stored(self._blocks).items():
                blocks = self._blocks[id_]
                for number in stored.keys() & blocks.keys():
                    replaced.append(stored[number])
                    blocks[number] = _merged(stored[number], blocks[number], 0)
            rows = (
                _row(id_, number, block)
                for id_, blocks in self._blocks.items()
                for number, block in blocks.items()
            )
            connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", rows)
            n_answers, n_failures = np.subtract(
                _count(self._new_blocks()), _count(replaced)
            ).tolist()
            totals = {"n_answers": n_answers, "n_failures": n_failures, "seconds": self._seconds}
            for name, amount in totals.items():
                add = "UPDATE header SET value = value + ? WHERE key = ?"
                connection.execute(add, (amount, name))
        self._blocks, self._n_bytes, self._seconds = {}, 0, 0.0
        self._written_at = time.monotonic()
        self._writing = self._written_at - began

    def _new_blocks(self) -> list[Block]:
        return [block for blocks in self._blocks.values() for block in blocks.values()]

    def close(self) -> None:
        """Write all answers added so far, and close the file until it is needed again."""
        with self._lock:
            self._write()
            self.disconnect()

    def disconnect(self) -> None:
        """Close the file until it is needed again."""
        if self._file is not None:
            self._file.disconnect()

    def remember(self, key: str, value: Any) -> None:
        """Keep a fact, in JSON values."""
        with self._lock:
            if self._file is None:
                self._header[key] = value
                return
            with self._file.writing() as connection:
                query = "INSERT OR REPLACE INTO header VALUES (?, ?)"
                connection.execute(query, (key, json.dumps(value)))

    # Reading ------------------------------------------------------------------------------------

    def recall(self, key: str) -> Any:
        """Return a fact, or None if it is missing or damaged."""
        with self._lock:
            if self._file is None:
                return self._header.get(key)
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
            n_planned = int(self._total("n_planned"))
            if self._file is None:
                return Progress(*_count(self._new_blocks()), n_planned, self._seconds)
            counts = int(self._total("n_answers")), int(self._total("n_failures"))
            return Progress(*counts, n_planned, self._total("seconds"))

    def _total(self, key: str) -> float:
        """Return a number of the header, or 0 if it is missing or damaged."""
        value = self.recall(key)
        is_number = isinstance(value, int | float) and 0 <= value < 1e300  # NaN is not
        return float(value) if is_number else 0.0

    @property
    def is_empty(self) -> bool:
        """Whether there are no answers."""
        with self._lock:
            self._write()
            if self._file is None:
                return not self._blocks
            return not self._file.read("SELECT 1 FROM answers LIMIT 1")

    def has(self, ids: Collection[bytes]) -> set[bytes]:
        """Return the ids under which there are answers."""
        with self._lock:
            self._write()
            if self._file is None:
                return {id_ for id_ in ids if id_ in self._blocks}
            rows = self._rows("SELECT DISTINCT id", ids)
            return {id_ for part in rows for (id_,) in part}

    def table(
        self, columns: Sequence[tuple[Sequence[bytes], int]], *, slopes: bool = False
    ) -> AnswerTable:
        """Return the answers about some instances.

        Args:
            columns: The ids of the instances and a number of columns, for each group of columns.
            slopes: Whether an answer without a slope is a failure if the slope failed, else
                pending.
        """
        raw = np.full((len(columns[0][0]), sum(n for _, n in columns)), NO_ANSWER.view(_RAW))
        answers = raw.view(ANSWER)
        messages, first = dict[tuple[int, str], str](), 0
        gradients, n_gradients = [np.empty((0, self.label_scale.size))], 0
        for ids, n in columns:
            stored = self._read(set(ids))
            for row, id_ in enumerate(ids):
                for number, block in stored.get(id_, {}).items():
                    start = number * BLOCK_SIZE
                    if not 0 <= start < n:
                        continue
                    columns_of = slice(first + start, first + min(start + len(block[0]), n))
                    raw[row, columns_of] = block.answers.view(_RAW)[: n - start]
                    if len(block.gradient):
                        decision = answers["decision"][row, columns_of]
                        decision[decision >= 0] += n_gradients
                        gradients.append(block.gradient)
                        n_gradients += len(block.gradient)
                    for kind, message in block.messages.items():
                        messages.setdefault((row, kind), str(message))
            first += n
        loss, status, decision = (answers[name] for name in ("loss", "status", "decision"))
        if slopes:
            lacks = (status == OK) & (decision < 0)
            status[lacks] = -1 - decision[lacks]
        return AnswerTable(loss, status, decision, np.concatenate(gradients), messages)

    def part(self, ids: Collection[bytes]) -> "Store":
        """Return the answers under some ids in memory, with their share of the time."""
        part, seconds_per_call = Store(None, self.label_scale), self.progress.seconds_per_call
        part._blocks = {id_: dict(blocks) for id_, blocks in self._read(set(ids)).items()}
        part._seconds, part.note = seconds_per_call * part.progress.n_answers, self.note
        return part

    def _read(self, ids: set[bytes]) -> _Blocks:
        with self._lock:
            self._write()
            if self._file is None:
                return {id_: self._blocks[id_] for id_ in ids if id_ in self._blocks}
            return self._stored(ids)

    def _stored(self, ids: Collection[bytes]) -> _Blocks:
        """Return the answers under some ids that are in the file."""
        blocks, dim, n_damaged = _Blocks(), self.label_scale.size, 0
        for rows in self._rows("SELECT *", ids):
            n_damaged += len(rows)
            for id_, number, block in _decoded(rows, dim):
                if id_ in ids:  # an index may be damaged
                    blocks.setdefault(id_, {})[number] = block
                    n_damaged -= 1
        if n_damaged and not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "%d rows of answers in %s are damaged. They are ignored and computed again.",
                *(n_damaged, self.name),
            )
        return blocks

    def _rows(self, select: str, ids: Collection[bytes]) -> Iterator[list[Any]]:
        """Yield the rows of a query about some ids, in pieces."""
        assert self._file is not None
        every = list(ids)
        for first in range(0, len(every), _IDS_PER_QUERY):
            part = every[first : first + _IDS_PER_QUERY]
            marks = ",".join("?" * len(part))
            yield self._file.read(f"{select} FROM answers WHERE id IN ({marks})", *part)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the place of a file, or the answers in memory."""
        self.close()
        state = {"place": self.place, "label_scale": self.label_scale}
        names = () if self.place else ("_blocks", "_header", "_seconds")
        return state | {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        scale = state.pop("label_scale")
        Store.__init__(self, state["place"], None if state["place"] else scale)
        vars(self).update(state)


# A connection must not cross a fork: both processes would believe they hold the other's locks.

_stores = weakref.WeakSet[Store]()
_held: list[Store] = []


def _before_fork() -> None:
    _held[:] = _stores
    for store in _held:
        store._lock.acquire()
        store.disconnect()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


# Blocks ---------------------------------------------------------------------------------------


def _identity(problem: Problem | None) -> dict[str, str]:
    """Return what identifies a problem: its parameters, and a name and version if given."""
    given = {name: getattr(problem, name, None) for name in ("name", "version")}
    texts = {name: repr(text) for name, text in given.items() if isinstance(text, str)}
    return {} if problem is None else {**problem_parameters(problem), **texts}


def _count(blocks: Sequence[Block]) -> tuple[int, int]:
    """Return the number of answers, and of failed calls among them."""
    statuses = [block.answers["status"] for block in blocks]
    status = np.concatenate(statuses) if statuses else np.empty(0)
    return int(np.sum(status > 0)), int(np.sum(status > OK))


def _merged(old: Block | None, new: Block, start: int) -> Block:
    """Return old and new answers together. The first column of the new ones is `start`.

    A successful answer replaces a failed one, and an answer with a slope one without.
    """
    if old is None:
        if start == 0 and not len(new.gradient):
            return new
        old = Block(np.empty(0, ANSWER), new.gradient[:0], {})
    stop = start + len(new.answers)
    answers = np.full(max(len(old.answers), stop), NO_ANSWER)
    answers[: len(old.answers)] = old.answers
    decision, part = answers["decision"], answers[start:stop]
    decision[decision >= 0] += len(new.gradient)
    before, after = _worth(part), _worth(new.answers)
    slope_failed = (before == 2) & (after == 1)
    part["decision"][slope_failed] = -1 - new.answers["status"][slope_failed].astype(np.int32)
    part[after > before] = new.answers[after > before]
    has_slope = decision >= 0
    used, decision[has_slope] = np.unique(decision[has_slope], return_inverse=True)
    gradient = np.concatenate([new.gradient, old.gradient])[used]
    return Block(answers, gradient, {**new.messages, **old.messages})


def _worth(answers: Answered) -> npt.NDArray[np.int8]:
    """Return 0 for pending calls, 1 for failures, 2 for successes, 3 for those with slopes."""
    status, decision = answers["status"], answers["decision"]
    return np.asarray((status > 0).astype(np.int8) + (status == OK) + (decision >= 0))


def _row(id_: bytes, number: int, block: Block) -> tuple[Any, ...]:
    messages = json.dumps(block.messages) if block.messages else ""
    row = (id_, number, block.answers.tobytes(), block.gradient.tobytes(), messages)
    return (*row, _checksum(*row))


def _checksum(id_: bytes, number: int, answers: bytes, gradient: bytes, messages: str) -> int:
    number_bytes = number.to_bytes(8, "little", signed=True)
    return zlib.crc32(b"".join((id_, number_bytes, answers, gradient, messages.encode())))


def _decoded(rows: Iterable[tuple[Any, ...]], dim: int) -> Iterator[Run]:
    """Yield the id, number and content of the rows that can be ours."""
    rows = [row for row in rows if _is_intact(row, dim)]
    sizes = np.array([len(row[2]) // ANSWER.itemsize for row in rows], dtype=np.intp)
    n_slopes = np.repeat([len(row[3]) // (8 * dim) for row in rows], sizes)
    answers = np.frombuffer(b"".join(row[2] for row in rows), ANSWER)
    n_unsound = np.append(0, np.cumsum(~_is_sound(answers, n_slopes)))
    stops = np.cumsum(sizes)
    starts = stops - sizes
    is_sound = n_unsound[stops] == n_unsound[starts]
    for row, start, stop, sound in zip(
        rows, starts.tolist(), stops.tolist(), is_sound, strict=True
    ):
        gradient = np.frombuffer(row[3], "<f8").reshape(-1, dim)
        if sound and (not row[3] or np.isfinite(gradient).all()):
            messages = json.loads(row[4]) if row[4] else {}
            yield row[0], row[1], Block(answers[start:stop], gradient, messages)


def _is_intact(row: tuple[Any, ...], dim: int) -> bool:
    """Return whether a row has its checksum, and values of the right type and size."""
    *content, checksum = row
    try:
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
