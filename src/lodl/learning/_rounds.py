"""The loop of rounds: train, call the solver where the model predicts, learn from all answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from lodl._arrays import context_of
from lodl._typing import Array, Index
from lodl.errors import OracleError
from lodl.learning._defaults import AT_LABELS, Schedule, Situation
from lodl.learning._search import Contender
from lodl.losses import DecisionFamily, Family, LearnedLoss, fit, fit_pooled, fit_shared
from lodl.losses._family import mse_weights
from lodl.losses._shared_slopes import are_apart, gaps
from lodl.oracle import Instances, ObjectiveKind, Oracle, Samples
from lodl.problems import LinearProblem
from lodl.problems._problem import projected
from lodl.report import BY_THE_SOLVER
from lodl.samplers import AdjacentVertices, AllPerturbed, AtPredictions, Sampler, label_scale

_N_NEIGHBOURS = 50  # decisions next to one, of each call
_MANY_NUMBERS = 100  # in a label whose decisions are too many to know
_LEAST = 0.1  # least regret that weighs an instance's squared error, as a share of the mean
_NOISE = 0.5  # around predictions, as a share of the residuals' deviation
_FEW_NEW = 0.1  # share of predictions that lead to new decisions, after which rounds end
_MOST_SHARING = 10_000  # instances with contexts that share their decisions
_N_TRIED = 10  # labels whose decisions show whether they do; these calls are needed anyway
_SELDOM = "Contexts allow %.0f%% of the decisions of a few labels, so decisions are not shared."
_CLEARLY = 1e-3  # share of a typical regret by which a decision is better, not rounded
_BETTER = (
    "`are_feasible` allows better decisions than the solver's at %d of %d labels: it allows too "
    "much, or the solver is not exact. Losses count them as equally good."
)
_OFTEN = 0.2  # share of contexts that must allow such a decision
_GOOD_FIT = 0.02  # left-out error of a loss, as a share of the regret, that needs no more points

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Evidence:
    """All answers so far about some instances: losses are learned from them, predictions scored."""

    oracle: Oracle
    instances: Instances
    situation: Situation
    families: Sequence[Family]  # the first leads the rounds, or each in turn
    schedule: Schedule
    random_state: int  # seed of the points
    n_before: int  # calls that the oracle had made before
    started: float  # in seconds of `time.perf_counter`
    max_seconds: float
    slopes: bool  # whether answers have slopes, which decision families need
    by_estimate: bool = False  # whether predictions are scored without calls
    is_by_loss: bool = False  # whether a loss has scored them, not known decisions
    is_apart: bool = False  # whether hardly two labels share a decision, as on a smooth set
    in_turn: Callable[[Contender], Array] = attrgetter("y_hat")  # or by its models in turn
    samples: Samples = field(init=False)
    at_labels: Samples = field(init=False)  # answers about points around labels
    new_shares: list[float] = field(default_factory=list)  # of new decisions in each round

    @classmethod
    def of(
        cls,
        oracle: Oracle,
        instances: Instances,
        families: Sequence[Family] | None,
        schedule: Schedule,
        random_state: int,
        *,
        default: Callable[[Situation], Sequence[Family]] = Situation.families,
        started: float | None = None,
        max_seconds: float = inf,
        has_baseline: bool = True,
    ) -> Evidence:
        """Find out by a few calls what kind of objective there is, and fill in its defaults.

        Decisions next to labels make no loss: a baseline must predict first.
        """
        n_before, started = oracle.n_calls, time.perf_counter() if started is None else started
        slopes = families is None or any(family.uses_slopes for family in families)
        kind = oracle.objective_kind(instances, AT_LABELS, slopes=slopes, random_state=random_state)
        context = instances.context
        is_near = has_baseline and oracle.problem.has_neighbours(context_of(context, 0))
        can_share = kind is ObjectiveKind.AFFINE and slopes and not is_near
        shares = context is None or (can_share and _are_often_allowed(oracle, instances))
        situation = Situation(kind, shares, len(instances.y), has_neighbours=is_near)
        families = default(situation) if families is None else families
        return cls(
            *(oracle, instances, situation, families, situation.schedule(schedule, families)),
            *(random_state, n_before, started, max_seconds),
            slopes=any(family.uses_slopes for family in families),
        )

    @property
    def n_calls(self) -> int:
        return self.oracle.n_calls - self.n_before

    def is_late(self) -> bool:
        """Return whether time is up, so that no further model is tried."""
        return time.perf_counter() - self.started > self.max_seconds

    def start(self, residuals: Array | None = None) -> None:
        """Sample points around the labels.

        If the objective is not affine, the default noise is half as large as out-of-fold residuals:
        losses are then learned where the model errs, not where the labels spread.
        """
        sampler, n_samples = self.schedule.sampler, self.schedule.n_samples or 0
        n_first = self.schedule.n_first or n_samples
        if residuals is not None and sampler is AT_LABELS and not self.situation.is_affine:
            sampler = AllPerturbed(scale=_half_deviation(residuals))
        if self.families and n_first < n_samples:
            self.samples = self.at_labels = self._sample(sampler, n_first)
            errors = self.learn(self.families[0]).errors
            if np.nanmean(errors.mae_held_out) <= _GOOD_FIT * np.nanmean(errors.mean_regret):
                return
        has_near = self.is_near or (self.is_large and self.situation.has_neighbours and self.slopes)
        near = [self._sample(AdjacentVertices(), _N_NEIGHBOURS)] if has_near else []
        labels = self._sample(sampler, n_samples)  # they are known now
        self.samples = self.at_labels = labels.union(near[0]) if near else labels
        if self.instances.context is not None and self.situation.is_shared and self.slopes:
            regret = self._estimated(self.instances.y)
            n_better = int((regret < -_CLEARLY * self.samples.pool().typical_regret).sum())
            if n_better:
                _logger.warning(_BETTER, n_better, len(regret))
        if self.situation.is_shared and self.slopes and self.by_estimate:
            pool = self.samples.pool()
            self.is_apart = are_apart(pool.gradient, pool.met[pool.met[:, 0] >= 0, 0])
        if self.is_apart and self.families == self.situation.families():
            self.families = self.families[:1]  # rankings learn from known decisions that are near

    @property
    def knows_enough(self) -> bool:
        """Whether models are compared by known decisions: shared, or next to those of calls."""
        has_them = self.situation.is_shared or bool(self.schedule.n_rounds)
        return has_them and self.situation.knows_enough(self.families)

    @property
    def is_large(self) -> bool:
        """Whether the decisions that instances share are so many that most stay unknown."""
        return self.situation.is_shared and self.instances.y[0].size >= _MANY_NUMBERS

    @property
    def is_near(self) -> bool:
        """Whether each instance learns from the decisions next to those that its calls return."""
        return self.situation.learns_neighbours and self.knows_enough

    @property
    def n_at_baseline(self) -> int:
        """Rounds at the baseline: at its predictions and, if a third follows, beyond them."""
        return 1 + ((self.is_near or self.is_apart) and (self.schedule.n_rounds or 0) > 2)

    def learn(
        self, family: Family, near: Array | None = None, *, holdout: float = 0.0
    ) -> LearnedLoss:
        """Return the loss of every instance. Shared decisions are those near labels and `near`."""
        if self.situation.is_shared and isinstance(family, DecisionFamily):
            return fit_shared(self.samples, family, at=near, holdout=holdout)
        if self.situation.is_pooled(family):
            # Where a model predicts, each coordinate is seen from one side: only around labels.
            return fit_pooled(self.at_labels, family)
        n_jobs = None if family.uses_slopes else self.oracle.n_jobs  # decisions are not fitted
        progress = self.oracle.progress
        loss = fit(self.samples, family, holdout=holdout, n_jobs=n_jobs, progress=progress)
        return _with_even_weights(loss) if self.is_near else loss

    def scored(
        self, contender: Contender, n_points: int = 0, family: Family | None = None
    ) -> Contender:
        """Return a contender with its regrets; `n_points` answers at its predictions are kept."""
        sampler = _at_predictions(self.instances.y, contender.y_hat, family, n_points)
        if n_points and (self.is_near or self.is_apart):
            # Hinges are highest beyond a prediction. The baseline is judged at its own at the end.
            # Predictions of held-out instances alone left models unchecked where they are trained.
            ats = [contender.y_hat, 2 * self.in_turn(contender) - self.instances.y]
            for at in ats[: self.n_at_baseline] if contender.is_baseline else ats[1:]:
                near = AdjacentVertices(at) if self.is_near else AtPredictions(at, 1.0, 1)
                self._add(self._sample(near, _N_NEIGHBOURS if self.is_near else 1))
        elif n_points:
            self._add(self._sample(sampler, n_points))
        if self.by_estimate:
            regret = self._estimated(contender.y_hat)
        else:
            regret = self._sample(sampler, 1).first_regrets()
        seconds = time.perf_counter() - self.started
        return replace(contender, regret=regret, n_calls=self.n_calls, seconds=seconds)

    def _estimated(self, y_hat: Array) -> Array:
        """Return the regret of the cheapest known decisions, or the first family's loss."""
        if self.situation.is_shared and self.slopes:
            points = projected(self.oracle.problem, y_hat)
            return self.samples.pool().regrets_at(points.reshape(len(points), -1))
        if self.is_near:
            return cheapest_known(self.learn(self.families[0]), y_hat)
        self.is_by_loss = True
        return self._estimate.value(y_hat) if self.families else np.zeros(len(y_hat))

    @cached_property
    def _estimate(self) -> LearnedLoss:
        return self.learn(self.families[0])

    def judged(self, contender: Contender, rows: Index) -> Contender:
        """Return a contender with the regrets of the solver's decisions at some positions."""
        y_hat, instances, seed = contender.y_hat[rows], self.instances.take(rows), self.random_state
        sampler = AdjacentVertices(y_hat) if self.is_near else AtPredictions(y_hat, 1.0, 1)
        samples = self.oracle.sample(instances, sampler, 1, random_state=seed)
        regret = np.full(len(contender.y_hat), np.nan)
        regret[rows] = samples.first_regrets()
        name, seconds = contender.name + BY_THE_SOLVER, time.perf_counter() - self.started
        return replace(contender, name=name, regret=regret, n_calls=self.n_calls, seconds=seconds)

    def _add(self, samples: Samples) -> None:
        """Add the answers of a round, and note how many of its decisions are new."""
        n_before, self.samples = self.samples.n_samples, self.samples.union(samples)
        n_added = self.samples.n_samples - n_before
        if n_added and self.situation.is_shared and self.slopes:
            n_new = self.samples.pool().n_new(n_added)
            self.new_shares.append(n_new / (n_added * len(self.instances)))

    def has_stalled(self) -> bool:
        """Return whether two rounds in a row, of different predictions, met few new decisions."""
        last = self.new_shares[-2:]
        return len(last) == 2 and max(last) < _FEW_NEW

    def _sample(self, sampler: Sampler, n: int) -> Samples:
        slopes, seed = self.slopes, self.random_state
        return self.oracle.sample(self.instances, sampler, n, slopes=slopes, random_state=seed)


