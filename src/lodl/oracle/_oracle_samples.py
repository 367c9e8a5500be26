"""What the oracle said about candidate predictions, and the candidates drawn again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._answers import Answers
from lodl._typing import Array
from lodl._validation import check_count
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle._failure import NO_OPTIMUM, OK, PENDING, Status
from lodl.oracle._instances import Instances, Series
from lodl.oracle._store import Known, Progress, Store
from lodl.problems import Problem
from lodl.problems._problem import describe
from lodl.problems._regret import SLIGHT, check_sense_of, regret_of
from lodl.samplers import Sampler

_AT_ONCE = 256  # instances that are counted together


@dataclass(frozen=True)
class _Counts:
    """Calls, failed samples, positive and notably negative regrets, and the size of these."""

    calls: int
    failures: int
    kinds: set[int]
    positive: int
    negative: int
    below_zero: float
    mean_size: float


@dataclass(frozen=True, eq=False, repr=False)
class OracleSamples:
    """What the oracle said about candidate predictions around every label.

    Regrets are read, and candidates drawn again, when an instance is asked for: `samples[i]`.

    Attributes:
        instances: Labels, contexts and keys.
        series: How the candidates were drawn: one sampler's after another's.
        has_slopes: Whether every answer has a slope.
    """

    instances: Instances
    series: tuple[Series, ...]
    has_slopes: bool
    _problem: Problem
    _store: Store

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
    def sampler(self) -> Sampler:
        """The sampler, the first where there are several."""
        return self.series[0].sampler

    @property
    def scale(self) -> Array:
        """The resolved scale of the noise, of the first sampler."""
        return self.series[0].scale

    @property
    def seed(self) -> int:
        """The random seed of the candidates, of the first sampler."""
        return self.series[0].seed

    @property
    def optimum(self) -> Array:
        """DL(y, y) of each instance, NaN where the oracle failed, shape (n_instances,)."""
        return np.array([self._store.known(id_, 1).loss[0] for id_ in self.instances.ids])

    @property
    def n_calls(self) -> int:
        """Oracle calls these samples took, those at the labels included, equal ones once."""
        return self._counts.calls

    @property
    def n_failures(self) -> int:
        """Samples without a regret."""
        return self._counts.failures

    @property
    def n_negative(self) -> int:
        """Samples whose decision is notably better than the one for the label."""
        return self._counts.negative

    @property
    def seconds(self) -> float:
        """Time spent in tasks, summed over workers: of all that a store holds, this share."""
        there = self._store.n_answers
        return self._store.notes.seconds * min(self.n_calls / there, 1.0) if there else 0.0

    @property
    def first_failures(self) -> Mapping[str, str]:
        """The first message of each kind of failure that these samples have, in their store."""
        kinds = {Status(kind).name.lower() for kind in self._counts.kinds}
        return {kind: text for kind, text in self._store.notes.failures.items() if kind in kinds}

    @property
    def progress(self) -> Progress:
        """How far the store of these samples is, and what its answers cost."""
        return self._store.progress

    def __len__(self) -> int:
        return self.n_instances

    def __repr__(self) -> str:
        samplers = ", ".join(type(one.sampler).__name__ for one in self.series)
        return (
            f"OracleSamples(n_instances={self.n_instances}, n_samples={self.n_samples}, "
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
        label, parts = self._known(row)
        y = self.y[row]
        if label.status[0] != OK:
            parts = [(one, replace(known, status=known.status * 0)) for one, known in parts]
        y_hats = [self._candidates(one, row)[known.status == OK] for one, known in parts]
        losses = [known.loss[known.status == OK] for _, known in parts]
        answers = Answers(
            y, np.concatenate(y_hats), regret_of(np.concatenate(losses), label.loss[0])
        )
        return self._with_slopes(answers, label, [known for _, known in parts])

    def first_regrets(self) -> Array:
        """Return the regret of the first candidate of each instance, NaN where it failed."""
        series, ids = self.series[0], self._series_ids[0]
        first = np.array([self._store.known(id_, series.n_samples).loss[0] for id_ in ids])
        return regret_of(first[:, np.newaxis], self.optimum[:, np.newaxis])[:, 0]

    def select(self, instances: npt.ArrayLike) -> "OracleSamples":
        """Return the samples of some instances, in memory and light enough to send to a worker.

        Args:
            instances: Numbers of instances, or a mask.
        """
        wanted = np.asarray(instances)
        rows = np.arange(self.n_instances)[wanted] if wanted.size else wanted
        if rows.size == 0:
            raise InvalidInputError("`instances` must name at least one instance, got none.")
        part = self.instances.take(rows)
        series = tuple(one.take(rows) for one in self.series)
        ids = [*part.ids, *(id_ for one in series for id_ in one.ids(part))]
        return replace(self, instances=part, series=series, _store=self._store.select(ids))

    def head(self, n_samples: int) -> "OracleSamples":
        """Return the first samples of every instance."""
        if check_count("n_samples", n_samples) > self.n_samples:
            raise InvalidInputError(
                f"`n_samples` must be at most {self.n_samples}, the samples there are, "
                f"got {n_samples}."
            )
        series, left = [], int(n_samples)
        for one in self.series:
            if left:
                series.append(replace(one, n_samples=min(one.n_samples, left)))
                left -= series[-1].n_samples
        return replace(self, series=tuple(series))

    def union(self, other: "OracleSamples") -> "OracleSamples":
        """Return these samples and others of the same instances, drawn by another sampler.

        Raises:
            InvalidInputError: The others are of other instances, or of another problem.
        """
        if list(self.instances.ids) != list(other.instances.ids):
            raise InvalidInputError(
                "`other` must hold samples of the same instances in the same order: the labels, "
                "contexts or keys differ."
            )
        if other._store is not self._store:
            self._check_same_problem(other)
        series = {tuple(one.ids(self.instances)): one for one in self.series}
        for one in other.series:
            same = series.setdefault(tuple(one.ids(other.instances)), one)
            if one.n_samples > same.n_samples:
                series[tuple(one.ids(other.instances))] = one
        store = self._store
        if other._store is not store:
            store = self._store.select(self._ids)
            store.update(other._store.select(other._ids))
        has_slopes = self.has_slopes and other.has_slopes
        return replace(self, series=tuple(series.values()), has_slopes=has_slopes, _store=store)

    def _check_same_problem(self, other: "OracleSamples") -> None:
        """Raise if the losses at the labels differ by more than a solver repeats them."""
        mine, theirs = self.optimum, other.optimum
        tolerance = 1e-3 * other._counts.mean_size + 1e-5 * np.abs(mine) + 1e-12
        differs = np.flatnonzero(np.abs(mine - theirs) > tolerance)  # NaN does not
        if len(differs):
            row = differs[0]
            raise InvalidInputError(
                f"`other` must hold samples of the same problem: at {len(differs)} of {len(mine)} "
                f"labels the objective is another one (instance {row}: {mine[row]:.12g} here, "
                f"{theirs[row]:.12g} there)."
            )

    def check_sense(self) -> None:
        """Raise if most decisions are better than those for the labels themselves.

        Raises:
            ProblemError: The sense is wrong, or the objective scores something else.
        """
        check_sense_of(self._problem, self._counts.positive, self._counts.negative)

    def provenance(self) -> dict[str, Any]:
        """Return where the samples came from, in JSON values; each sampler's where several drew."""
        series = [_provenance(one) for one in self.series]
        return {
            **series[0],
            "n_samples": self.n_samples,
            **({"series": series} if len(series) > 1 else {}),
            "problem": describe(self._problem),
        }

    @property
    def _ids(self) -> list[bytes]:
        return [*self.instances.ids, *(id_ for ids in self._series_ids for id_ in ids)]

    @property
    def _series_ids(self) -> list[list[bytes]]:
        return [one.ids(self.instances) for one in self.series]

    def _known(self, row: int) -> tuple[Known, list[tuple[Series, Known]]]:
        slopes = self.has_slopes
        label = self._store.known(self.instances.ids[row], 1, slopes=slopes)
        parts = [
            (one, self._store.known(ids[row], one.n_samples, slopes=slopes))
            for one, ids in zip(self.series, self._series_ids, strict=True)
        ]
        is_missing = label.status[0] == PENDING or (
            label.status[0] == OK and not all(known.status.all() for _, known in parts)
        )
        if is_missing:
            raise StoreError(
                f"Answers about instance {row} are missing or damaged. Call `sample` again: it "
                "computes only these."
            )
        return label, parts

    def _candidates(self, series: Series, row: int) -> Array:
        centre = None if series.centres is None else series.centres[row]
        key, y = self.instances.keys[row], self.y[row]
        return series.candidates(self._problem, y, key, centre, 0, series.n_samples)

    def _with_slopes(self, answers: Answers, label: Known, parts: list[Known]) -> Answers:
        """Add the distinct decisions: those of equal loss and derivative count as one."""
        if not self.has_slopes or label.status[0] != OK:
            return answers
        gradients, numbers, first = [], [], 0
        for known in parts:
            is_ok = known.status == OK
            numbers.append(known.decision[is_ok] + first)
            if len(known.gradient):
                gradients.append(known.gradient)
                first += len(known.gradient)
        number = np.concatenate(numbers)
        slopes = np.concatenate(gradients)[number] if gradients else np.empty((0, answers.y.size))
        slopes = slopes - label.gradient[label.decision[0]]
        both = np.column_stack([answers.regret, slopes])
        distinct, decision = np.unique(both, axis=0, return_inverse=True)
        return replace(answers, decision=decision.reshape(-1), slope=distinct[:, 1:])

    @cached_property
    def _counts(self) -> _Counts:
        calls = failures = positive = 0
        seen, kinds = set[bytes](), set[int]()
        columns = [self.instances.ids, *self._series_ids]
        size, below = 0.0, [np.empty(0)]
        for start in range(0, self.n_instances, _AT_ONCE):
            rows = range(start, min(start + _AT_ONCE, self.n_instances))
            labels, parts = zip(*(self._known(row) for row in rows), strict=True)
            status, loss = (
                np.array(
                    [np.concatenate([getattr(known, name) for _, known in row]) for row in parts]
                )
                for name in ("status", "loss")
            )
            label_status = np.array([label.status for label in labels])
            is_ok = (status == OK) & (label_status == OK)
            optimum = np.array([label.loss for label in labels])
            regret = regret_of(np.where(is_ok, loss, optimum), optimum)[is_ok]
            is_new = np.array([[_is_new(ids[row], seen) for ids in columns] for row in rows])
            is_counted = np.repeat(is_new[:, 1:], [one.n_samples for one in self.series], axis=1)
            made = (status != PENDING) & (status != NO_OPTIMUM)
            calls += int(is_new[:, 0].sum()) + int(np.sum(made & is_counted))
            kinds.update(np.unique(status).tolist(), np.unique(label_status).tolist())
            failures += int(np.sum(~is_ok))
            positive += int(np.sum(regret > 0))
            below.append(regret[regret < 0])
            size += float(np.abs(regret).sum())
        negative = np.concatenate(below)
        mean = size / max(self.n_instances * self.n_samples - failures, 1)
        notable = negative[negative < -SLIGHT * mean]
        below_zero = float(-notable.sum())
        return _Counts(calls, failures, kinds, positive, notable.size, below_zero, mean)


def _is_new(id_: bytes, seen: set[bytes]) -> bool:
    """Return whether an id comes for the first time, and note it."""
    if id_ in seen:
        return False
    seen.add(id_)
    return True


def _provenance(series: Series) -> dict[str, Any]:
    return {
        "sampler": type(series.sampler).__name__,
        "scale": _summary(series.scale),
        "scale_is_auto": isinstance(series.sampler.scale, str),
        "seed": series.seed,
        "n_samples": series.n_samples,
    }


def _summary(scale: Array) -> float | dict[str, Any]:
    """Return a scale as a JSON value: itself if it is a number, else its shape and range."""
    if scale.ndim == 0:
        return float(scale)
    return {"shape": list(scale.shape), "min": float(scale.min()), "max": float(scale.max())}
