"""The loop of rounds: train, call the solver where the model predicts, learn from all answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_predictions
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.learning._defaults import (
    AT_LABELS,
    Schedule,
    Situation,
    check_families,
    warn_of_few_samples,
)
from lodl.learning._search import Contender, Index, Scoreboard
from lodl.losses import DecisionFamily, Family, LearnedLoss, fit, fit_pooled, fit_shared
from lodl.oracle import Instances, Oracle, Samples
from lodl.problems import Problem
from lodl.problems._problem import projected
from lodl.samplers import AllPerturbed, AtPredictions, Sampler

Train: TypeAlias = Callable[[LearnedLoss], tuple[Any, npt.ArrayLike]]
"""Trains a model on a loss of all instances; returns it with its predictions for all of them."""

_NOISE = 0.5  # around predictions, as a share of the residuals' deviation
_GOOD_FIT = 0.02  # left-out error of a loss, as a share of the regret, that needs no more points
_PATIENCE = 3  # rounds without a better model; on large problems the first two may be worse


@dataclass(eq=False)
class Evidence:
    """All answers so far about some instances: losses are learned from them, predictions scored.

    Attributes:
        oracle: Calls the solver.
        instances: The instances.
        slopes: Whether answers need slopes, as decision families do.
        random_state: Random seed of the points.
        situation: Facts about the problem, from the first calls.
        n_before: Calls that the oracle had made before.
        started: When the work began, in seconds of `time.perf_counter`.
        has_items: Whether one model predicts all items of a label.
        by_pool: Whether predictions are scored by the cheapest known decision instead of a call.
        samples: The answers.
        at_labels: The answers about points around labels. Losses are pooled from these only: where
            a model predicts, each coordinate is seen from one side.
    """

    oracle: Oracle
    instances: Instances
    slopes: bool
    random_state: int
    situation: Situation
    n_before: int
    started: float
    has_items: bool = False
    by_pool: bool = False
    samples: Samples = field(init=False)
    at_labels: Samples = field(init=False)

    @classmethod
    def of(
        cls,
        oracle: Oracle,
        instances: Instances,
        families: Sequence[Family] | None,
        random_state: int,
        started: float | None = None,
    ) -> Evidence:
        """Check the families, and find out by a few calls what kind of objective there is."""
        y, context, n_before = instances.y, instances.context, oracle.n_calls
        check_families(families, y[0].size)
        started = time.perf_counter() if started is None else started
        slopes = families is None or any(family.uses_slopes for family in families)
        how: Any = {"slopes": slopes, "random_state": random_state}
        kind = oracle.objective_kind(instances, AT_LABELS, **how)
        situation = Situation(kind, context is not None, len(y), y[0].size)
        return cls(oracle, instances, slopes, random_state, situation, n_before, started)

    @property
    def n_calls(self) -> int:
        """Solver calls made so far."""
        return self.oracle.n_calls - self.n_before

    @property
    def is_corrected(self) -> bool:
        """Whether shifted predictions compete: costs may be uneven, or items not told apart."""
        return not self.situation.is_affine or self.has_items

    def start(
        self, schedule: Schedule, family: Family | None, residuals: Array | None = None
    ) -> None:
        """Sample points around the labels.

        Args:
            schedule: Their number, and the sampler.
            family: The family whose left-out errors show whether the first points are enough, or
                None.
            residuals: Out-of-fold residuals. If given, and if the objective is not affine and the
                sampler is the default, the noise is half as large: losses are then learned where
                the model errs, not where the labels spread.
        """
        sampler, n_samples = schedule.sampler, schedule.n_samples or 1
        if residuals is not None and sampler is AT_LABELS and not self.situation.is_affine:
            sampler = AllPerturbed(scale=_half_deviation(residuals))
        if family is not None and (schedule.n_first or n_samples) < n_samples:
            self.samples = self.at_labels = self._sample(sampler, schedule.n_first or n_samples)
            errors = self.learn(family).errors
            if np.nanmean(errors.mae_held_out) <= _GOOD_FIT * np.nanmean(errors.mean_regret):
                return
        self.samples = self.at_labels = self._sample(sampler, n_samples)

    def learn(
        self, family: Family, near: Array | None = None, *, holdout: float = 0.0
    ) -> LearnedLoss:
        """Return the loss of every instance. Shared decisions are those near labels and `near`."""
        if self.situation.is_shared and isinstance(family, DecisionFamily):
            return fit_shared(self.samples, family, at=near, holdout=holdout)
        if self.situation.is_pooled(family):
            return fit_pooled(self.at_labels, family)
        n_jobs = None if family.uses_slopes else self.oracle.n_jobs  # decisions are not fitted
        progress = self.oracle.settings.progress
        return fit(self.samples, family, holdout=holdout, n_jobs=n_jobs, progress=progress)

    def scored(
        self, contender: Contender, n_points: int = 0, family: Family | None = None
    ) -> Contender:
        """Return a contender with the regrets of its decisions.

        With `n_points`, that many answers per instance at its predictions are learned from, too.
        """
        sampler = _at_predictions(self.instances.y, contender.y_hat, family)
        if n_points:
            self.samples = self.samples.union(self._sample(sampler, n_points))
        if self.by_pool:
            points = projected(self.oracle.problem, contender.y_hat)
            regret = self.samples.pool().regrets_at(points.reshape(len(points), -1))
        else:
            regret = self._sample(sampler, 1).first_regrets()
        seconds = time.perf_counter() - self.started
        return replace(contender, regret=regret, n_calls=self.n_calls, seconds=seconds)

    def regrets(self, y_hat: Array, rows: Index) -> Array:
        """Return the regrets of predictions for the instances at some positions."""
        instances = self.instances.take(rows)
        sampler = AtPredictions(y_hat, scale=1.0, n_exact=1)
        samples = self.oracle.sample(instances, sampler, 1, random_state=self.random_state)
        return samples.first_regrets()

    def _sample(self, sampler: Sampler, n_samples: int) -> Samples:
        how: Any = {"slopes": self.slopes, "random_state": self.random_state}
        return self.oracle.sample(self.instances, sampler, n_samples, **how)


def _at_predictions(y: Array, y_hat: Array, family: Family | None) -> AtPredictions:
    """Return the sampler of a round: its noise is half as wide as the model's residuals."""
    margin = getattr(family, "margin", 2.0)
    margin = margin if margin > 1 else 2.0  # beyond a margin of 1 there is no such point
    return AtPredictions(y_hat, scale=_half_deviation(y_hat - y), margin=margin)