def _are_often_allowed(oracle: Oracle, instances: Instances) -> bool:
    """Return whether contexts often allow the decisions of a few labels."""
    kind = type(oracle.problem)
    knows = issubclass(kind, LinearProblem) and kind.are_feasible is not LinearProblem.are_feasible
    if not knows or len(instances) > _MOST_SHARING:
        return False
    rows = np.unique(np.linspace(0, len(instances) - 1, _N_TRIED).astype(int))
    sampler = AllPerturbed(instances.label_scale)  # that of all labels
    try:
        samples = oracle.sample(instances.take(rows), sampler, 0, slopes=True)
    except OracleError:  # all labels show whether failures are too many
        return False
    are_allowed = samples.are_allowed_for(instances)
    if are_allowed is None:
        return False
    share = float(are_allowed.sum()) / max(are_allowed.size, 1)
    if share <= _OFTEN:
        _logger.warning(_SELDOM, 100 * share)
    return share > _OFTEN


def _at_predictions(y: Array, y_hat: Array, family: Family | None, n_points: int) -> AtPredictions:
    """Return a round's sampler: noise of half the residuals' deviation, no margin of 1."""
    if n_points < 2:
        return AtPredictions(y_hat, scale=1.0, n_exact=1)  # the prediction itself
    scale, margin = _half_deviation(y_hat - y), getattr(family, "margin", 2.0)
    return AtPredictions(y_hat, scale=scale, margin=margin if margin > 1 else 2.0)


