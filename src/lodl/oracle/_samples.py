"""Samples: the answers about all instances (`Samples`) and about one of them (`Answers`)."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import context_of
from lodl._typing import Array, Flags
from lodl.errors import InvalidInputError, ProblemError, StoreError
from lodl.oracle._failures import NO_OPTIMUM, OK, PENDING, RETRY, Status, Tally, describe, listed
from lodl.oracle._guard import REFUSES, feasible
from lodl.oracle._instances import Draws, Instances
from lodl.oracle._pool import DecisionPool
from lodl.oracle._store import AnswerTable, Store
from lodl.problems import Problem
from lodl.problems._problem import describe as describe_problem
from lodl.problems._problem import sign_of
from lodl.problems._regret import SLIGHT, check_sense_of, regret_of

_logger = logging.getLogger(__name__)

_MOST_REFUSED = 0.05  # share of labels whose decision may break its own context, by rounding
_MAX_READ = 2**17  # numbers that are read or drawn together
_MAX_KEPT = 16  # times as many numbers in points that are kept: 16 MB


@dataclass(frozen=True, eq=False)
class Answers:
    """The oracle's answers about one instance."""

    y: Array  #: The label, shape (*label_shape,).
    y_hat: Array  #: The points, shape (K, *label_shape).
    regret: Array  #: The regret of each point, shape (K,); not finite if its call failed.
    #: The distinct decision that each point led to, shape (K,): a row of `slope`, or None.
    decision: npt.NDArray[np.intp] | None = None
    #: The derivative by the label, at the label, of what each distinct decision costs more than the
    #: label's own best decision, shape (M, D), or None.
    slope: Array | None = None

    @cached_property
    def d(self) -> Array:
        """The errors of the points, flattened, shape (K, D)."""
        d = np.asarray(self.y_hat - self.y, dtype=np.float64)
        return d.reshape(len(self.regret), self.y.size)

    def take(self, index: Any) -> "Answers":
        """Return the answers about some of the points, given their numbers or a mask."""
        decision = None if self.decision is None else self.decision[index]
        return Answers(self.y, self.y_hat[index], self.regret[index], decision, self.slope)