def _half_deviation(residuals: Array) -> Array:
    """Return half the deviation of residuals, in the label's shape; positive everywhere."""
    deviation = np.std(residuals, axis=0)
    return _NOISE * np.where(deviation > 0, deviation, max(float(np.std(residuals)), 1e-12))


def rounds(
    evidence: Evidence,
    train: Callable[[LearnedLoss], tuple[Any, Array] | None],
    families: Sequence[Family],
    schedule: Schedule,
    *,
    leader: Contender | None = None,
    is_late: Callable[[], bool] = lambda: False,
) -> Iterator[Contender]:
    """Yield the contenders of all rounds.

    The first family leads the rounds: the solver is called where its model predicts, and the next
    loss is learned from all answers so far. After the last round, all families are tried.

    Args:
        evidence: The answers, to which each round adds.
        train: Trains a model on a loss. Returns it with its predictions, or None to leave it out.
        families: The families.
        schedule: The number of rounds, and of points in each.
        leader: The model at whose predictions the first round was already sampled.
        is_late: Whether time is up, so that no further model is trained.
    """
    n_rounds = schedule.n_rounds or 0
    for number in range(0 if leader is None else min(1, n_rounds), n_rounds + 1):
        is_last, near = number == n_rounds, None if leader is None else leader.y_hat
        for family in families if is_last else families[:1]:
            if is_late():
                return
            loss = evidence.learn(family, near)
            trained = train(loss)
            if trained is not None:
                model, y_hat = trained
                contender = Contender(str(family), number, y_hat, ((loss, model),))
                n_points = 0 if is_last else schedule.n_per_round
                leader = evidence.scored(contender, n_points, family)
                yield leader


@dataclass(frozen=True, eq=False, repr=False)
class Rounds:
    """The models of all rounds, from samples at the labels alone to all answers.

    Attributes:
        rounds: One entry per trained model, with its `model`, `y_hat`, `loss`, the `regret` of each
            instance (NaN if the solver failed), and the `n_calls` and `seconds` so far.
        validation: Positions of the instances whose regret selects.
        samples: All answers, those at predictions included.
    """

    rounds: tuple[Contender, ...]
    validation: Index
    samples: Samples

    def __repr__(self) -> str:
        return f"Rounds of {len(self.rounds)} models, the best is number {self._best}"

    def __str__(self) -> str:
        lines = [
            f"{'*' if i == self._best else ' '} round {i}: validation regret {score:.4g}, "
            f"{entry.n_calls:,} solver calls, {entry.seconds:.1f} s"
            for i, (entry, score) in enumerate(zip(self.rounds, self.scores, strict=True))
        ]
        return "\n".join([*lines, "* is the best: `.best.model`, `.best.loss`, `.best.y_hat`"])

    @property
    def scores(self) -> Array:
        """Mean validation regret of each round's model.

        A failed decision counts as the worst decision of the first model. Instances on which every
        model failed are left out.
        """
        board = Scoreboard(self.validation)
        for entry in self.rounds:
            board.add(entry)
        return np.array([board.mean(entry) for entry in self.rounds])

    @property
    def best(self) -> Contender:
        """The round with the best validation decisions, the earliest of equal ones."""
        return self.rounds[self._best]

    def top(self, n: int) -> tuple[Contender, ...]:
        """Return the `n` rounds with the best validation decisions, the best first.

        On large problems the average of what the best three predict decides better than the best
        alone, which owes part of its score to chance: results/rounds.
        """
        places = np.argsort(self.scores, kind="stable")[: check_count("n", n)]
        return tuple(self.rounds[i] for i in places)

    @property
    def _best(self) -> int:
        return int(np.argmin(self.scores))