def _with_even_weights(loss: LearnedLoss) -> LearnedLoss:
    """Return a loss whose squared error is in units of the labels' deviation, not of few points."""
    assert isinstance(loss.family, DecisionFamily)
    mean = np.nan_to_num(loss.errors.mean_regret)
    cost = loss.family.squared_error * np.maximum(mean, _LEAST * mean.mean())
    w = mse_weights(cost[:, np.newaxis], label_scale(loss.y).reshape(1, -1))
    return replace(loss, phi={**loss.phi, "w": w})


def cheapest_known(loss: LearnedLoss, y_hat: Array) -> Array:
    """Return the regret of the decision of each instance's hinges that is cheapest at `y_hat`."""
    rows, d = np.arange(len(y_hat)), (y_hat - loss.y).reshape(len(y_hat), 1, -1)
    cost = loss.phi["regret"] + gaps(loss.phi["slope"], d)[:, 0]
    cheapest = cost.argmin(axis=1)
    regret = loss.phi["regret"][rows, cheapest]
    return np.where(cost[rows, cheapest] < 0, regret, 0.0)  # or the label's own decision


def _half_deviation(residuals: Array) -> Array:
    """Return half the deviation of residuals, in the label's shape; positive everywhere."""
    deviation = np.std(residuals, axis=0)
    return _NOISE * np.where(deviation > 0, deviation, max(float(np.std(residuals)), 1e-12))


