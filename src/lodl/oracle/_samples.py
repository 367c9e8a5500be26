"""What the oracle said about candidate predictions, and the candidates drawn again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle._answer_table import AnswerTable
from lodl.oracle._answers import Answers
from lodl.oracle._failure import NO_OPTIMUM, OK, PENDING, Status, describe
from lodl.oracle._instances import Instances, Series
from lodl.oracle._pool import DecisionPool
from lodl.oracle._store import Progress, Store
from lodl.problems import Problem
from lodl.problems._problem import describe as describe_problem
from lodl.problems._regret import SLIGHT, check_sense_of, regret_of

AT_ONCE = 256  # instances that are read together


@dataclass(eq=False)
class _Counts:
    """What a pass over all answers finds."""

    first_failures: dict[str, str] = field(default_factory=dict)  # by kind
    calls: int = 0  # equal ones once
    failures: int = 0  # samples without a regret
    failed_labels: int = 0  # calls at labels that failed
    failed_samples: int = 0  # other calls that failed
    positive: int = 0  # regrets above zero
    negative: int = 0  # regrets notably below zero
    below_zero: float = 0.0  # their mean size
    mean_size: float = 0.0  # of all regrets


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """What the oracle said about candidate predictions around every label.

    Regrets are read, and candidates drawn again, when an instance is asked for: `samples[i]`.

    Attributes:
        instances: Labels, contexts and keys.
        series: How the candidates were drawn: one sampler's after another's.
        has_slopes: Whether every answer has a slope.
        problem: The problem.
        store: Where the answers are kept.
        point: What messages call a point: "sample", "prediction", or "decision" if only decisions
            are wanted.
    """

    instances: Instances
    series: tuple[Series, ...]
    has_slopes: bool
    problem: Problem
    store: Store
    point: str = "sample"

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.instances)

    @property
    def n_samples(self) -> int:
        """Candidates per instance, failed ones included."""
        return sum(one.n_samples for one in self.series)

    @property
    def y(self) -> Array:
        """Labels, shape (n_instances, *label_shape)."""
        return self.instances.y

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Shape of one label."""
        return self.y.shape[1:]

    @property
    def optimum(self) -> Array:
        """DL(y, y) of each instance, NaN where the oracle failed, shape (n_instances,)."""
        return self.store.known([(self.instances.ids, 1)]).loss[:, 0]

    @property
    def n_calls(self) -> int:
        """Oracle calls these samples took, those at the labels included, equal ones once."""
        return self.counts.calls

    @property
    def n_failures(self) -> int:
        """Samples without a regret."""
        return self.counts.failures

    @property
    def n_negative(self) -> int:
        """Samples whose decision is notably better than the one for the label."""
        return self.counts.negative

    @property
    def seconds(self) -> float:
        """Time spent in tasks, summed over workers: of all that a store holds, this share."""
        there = self.store.n_answers
        return self.store.seconds * min(self.n_calls / there, 1.0) if there else 0.0

    @property
    def first_failures(self) -> Mapping[str, str]:
        """The first failure of each kind that these samples have."""
        return self.counts.first_failures

    @property
    def progress(self) -> Progress:
        """How far the store of these samples is, and what its answers cost."""
        return self.store.progress

    def __len__(self) -> int:
        return self.n_instances

    def __repr__(self) -> str:
        samplers = ", ".join(type(one.sampler).__name__ for one in self.series)
        return (
            f"Samples(n_instances={self.n_instances}, n_samples={self.n_samples}, "
            f"label_shape={self.label_shape}, samplers=[{samplers}], "
            f"has_slopes={self.has_slopes})"
        )

    def __iter__(self) -> Iterator[Answers]:
        return (self.instance(i) for i in range(self.n_instances))

    def __getitem__(self, i: int) -> Answers:
        return self.instance(i)

    def instance(self, i: int) -> Answers:
        """Return the answers about instance `i` that succeeded, in the order of its candidates."""
        if not isinstance(i, int | np.integer):
            raise InvalidInputError(
                f"`i` must be the number of one instance, got {i!r}. "
                "Several? Use `samples.select(np.arange(start, stop))`."
            )
        if not -self.n_instances <= i < self.n_instances:
            raise IndexError(f"There are {self.n_instances} instances, got index {i}.")
        row = int(i) % self.n_instances
        known = self._complete([row])
        loss, decision, is_ok = known.loss[0], known.decision[0], known.status[0] == OK
        has_optimum, is_ok = bool(is_ok[0]), is_ok[1:] & is_ok[0]
        y_hats = [
            one.candidates(self.problem, self.instances, row, 0, one.n_samples)
            for one in self.series
        ]
        regret = regret_of(loss[1:][is_ok], loss[0])
        answers = Answers(self.y[row], np.concatenate(y_hats)[is_ok], regret)
        if not self.has_slopes or not has_optimum:
            return answers
        gradient = known.gradient
        slopes = gradient[decision[1:][is_ok]] - gradient[decision[0]]
        both = np.column_stack([regret, slopes])  # decisions alike in both count as one
        distinct, number = np.unique(both, axis=0, return_inverse=True)
        return replace(answers, decision=number.reshape(-1), slope=distinct[:, 1:])

    def errors_and_regrets(self) -> tuple[Array, Array]:
        """Return the errors (n, K, D) and regrets (n, K) of all samples, NaN if a call failed."""
        n = self.n_instances
        y_hat = np.concatenate(
            [
                [
                    part.candidates(self.problem, self.instances, row, 0, part.n_samples)
                    for row in range(n)
                ]
                for part in self.series
            ],
            axis=1,
        )
        known = self._complete(range(n))
        is_ok = (known.status[:, 1:] == OK) & (known.status[:, :1] == OK)
        regret = np.where(is_ok, regret_of(known.loss[:, 1:], known.loss[:, :1]), np.nan)
        return (y_hat - self.y[:, np.newaxis]).reshape(n, self.n_samples, -1), regret

    def first_regrets(self) -> Array:
        """Return the regret of the first candidate of each instance, NaN where it failed."""
        loss = self.store.known([(self.instances.ids, 1), (self.series[0].ids, 1)]).loss
        regret = regret_of(loss[:, 1:], loss[:, :1])[:, 0]
        return regret_of(regret, 0.0)  # rounding is small compared with the other instances

    def pool(self) -> DecisionPool:
        """Return the decisions of all instances, each known at every label.

        This holds where the objective is affine in the label, which is not checked here, and where
        there is no context.

        Raises:
            InvalidInputError: There are contexts, or answers without slopes.
        """
        if self.instances.context is not None:
            raise InvalidInputError(
                "Instances with a `context` do not share their decisions: one that is allowed in "
                "one context may not be in another."
            )
        if not self.has_slopes:
            raise InvalidInputError(
                "`samples` must have slopes to share decisions: sample with "
                "`Oracle.sample(..., slopes=True)`."
            )
        return self._pool

    @cached_property
    def _pool(self) -> DecisionPool:
        known = self._complete(range(self.n_instances))
        is_ok = known.status == OK
        decision = np.where(is_ok, known.decision, -1).astype(np.intp)
        regret = regret_of(known.loss[:, 1:], known.loss[:, :1])
        regret = np.where(is_ok[:, 1:] & is_ok[:, :1], regret, np.nan)
        y = self.y.reshape(self.n_instances, -1)
        return DecisionPool.of(y, known.loss, regret, known.gradient, decision)

    def select(self, instances: npt.ArrayLike) -> "Samples":
        """Return the samples of some instances, in memory and light enough to send to a worker.

        Args:
            instances: Numbers of instances, or a mask.
        """
        wanted = np.asarray(instances)
        rows = np.arange(self.n_instances)[wanted] if wanted.size else wanted
        if rows.size == 0:
            raise InvalidInputError("`instances` must name at least one instance, got none.")
        series = tuple(one.take(rows) for one in self.series)
        part = replace(self, instances=self.instances.take(rows), series=series)
        return replace(part, store=part._copy())

    def head(self, n_samples: int) -> "Samples":
        """Return the first samples of every instance."""
        if check_count("n_samples", n_samples) > self.n_samples:
            raise InvalidInputError(
                f"`n_samples` must be at most {self.n_samples}, the samples there are, "
                f"got {n_samples}."
            )
        ends = np.minimum(np.cumsum([one.n_samples for one in self.series]), n_samples)
        sizes = zip(self.series, np.diff(ends, prepend=0).tolist(), strict=True)
        return replace(self, series=tuple(replace(one, n_samples=n) for one, n in sizes if n))

    def union(self, other: "Samples") -> "Samples":
        """Return these samples and others of the same instances, drawn by another sampler.

        Raises:
            InvalidInputError: The others are of other instances, or of another problem.
        """
        if list(self.instances.ids) != list(other.instances.ids):
            raise InvalidInputError(
                "`other` must hold samples of the same instances in the same order: the labels, "
                "contexts or keys differ."
            )
        series = {tuple(one.ids): one for one in self.series}
        for one in other.series:
            same = series.setdefault(tuple(one.ids), one)
            if one.n_samples > same.n_samples:
                series[tuple(one.ids)] = one
        store = self.store
        if other.store is not store:
            self._check_same_problem(other)
            store = self._copy()
            store.copy(other.store, other._ids)
        has_slopes = self.has_slopes and other.has_slopes
        return replace(self, series=tuple(series.values()), has_slopes=has_slopes, store=store)

    def _check_same_problem(self, other: "Samples") -> None:
        """Raise if the losses at the labels differ by more than a solver repeats them."""
        mine, theirs = self.optimum, other.optimum
        tolerance = 1e-3 * other.counts.mean_size + 1e-5 * np.abs(mine) + 1e-12
        differs = np.flatnonzero(np.abs(mine - theirs) > tolerance)  # NaN does not
        if len(differs):
            row = differs[0]
            raise InvalidInputError(
                f"`other` must hold samples of the same problem: at {len(differs)} of {len(mine)} "
                f"labels the objective is another one (instance {row}: {mine[row]:.12g} here, "
                f"{theirs[row]:.12g} there)."
            )

    def check_sense(self) -> None:
        """Raise `ProblemError` if most decisions are better than those for the labels."""
        check_sense_of(self.problem, self.counts.positive, self.counts.negative)

    def provenance(self) -> dict[str, Any]:
        """Return where the samples came from, in JSON values; each sampler's where several drew."""
        series = [one.provenance() for one in self.series]
        return {
            **series[0],
            "n_samples": self.n_samples,
            **({"series": series} if len(series) > 1 else {}),
            "problem": describe_problem(self.problem),
        }

    @property
    def _blocks(self) -> list[tuple[Sequence[bytes], int]]:
        """What answers are kept under, and in how many columns: the label, then the candidates."""
        return [(self.instances.ids, 1), *((one.ids, one.n_samples) for one in self.series)]

    @property
    def _ids(self) -> list[bytes]:
        return [id_ for ids, _ in self._blocks for id_ in ids]

    def _copy(self) -> Store:
        """Return a store in memory with the answers of these instances."""
        store = Store(self.store.spread)
        store.copy(self.store, self._ids)
        return store

    def known(self, rows: Sequence[int]) -> AnswerTable:
        """Return what is known about some instances: column 0 is the label, j candidate j - 1."""
        blocks = [([ids[row] for row in rows], n_columns) for ids, n_columns in self._blocks]
        return self.store.known(blocks, slopes=self.has_slopes)

    def _complete(self, rows: Sequence[int]) -> AnswerTable:
        """Return what is known about some instances, which must be all of it."""
        known = self.known(rows)
        label = known.status[:, 0]
        is_missing = (label == PENDING) | ((label == OK) & (known.status == PENDING).any(axis=1))
        if is_missing.any():
            raise StoreError(
                f"Answers about instance {rows[is_missing.argmax()]} are missing or damaged. Call "
                "`sample` again: it computes only these."
            )
        return known

    @cached_property
    def counts(self) -> _Counts:
        """Numbers of calls, failures, and regrets above and below zero."""
        counts, seen, size, below = _Counts(), set[bytes](), 0.0, [np.empty(0)]
        for start in range(0, self.n_instances, AT_ONCE):
            rows = range(start, min(start + AT_ONCE, self.n_instances))
            known = self._complete(rows)
            was_made = (known.status != PENDING) & (known.status != NO_OPTIMUM)
            column = 0
            for ids, n_columns in self._blocks:
                new = {ids[row]: row - start for row in rows if ids[row] not in seen}
                seen.update(new)
                made = was_made[list(new.values()), column : column + n_columns]
                counts.calls += int(made.sum())
                column += n_columns
            self._note_failures(counts, rows, known)
            is_ok = (known.status == OK) & (known.status[:, :1] == OK)
            loss = np.where(is_ok, known.loss, known.loss[:, :1])
            regret = regret_of(loss[:, 1:], loss[:, :1])[is_ok[:, 1:]]
            counts.failures += int(np.sum(~is_ok[:, 1:]))
            has_failed = (known.status > OK) & (known.status != NO_OPTIMUM)
            counts.failed_labels += int(np.sum(has_failed[:, 0]))
            counts.failed_samples += int(np.sum(has_failed[:, 1:]))
            counts.positive += int(np.sum(regret > 0))
            below.append(regret[regret < 0])
            size += float(np.abs(regret).sum())
        counts.mean_size = size / max(self.n_instances * self.n_samples - counts.failures, 1)
        negative = np.concatenate(below)
        notable = negative[negative < -SLIGHT * counts.mean_size]
        counts.negative = notable.size
        counts.below_zero = float(-notable.mean()) if notable.size else 0.0
        return counts

    @property
    def note(self) -> str:
        """What to say about the answers that are kept when a run ends early."""
        return self.store.note if self.store.place or self.point == "sample" else ""

    def describe_point(self, column: int) -> str:
        """Return the name of a point: column 0 is the label, j point j - 1."""
        if self.point == "decision" or (
            self.point == "prediction" and self.n_samples == 1 == column
        ):
            return "the prediction"
        return f"{self.point} {column - 1}" if column else "the label itself"

    def _note_failures(self, counts: _Counts, rows: range, known: AnswerTable) -> None:
        """Note what is known of the first failure of each kind."""
        for status in set(np.unique(known.status).tolist()) - {PENDING, OK, NO_OPTIMUM}:
            kind = Status(status).name.lower()
            if kind not in counts.first_failures:
                place, column = np.argwhere(known.status == status)[0].tolist()
                row, ends = rows[place], np.cumsum([n for _, n in self._blocks])
                ids = self._blocks[int(np.searchsorted(ends, column, side="right"))][0]
                message = self.store.failure(f"{kind} {ids[row].hex()}") or "its call failed"
                place = self.describe_point(column)
                text = describe(self.instances.describe(row), place, message)
                counts.first_failures[kind] = text