def learn_in_rounds(
    oracle: Problem | Oracle,
    y: npt.ArrayLike | Instances,
    train: Train,
    *,
    context: Context = None,
    family: Family | None = None,
    schedule: Schedule = Schedule(),  # noqa: B008 - it is frozen
    validation: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> Rounds:
    """Learn a loss from samples around the labels, then in rounds where the model predicts.

    Each round trains a model on the loss of all answers so far, and calls the solver at its
    predictions: at the prediction itself, at the point beyond it where a hinge is violated most,
    and around it (`AtPredictions`). For decision families these are cutting planes: on large
    combinatorial problems samples around the labels miss the decisions that matter, and a few
    rounds make the whole difference. The loop ends after the rounds of the schedule, or after three
    rounds without better validation decisions.

    If the objective is affine in the label and there is no context, instances share their decisions
    (`lodl.losses.fit_shared`).

    With a store, a killed run resumes: it trains again, but repeats no call as long as `train`
    gives the same predictions.

    Args:
        oracle: The problem whose solver is called, or a `lodl.Oracle` of it, which has workers, a
            store, a time limit and a policy for failures.
        y: Labels of training and validation instances, shape (n, *label_shape), or a frame with a
            column for each number of a label.
        train: Trains a model, in any framework, on a `LearnedLoss` of these instances in their
            order, and returns it with its predictions for all of them. If the model can overfit,
            out-of-fold predictions for training instances are better than fitted ones.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        family: The parametric loss. Defaults to that of `learn_loss`.
        schedule: The numbers of samples and rounds, and the limit on solver calls.
        validation: Positions of the instances by whose regret the best round is selected, which
            `train` must not fit. Defaults to all of them.
        random_state: Random seed of the points.

    Returns:
        The models of all rounds: print it to see their scores and costs, and take
        `.best.model` for use.

    Raises:
        InvalidInputError: An argument, or what `train` returned, is not what was expected.
        OracleError: The solver failed, or did so for all validation instances of the first round.

    Example:
        >>> domain = lodl.domains.shortest_path(sizes=(30, 1, 1), grid=(3, 3))
        >>> x, y = domain.splits.train.x, domain.splits.train.y
        >>> learner = lodl.training.learner_for(None)  # a linear model
        >>> def train(loss):
        ...     (model,) = learner.train(x, loss, n_steps=20)
        ...     return model, model.predict(x)
        >>> schedule = lodl.learning.Schedule(n_rounds=1)
        >>> rounds = lodl.learning.learn_in_rounds(domain.problem, y, train, schedule=schedule)
        >>> len(rounds.rounds), rounds.best.y_hat.shape
        (2, (30, 12))
    """
    oracle = Oracle.of(oracle)
    instances = oracle.instances(y, context)
    labels, families = instances.y, None if family is None else [family]
    selecting = _check_validation(validation, len(labels))
    evidence = Evidence.of(oracle, instances, families, random_state)
    family = evidence.situation.family() if family is None else family
    schedule = evidence.situation.schedule(schedule, [family])
    schedule = schedule.within_budget(len(labels), lambda _: 1)
    n_samples, n_rounds = schedule.n_samples or 0, schedule.n_rounds or 0
    if not evidence.situation.is_pooled(family):
        warn_of_few_samples(family, n_samples + n_rounds * schedule.n_per_round, labels[0].size)
    evidence.slopes = family.uses_slopes
    evidence.start(schedule, family)
    entries: list[Contender] = []
    for entry in rounds(evidence, lambda loss: _checked(train(loss), labels), [family], schedule):
        entries.append(entry)
        done = Rounds(tuple(entries), selecting, evidence.samples)
        if len(entries) - 1 - done._best >= _PATIENCE:
            break
    return done


def _checked(trained: Any, y: Array) -> tuple[Any, Array]:
    """Return the model and the predictions that `train` returned."""
    if not isinstance(trained, tuple) or len(trained) != 2:
        raise InvalidInputError(
            "`train` must return the model and its predictions for all instances, "
            f"`(model, y_hat)`, got {type(trained).__name__}."
        )
    return trained[0], check_predictions(trained[1], y)


def _check_validation(validation: npt.ArrayLike | None, n: int) -> Index:
    if validation is None:
        return np.arange(n)
    wanted = np.asarray(validation)
    try:
        rows = np.arange(n)[wanted] if wanted.size else wanted
    except IndexError as error:
        raise InvalidInputError(
            f"`validation` must hold positions of instances from 0 to {n - 1}, or a mask: {error}."
        ) from error
    if not rows.size:
        raise InvalidInputError("`validation` must name at least one instance, got none.")
    return np.asarray(rows)