def rounds(
    evidence: Evidence,
    train: Callable[[LearnedLoss], tuple[Any, Array] | None],
    score: Callable[..., Contender],
    leader: Contender | None = None,
) -> Iterator[Contender]:
    """Yield the contenders of all rounds.

    The solver is called where a family's model predicts, and the next loss is learned from all
    answers so far. Families take turns; if instances share decisions, the first leads, which is
    quick to train. After the last round, or if few decisions are new, all are tried. `train` may
    return None to leave a loss out. A given `leader` is that of the first round.
    """
    families, n_rounds = evidence.families, evidence.schedule.n_rounds or 0
    leading = families[:1] if evidence.situation.is_shared else families
    first = 0 if leader is None else min(evidence.n_at_baseline, n_rounds)
    for number in range(first, n_rounds + 1):
        is_last, turn = number == n_rounds or evidence.has_stalled(), number - first
        near = None if leader is None else leader.y_hat
        if evidence.is_large and is_last and number == first == 1:
            # The baseline's decisions would crowd out those near the models to be trained.
            near = (train(evidence.learn(families[0], near)) or (None, near))[1]
        for family in families if is_last else leading[turn % len(leading) :][:1]:
            if evidence.is_late():
                return
            loss = evidence.learn(family, near)
            if (trained := train(loss)) is not None:
                contender = Contender(str(family), number, trained[1], ((loss, trained[0]),))
                leader = score(contender, 0 if is_last else evidence.schedule.n_per_round, family)
                yield leader
        if is_last:
            return
