"""The search for the model whose held-out decisions are best."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lodl._arrays import Features
from lodl._typing import Array
from lodl.errors import LodlError
from lodl.learning._candidates import TWO_STAGE, Candidate
from lodl.learning._data import Data
from lodl.learning._folds import CrossFit, Folds, cross_fit
from lodl.learning._gain import standard_error
from lodl.learning._held_out import HeldOut, HeldOutRegrets
from lodl.learning._oracle_budget import Plan
from lodl.learning._rounds import at_predictions
from lodl.losses import LearnedLoss, squared_error_loss
from lodl.oracle import Samples
from lodl.samplers import AllPerturbed, Sampler
from lodl.training import Learner, Predictor

AT_LABELS = AllPerturbed(scale="auto")
"""The sampler of the first questions."""

_SHRINKS = (0.5, 0.25, 0.0)  # what is kept of the distance from the mean label

_logger = logging.getLogger(__name__)

Ask = Callable[[Sampler, int], Samples]
"""Asks the oracle about so many candidates of a sampler at every instance."""


@dataclass(frozen=True)
class HistoryRow:
    """One model that was tried.

    Attributes:
        name: The loss it was trained on, or which models it averages.
        round: Rounds of candidates around predictions that its loss knew.
        regret: Mean regret of its held-out decisions, in the objective's unit. A failed decision
            counts as the worst decision of squared error.
        n_calls: Oracle calls until then.
        seconds: Time until then.
    """

    name: str
    round: int
    regret: float
    n_calls: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Tried:
    """A model with its held-out predictions.

    Attributes:
        name: The loss it was trained on, or which models it averages.
        y_hat: Held-out predictions.
        regret: Regret of each instance, NaN where the solver failed.
        parts: The losses and the models of all folds that are averaged.
        kept: What is kept of the predictions' distance from the mean label.
    """

    name: str
    y_hat: Array
    regret: Array
    parts: tuple[tuple[LearnedLoss, CrossFit], ...]
    kept: float = 1.0


@dataclass(eq=False)
class Search:
    """Tries losses, round by round.

    Attributes:
        x: Features.
        y: Labels.
        learner: Trains the models.
        folds: Which instances are held out.
        ask: The oracle.
        n_calls: Returns how many calls were made so far.
        deadline: When to stop trying, in the seconds of `time.perf_counter`.
        project: Maps predictions into the range that the solver accepts.
        shares: Whether instances share their decisions.
        solver_judges: Whether the solver makes the decisions that models are compared by; otherwise
            they are the cheapest of those that instances share.
        regrets: The regrets of all models so far on held-out instances.
    """

    x: Features
    y: Array
    learner: Learner
    folds: Folds
    ask: Ask
    n_calls: Callable[[], int]
    started: float
    deadline: float = np.inf
    project: Callable[[Array], Array] = np.asarray
    shares: bool = False
    solver_judges: bool = True
    regrets: HeldOutRegrets = field(init=False)
    _tried: list[tuple[HistoryRow, Array]] = field(default_factory=list)
    _samples: Samples = field(init=False)  # all answers so far
    _two_stage: tuple[LearnedLoss, CrossFit] = field(init=False)
    _prepared: Any = field(init=False)  # by the learner, for all losses

    def train_two_stage(self) -> None:
        """Train 2-stage. Data that the model cannot take then costs no solver calls."""
        loss = squared_error_loss(self.y)
        self._prepared = self.learner.prepare(self.x, self.y, self.folds.masks)
        self._two_stage = loss, self._fit(loss)

    def _fit(self, loss: LearnedLoss, *, stops: bool = True) -> CrossFit:
        return cross_fit(
            self.learner, self.x, loss, self.folds, prepared=self._prepared, stops=stops
        )

    def __post_init__(self) -> None:
        self.regrets = HeldOutRegrets(self.folds.judged)

    def run(
        self, tried: tuple[Candidate, ...], plan: Plan, *, ensemble: bool
    ) -> tuple[Tried, Tried]:
        """Return the model to keep, and 2-stage."""
        two_stage, *others = tried
        loss, fitted = self._two_stage
        self._samples = self.ask(AT_LABELS, plan.n_samples)
        n_asked = plan.n_per_round if plan.n_rounds else 0
        baseline = self._judge(two_stage.name, loss, fitted, 0, n_asked)
        if plan.has_second_baseline and not self._is_late():
            # Early stopping may hurt the decisions of squared error: its better half counts.
            second = self._try(replace(two_stage, stops=False), 0)
            baseline = min(baseline, second, key=self._mean_regret)
        leader = baseline
        for number in range(1, plan.n_rounds):
            if not others or self._is_late():
                break
            leader = self._try_to(others[0], number, leader, plan.n_per_round) or leader
        found = [baseline]
        for candidate in others:
            if self._is_late():
                break
            model = self._try_to(candidate, plan.n_rounds, leader)
            found += [] if model is None else [model]
        chosen = self._choose(found, plan.n_rounds, ensemble=ensemble)
        return self._ask_the_solver(chosen, baseline)

    def _ask_the_solver(self, chosen: Tried, baseline: Tried) -> tuple[Tried, Tried]:
        """Return both with regrets by the solver, and 2-stage twice where it is no worse."""
        if self.solver_judges:
            return chosen, baseline
        models = [chosen, baseline]
        chosen, baseline = (replace(one, regret=self._asked(one.y_hat)) for one in models)
        self.regrets.add(chosen.regret)
        self.regrets.add(baseline.regret)
        return min(baseline, chosen, key=self._mean_regret), baseline

    def _try_to(
        self, candidate: Candidate, number: int, leader: Tried, n_asked: int = 0
    ) -> Tried | None:
        """Return what `_try` does, None if the estimator cannot be trained on this loss.

        2-stage was trained on the same features, so the others go on without it.
        """
        try:
            return self._try(candidate, number, leader, n_asked)
        except LodlError:  # the solver's, or an argument's
            raise
        except Exception as error:  # noqa: BLE001 - an estimator of the user's may raise anything
            _logger.warning(
                "%s is left out, because the estimator could not be trained on it: %s: %s",
                candidate.name,
                type(error).__name__,
                error,
            )
            return None

    def _try(
        self, candidate: Candidate, number: int, leader: Tried | None = None, n_asked: int = 0
    ) -> Tried:
        """Train on a candidate's loss, and ask where the models predict.

        Args:
            candidate: The loss.
            number: Rounds that it knows.
            leader: The model to improve: instances share the decisions near its predictions.
            n_asked: Questions to learn from at each prediction, 0 only to look at its decision.
        """
        loss = candidate.learn(self._samples, leader.y_hat if self.shares and leader else None)
        fitted = self._fit(loss, stops=candidate.stops)
        return self._judge(candidate.name, loss, fitted, number, n_asked)

    def _judge(
        self, name: str, loss: LearnedLoss, fitted: CrossFit, number: int, n_asked: int
    ) -> Tried:
        """Return models with the regrets of their decisions; keep the answers of a round."""
        if n_asked:
            answers = self.ask(at_predictions(self.y, fitted.y_hat), n_asked)
            self._samples = self._samples.union(answers)
        regret = self._regrets_at(fitted.y_hat)
        self._note(name, number, regret)
        return Tried(name, fitted.y_hat, regret, ((loss, fitted),))

    def _choose(self, found: list[Tried], number: int, *, ensemble: bool) -> Tried:
        """Return the average of all models, or the best one if it is clearly better.

        Chance decides which of several good models is the best on a few hundred held-out instances,
        and their average is better than most of them. 2-stage joins it if the gain over 2-stage is
        not clear, unless the two together decide no better than 2-stage. 2-stage is kept alone if
        nothing decides better. Where 2-stage predicts no better than the mean label, the mean is
        kept unless 2-stage or, clearly, the best model decides better.
        """
        baseline, *others = found
        best, members = min(found, key=self._mean_regret), sorted(others, key=self._mean_regret)
        if ensemble and others and not self._is_late():
            average = self._average(members, number)
            if self._is_clear(average, best):
                members = [best]
            else:
                best = average
            if baseline not in members and not self._is_clear(baseline, best):
                blend = self._average([*members, baseline], number)
                if self._mean_regret(blend) < self._mean_regret(baseline):
                    best = blend
        if self._mean_regret(best) >= self._mean_regret(baseline):
            best = baseline
        if not self._is_late() and not self._predicts(baseline):
            constant = self._drawn_to_the_mean(best, 0.0, number)
            is_worse = self._mean_regret(constant) > self._mean_regret(baseline)
            if not is_worse and not self._is_clear(constant, best):
                return constant
        return self._shrink(best, number)

    def _predicts(self, model: Tried) -> bool:
        """Return whether held-out predictions are closer to the labels than their mean is."""
        y, means = self.y[self.folds.judged], self.folds.means(self.y)[self.folds.judged]
        spread = y.std(axis=0)
        unit = np.where(spread > 0, spread, 1.0)
        error, of_mean = ((one - y) / unit for one in (model.y_hat[self.folds.judged], means))
        return bool(np.square(error).sum() < np.square(of_mean).sum())

    def _average(self, models: list[Tried], number: int) -> Tried:
        """Return the model that predicts the mean of several; the last may be 2-stage."""
        if len(models) == 1:
            return models[0]
        losses = [model.name for model in models if not model.name.startswith(TWO_STAGE)]
        others = [model.name for model in models if model.name not in losses]
        parts = losses if len(losses) <= 2 - len(others) else [f"{len(losses)} losses"]
        name = " and ".join([*parts, *others])
        return self._look_at(
            Tried(
                f"average of {name}",
                np.mean([model.y_hat for model in models], axis=0),
                models[0].regret,
                tuple(part for model in models for part in model.parts),
            ),
            number,
        )

    def _shrink(self, best: Tried, number: int) -> Tried:
        """Draw predictions to the mean label, as far as held-out decisions clearly ask for it."""
        whole = best
        for kept in _SHRINKS:
            if self._is_late():
                break
            now = self._drawn_to_the_mean(whole, kept, number)
            if not self._is_clear(best, now):
                break
            best = now
        return best

    def _drawn_to_the_mean(self, model: Tried, kept: float, number: int) -> Tried:
        """Return a model that keeps a share of its predictions' distance from the mean label."""
        means = self.folds.means(self.y)
        name = f"{model.name}, {1 - kept:.0%} of the way to the mean"
        y_hat = means + kept * (model.y_hat - means)
        return self._look_at(Tried(name, y_hat, model.regret, model.parts, kept), number)

    def _look_at(self, model: Tried, number: int) -> Tried:
        """Return a model with the regret of its decisions."""
        regret = self._regrets_at(model.y_hat)
        self._note(model.name, number, regret)
        return Tried(model.name, model.y_hat, regret, model.parts, model.kept)

    def _regrets_at(self, y_hat: Array) -> Array:
        """Return the regret of each prediction, by the solver or by the decisions known so far."""
        if self.solver_judges:
            return self._asked(y_hat)
        return self._samples.pool().regrets_at(self.project(y_hat).reshape(len(y_hat), -1))

    def _asked(self, y_hat: Array) -> Array:
        """Return the regret of each prediction by the solver."""
        return self.ask(at_predictions(self.y, y_hat), 1).first_regrets()

    def _is_clear(self, before: Tried, after: Tried) -> bool:
        """Return whether held-out decisions got better by more than one standard error."""
        gain = self.regrets.of(before.regret) - self.regrets.of(after.regret)
        return bool(gain.mean() > standard_error(gain))

    def _mean_regret(self, model: Tried) -> float:
        return float(self.regrets.of(model.regret).mean())

    def _note(self, name: str, number: int, regret: Array) -> None:
        self.regrets.add(regret)
        mean, seconds = float(self.regrets.of(regret).mean()), time.perf_counter() - self.started
        row = HistoryRow(name, number, mean, self.n_calls(), seconds)
        self._tried.append((row, regret))
        _logger.info("%s, round %d: held-out regret %.4g", row.name, row.round, row.regret)

    @property
    def history(self) -> list[HistoryRow]:
        """A row for each model, all of them judged on the same instances."""
        return [
            replace(row, regret=float(self.regrets.of(regret).mean()))
            for row, regret in self._tried
        ]

    def held_out(self, data: Data, two_stage: Tried, chosen: Tried) -> HeldOut:
        """Return the held-out decisions of 2-stage and of the chosen model."""
        regrets, index = self.regrets, self.regrets.index
        return HeldOut(
            index,
            regrets.of(two_stage.regret),
            regrets.of(chosen.regret),
            ~np.isfinite(two_stage.regret[index]),
            ~np.isfinite(chosen.regret[index]),
            regrets.n_left_out,
            data.y[index],
            None if data.context is None else [data.context[i] for i in index.tolist()],
            two_stage.y_hat[index],
            chosen.y_hat[index],
            tuple(data.names[i] for i in index.tolist()),
        )

    def _is_late(self) -> bool:
        return time.perf_counter() > self.deadline

    def models(self, chosen: Tried, *, ensemble: bool) -> list[Predictor]:
        """Return the models to predict with, of which the mean is taken.

        The models of all folds decide better than one that is trained on all instances for as many
        steps, and exist already. Without an ensemble, or with a single part held out, there is one
        model per loss, trained on all instances but those the user gave for validation.
        """
        if ensemble and len(self.folds.held_out) > 1:
            models = [model for _, fitted in chosen.parts for model in fitted.models]
            # Linear models average into one, which can be read.
            return type(models[0]).mean(models)
        if self.folds.n_final < self.folds.n:  # that is what the only fold was trained on
            return [fitted.models[0] for _, fitted in chosen.parts]
        prepared = self.learner.prepare(self.x, self.y)
        return [
            self.learner.train(self.x, loss, prepared=prepared, n_steps=fitted.n_steps)[0]
            for loss, fitted in chosen.parts
        ]