def _parts(n: int, n_columns: int) -> list[range]:
    """Return all rows of a table in parts that need little memory."""
    step = max(_MAX_READ // max(n_columns, 1), 1)
    return [range(start, min(start + step, n)) for start in range(0, n, step)]


@dataclass(eq=False)
class _Counts:
    """Numbers from a pass over all answers."""

    tally: Tally  # without the number of calls
    failures: int = 0  # samples without a regret
    positive: int = 0  # regrets above zero
    negative: int = 0  # regrets notably below zero
    below_zero: float = 0.0  # sum of notably negative regrets, without the sign
    mean_size: float = 0.0  # mean size of all regrets


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """The oracle's answers at points around every label, read when `samples[i]` is accessed."""

    instances: Instances  #: Labels, contexts and keys.
    draws: tuple[Draws, ...]  #: How the points were drawn, for one or more samplers.
    has_slopes: bool  #: Whether every answer has a slope.
    problem: Problem  #: The problem.
    store: Store  #: Holds the answers.
    point: str = "sample"  # its name in messages
    is_scored: bool = True  # whether decisions are scored under the labels

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.instances)

    @property
    def n_samples(self) -> int:
        """Points per instance, failed ones included."""
        return sum(draws.n_samples for draws in self.draws)

    @property
    def y(self) -> Array:
        """Labels, shape (n_instances, *label_shape)."""
        return self.instances.y

    @property
    def optimum(self) -> Array:
        """DL(y, y) of each instance, NaN if its call failed, shape (n_instances,)."""
        return self.store.table([(self.instances.ids, 1)]).loss[:, 0]

    @cached_property
    def n_calls(self) -> int:
        """Solver calls of these samples, labels included, equal calls once."""
        n_calls, seen = 0, set[bytes]()
        for draws, (ids, n_columns) in zip((None, *self.draws), self._blocks, strict=True):
            new = [id_ for id_ in dict.fromkeys(ids) if id_ not in seen]
            seen.update(new)
            for rows in _parts(len(new), n_columns):
                status = self.store.table([(new[rows.start : rows.stop], n_columns)]).status
                made = (status != PENDING) & (status != NO_OPTIMUM)
                n_calls += int(made.sum()) if draws is None else draws.n_calls(made)
        return n_calls

    @property
    def n_failures(self) -> int:
        """Samples without a regret."""
        return self.counts.failures

    @property
    def seconds(self) -> float:
        """Time spent on these calls, summed over workers: their share of the store's time."""
        stored = self.store.progress
        return min(self.n_calls * stored.seconds_per_call, stored.seconds)

    @property
    def first_failures(self) -> Mapping[str, str]:
        """The first failure of each kind in these samples."""
        return self.counts.tally.first_failures

    def __len__(self) -> int:
        return self.n_instances

    def __repr__(self) -> str:
        samplers = ", ".join(type(draws.sampler).__name__ for draws in self.draws)
        return (
            f"Samples(n_instances={self.n_instances}, n_samples={self.n_samples}, "
            f"label_shape={self.y.shape[1:]}, samplers=[{samplers}], has_slopes={self.has_slopes})"
        )

    def __iter__(self) -> Iterator[Answers]:
        parts = _parts(self.n_instances, self.n_samples * self.y[0].size)  # points are drawn
        few = len(parts) <= _MAX_KEPT
        return iter(self._kept) if few else chain.from_iterable(map(self._answers, parts))

    @cached_property
    def _kept(self) -> list[Answers]:
        """The answers about all instances, from which several losses are learned."""
        return list(self._answers(range(self.n_instances)))

    def __getitem__(self, i: int) -> Answers:
        """Return the answers about instance `i` that succeeded, in the order of its points."""
        if not isinstance(i, int | np.integer):
            raise InvalidInputError(
                f"`i` must be the number of one instance, got {i!r}. "
                "Several? Use `samples.select(np.arange(start, stop))`."
            )
        if not -self.n_instances <= i < self.n_instances:
            raise IndexError(f"There are {self.n_instances} instances, got index {i}.")
        return next(self._answers([int(i) % self.n_instances]))

    def _answers(self, rows: Sequence[int]) -> Iterator[Answers]:
        """Yield the answers about some instances, which are read together."""
        table, problem, instances = self._complete(rows), self.problem, self.instances
        points = [
            draws.points(problem, instances, rows, 0, draws.n_samples) for draws in self.draws
        ]
        y_hats = np.concatenate(points, axis=1)
        for place, row in enumerate(rows):
            loss, status, decision = (column[place] for column in table[:3])
            has_optimum = bool(status[0] == OK)
            is_ok = (status[1:] == OK) & has_optimum
            regret = regret_of(loss[1:][is_ok], loss[0])
            answers = Answers(self.y[row], y_hats[place, is_ok], regret)
            if self.has_slopes and has_optimum:
                slopes = table.gradient[decision[1:][is_ok]] - table.gradient[decision[0]]
                both = np.column_stack([regret, slopes])  # decisions alike in both count as one
                distinct, number = np.unique(both, axis=0, return_inverse=True)
                answers = replace(answers, decision=number.reshape(-1), slope=distinct[:, 1:])
            yield answers

    def errors_and_regrets(self) -> tuple[Array, Array]:
        """Return the errors (n, K, D) and regrets (n, K) of all samples, NaN if a call failed.

        Points are not projected into the problem's valid range, as predictions may not be either.
        """
        rows = range(self.n_instances)
        drawn = [draws.drawn(self.instances, rows, 0, draws.n_samples) for draws in self.draws]
        errors = np.concatenate(drawn, axis=1) - self.y[:, np.newaxis]
        regrets = self._regrets(self._complete(rows))
        return errors.reshape(*regrets.shape, math.prod(self.y.shape[1:])), regrets

    @staticmethod
    def _regrets(table: AnswerTable) -> Array:
        """Return the regret of each point, NaN if its call or the label's call failed."""
        is_ok = table.status == OK
        regret = regret_of(table.loss[:, 1:], table.loss[:, :1])
        return np.where(is_ok[:, 1:] & is_ok[:, :1], regret, np.nan)

    def first_regrets(self) -> Array:
        """Return the regret of the first point of each instance, NaN if its call failed."""
        loss = self.store.table([(self.instances.ids, 1), (self.draws[0].ids, 1)]).loss
        regret = regret_of(loss[:, 1:], loss[:, :1])[:, 0]
        return regret_of(regret, 0.0)  # rounding is small compared with the other instances

    def pool(self) -> DecisionPool:
        """Return the decisions of all instances, each priced under every label.

        This needs slopes, no contexts or `LinearProblem.are_feasible`, and an affine objective,
        which is not checked here.
        """
        if not self.has_slopes:
            how = "sample with `Oracle.sample(..., slopes=True)`"
            raise InvalidInputError(f"`samples` must have slopes to share decisions: {how}.")
        return self._pool

    @cached_property
    def _pool(self) -> DecisionPool:
        pool = self._decisions
        if self.instances.context is None:
            return pool
        is_allowed = self.are_allowed_for(self.instances)
        if is_allowed is None:
            raise InvalidInputError(
                "Instances with a `context` do not share their decisions, unless a "
                "`lodl.LinearProblem` that has `are_feasible` says what each context allows."
            )
        (own,) = np.nonzero(pool.met[:, 0] >= 0)
        n_refused = int((~is_allowed[own, pool.met[own, 0]]).sum())
        if n_refused > _MOST_REFUSED * len(own):
            raise ProblemError(REFUSES % (n_refused, len(own)))
        rows, columns = np.nonzero(pool.met >= 0)
        is_allowed[rows, pool.met[rows, columns]] = True  # an instance's own, but for rounding
        return replace(pool, is_allowed=is_allowed)

    @cached_property
    def _decisions(self) -> DecisionPool:
        table = self._complete(range(self.n_instances))
        decision = np.where(table.status == OK, table.decision, -1).astype(np.intp)
        y, regret = self.y.reshape(self.n_instances, -1), self._regrets(table)
        return DecisionPool.of(y, table.loss, regret, table.gradient, decision)

    def are_allowed_for(self, instances: Instances) -> Flags | None:
        """Return which of these decisions the contexts of instances allow, None if unknown."""
        slopes = sign_of(self.problem) * self._decisions.gradient
        zs = slopes.reshape(len(slopes), *self.y.shape[1:])
        are_allowed = np.empty((len(instances), len(zs)), dtype=bool)
        for i, row in enumerate(are_allowed):
            try:
                allowed = feasible(self.problem, zs, context_of(instances.context, i))
            except ProblemError as error:
                raise ProblemError(f"Instance {i}: {error}") from error
            if allowed is None:
                return None
            row[:] = allowed
        return are_allowed

    def select(self, instances: npt.ArrayLike) -> "Samples":
        """Return the samples of some instances, given their numbers or a mask, in memory."""
        index = np.asarray(instances)
        rows = np.arange(self.n_instances)[index] if index.size else index
        if rows.size == 0:
            raise InvalidInputError("`instances` must name at least one instance, got none.")
        draws = tuple(draws.take(rows) for draws in self.draws)
        part = replace(self, instances=self.instances.take(rows), draws=draws)
        ids = (id_ for ids, _ in part._blocks for id_ in ids)
        return replace(part, store=self.store.part(ids))

    def union(self, other: "Samples") -> "Samples":
        """Return these samples and others of the same oracle and instances, by another sampler."""
        if list(self.instances.ids) != list(other.instances.ids):
            raise InvalidInputError(
                "`other` must hold samples of the same instances in the same order: the labels, "
                "contexts or keys differ."
            )
        is_same_file = self.store.place is not None and self.store.place == other.store.place
        if other.store is not self.store and not is_same_file:
            raise InvalidInputError("`other` must hold samples of the same oracle or store.")
        by_ids = {tuple(draws.ids): draws for draws in self.draws}
        for draws in other.draws:
            if draws.n_samples >= by_ids.setdefault(tuple(draws.ids), draws).n_samples:
                by_ids[tuple(draws.ids)] = draws
        has_slopes = self.has_slopes and other.has_slopes
        return replace(self, draws=tuple(by_ids.values()), has_slopes=has_slopes)

    def warn(self, known: set[str]) -> None:
        """Log failed samples and better decisions than the label's. Raise if most are better.

        Only what is not in `known` is a warning. It is added.
        """
        counts, n_points = self.counts, self.n_instances * self.n_samples
        check_sense_of(self.problem, counts.positive, counts.negative)
        if counts.negative and "negative" not in known:
            known.add("negative")
            _logger.warning(
                "%d of %d points led to a better decision than the label itself, by %.3g on "
                "average (the mean regret is %.3g): the solver is a heuristic, or not exact "
                "enough. Their regrets are kept as they are, below zero.",
                *(counts.negative, n_points, counts.below_zero / counts.negative),
                counts.mean_size,
            )
        if counts.failures:
            n_labels = f"{counts.tally.failed_labels} of {self.n_instances} labels"
            labels = f" The calls at {n_labels} failed, so these instances have no regrets."
            kinds = {"failures", *self.first_failures}
            level = logging.INFO if kinds <= known else logging.WARNING
            known |= kinds
            _logger.log(
                level,
                "%d of %d samples failed and are left out.%s The first of each kind: %s %s",
                *(counts.failures, n_points, labels if counts.tally.failed_labels else ""),
                *(listed(self.first_failures.values()), RETRY),
            )

    def provenance(self) -> dict[str, Any]:
        """Return the origin of the samples in JSON values, of each sampler if there are several."""
        draws = [draws.provenance() for draws in self.draws]
        several = {"draws": draws} if len(draws) > 1 else {}
        problem, whole = self.problem, {"n_samples": self.n_samples}
        if problem.is_vectorised:
            whole["mixes_instances"] = problem.mixes_instances
        return draws[0] | several | whole | {"problem": describe_problem(problem)}

    def parts(self) -> list[range]:
        """Return all rows of the table in parts that need little memory."""
        return _parts(self.n_instances, self.n_samples + 1)

    def table(self, rows: Sequence[int]) -> AnswerTable:
        """Return the stored answers about some instances: column 0 is the label, j point j - 1."""
        blocks = self._blocks
        if rows != range(self.n_instances):
            blocks = [([ids[row] for row in rows], n_columns) for ids, n_columns in blocks]
        return self.store.table(blocks, slopes=self.has_slopes)

    @property
    def _blocks(self) -> list[tuple[Sequence[bytes], int]]:
        """The ids of the instances and a number of columns: for the label, then for the points."""
        return [(self.instances.ids, 1), *((draws.ids, draws.n_samples) for draws in self.draws)]

    def _complete(self, rows: Sequence[int]) -> AnswerTable:
        """Return the stored answers about some instances, none of which may be missing."""
        table = self.table(rows)
        label = table.status[:, 0]
        is_missing = (label == PENDING) | ((label == OK) & (table.status == PENDING).any(axis=1))
        if is_missing.any():
            raise StoreError(
                f"Answers about instance {rows[is_missing.argmax()]} are missing or damaged. Call "
                "`sample` again: it computes only these."
            )
        return table

    @cached_property
    def counts(self) -> _Counts:
        """Numbers of failures, and of regrets above and below zero."""
        tally = Tally(n_labels=self.n_instances, n_samples=self.n_instances * self.n_samples)
        counts, size, below = _Counts(tally), 0.0, [np.empty(0)]
        for rows in self.parts():
            table = self._complete(rows)
            self._note_failures(tally, rows, table)
            is_ok = (table.status == OK) & (table.status[:, :1] == OK)
            loss = np.where(is_ok, table.loss, table.loss[:, :1])
            regret = regret_of(loss[:, 1:], loss[:, :1])[is_ok[:, 1:]]
            counts.failures += int(np.sum(~is_ok[:, 1:]))
            counts.positive += int(np.sum(regret > 0))
            below.append(regret[regret < 0])
            size += float(np.abs(regret).sum())
        counts.mean_size = size / max(tally.n_samples - counts.failures, 1)
        negative = np.concatenate(below)
        notable = negative[negative < -SLIGHT * counts.mean_size]
        counts.negative, counts.below_zero = notable.size, -float(notable.sum())
        return counts

    def _note_failures(self, tally: Tally, rows: range, table: AnswerTable) -> None:
        """Count the failures of some instances, and note the first of each kind."""
        has_failed = (table.status > OK) & (table.status != NO_OPTIMUM)
        tally.failed_labels += int(np.sum(has_failed[:, 0]))
        tally.failed_samples += int(np.sum(has_failed[:, 1:]))
        for status in np.unique(table.status[has_failed]).tolist():
            kind = Status(status).name.lower()
            if kind not in tally.first_failures:
                place, column = np.argwhere(table.status == status)[0].tolist()
                message = table.messages.get((place, kind), "its call failed")
                instance, point = self.instances.describe(rows[place]), self.describe_point(column)
                tally.first_failures[kind] = describe(instance, point, message)

    @property
    def note(self) -> str:
        """A sentence about the answers that are kept if a run ends early."""
        return self.store.note if self.store.place or self.point == "sample" else ""

    def describe_point(self, column: int) -> str:
        """Return the name of a point: column 0 is the label, j point j - 1."""
        is_only = self.point == "prediction" and self.n_samples == 1 == column
        if self.point == "decision" or is_only:
            return "the prediction"
        return f"{self.point} {column - 1}" if column else "the label itself"
