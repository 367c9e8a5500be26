"""The methods, all through the same training loop."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.domains import Domain
from lodl.evaluation import regret
from lodl.learning import DecisionFocusedRegressor, Rounds, Schedule, learn_in_rounds
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    Family,
    LearnedLoss,
    fit,
)
from lodl.oracle import ObjectiveKind, Oracle, Samples
from lodl.problems import LinearProblem
from lodl.training.torch import LearnedLossModule
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic
from lodl_benchmarks.rounds._loop import Loop, Predictions, average
from lodl_benchmarks.rounds._tasks import RoundsTask
from lodl_benchmarks.runner import squared_error
from lodl_benchmarks.surrogates import SPOPlus

_N_PER_ROUND = 4
_TEMPERATURES = (0.1, 0.3, 1.0)


@dataclass(frozen=True, eq=False)
class Run:
    """Inputs of a method."""

    task: RoundsTask  # the task
    domain: Domain  # its data
    seed: int  # the seed of the data, and of the points
    answers: Path  # folder that keeps the oracle's answers; the methods of a task and seed share it


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions and what they cost."""

    y_hat: Predictions  # the predictions, for all splits
    oracle_calls: int = 0  # calls of the solver, those at labels and those that choose included
    n_looks: int = 0  # calls of the solver at validation instances to stop in time, counted apart
    seconds_asking: float = 0.0  # time spent in the solver before training
    seconds_training: float = 0.0  # time spent in training, with all learning rates
    # What else is worth keeping in a row, in JSON values.
    details: Mapping[str, Any] = field(default_factory=dict)


class Method(ABC):
    """A way to train models for a task."""

    @abstractmethod
    def run(self, run: Run) -> Outcome:
        """Return predictions, chosen without a look at test labels."""


@dataclass(frozen=True)
class TwoStage(Method):
    """Squared error, stopped on the validation instances' squared error."""

    def run(self, run: Run) -> Outcome:
        splits, loop = run.domain.splits, Loop(run.task, run.domain)
        y_hat = loop.fit(squared_error(splits.train.y), squared_error(splits.validation.y))
        return Outcome(y_hat, seconds_training=loop.seconds)


@dataclass(frozen=True)
class WithSolver(Method):
    """SPO+, the solver in the training loop. Calls are counted per model, on average."""

    def run(self, run: Run) -> Outcome:
        splits, problem = run.domain.splits, run.domain.problem
        assert isinstance(problem, LinearProblem)
        loop = Loop(run.task, run.domain)
        criterion, validation = (
            SPOPlus(problem, part.y, context=part.context)
            for part in (splits.train, splits.validation)
        )
        y_hat = loop.fit(criterion, validation)
        steps, training = loop.last_steps, run.task.training
        batch = training.batch_size or len(splits.train.y)
        n_looks = (steps // training.validate_every + 1) * len(splits.validation.y)
        return Outcome(
            y_hat,
            oracle_calls=round(len(splits.train.y) + float(np.mean(steps * batch))),
            n_looks=round(len(splits.validation.y) + float(np.mean(n_looks))),
            seconds_training=loop.seconds,
            details={"calls_of_all_models": criterion.n_calls + validation.n_calls},
        )


@dataclass(frozen=True)
class AtLabels(Method):
    """A loss learned from samples around the labels."""

    family: Family  # the family of the loss
    n_samples: int | None = None  # points per instance. Defaults to the task's number.

    def run(self, run: Run) -> Outcome:
        loop = Loop(run.task, run.domain)
        samples = _ask(run, self.family, self.n_samples or run.task.n_samples)
        y_hat = _train(loop, fit(samples, self.family, progress=False))
        return Outcome(y_hat, samples.n_calls, 0, samples.seconds, loop.seconds)


class _OwnDecisions(Oracle):
    """An oracle of instances that do not share their decisions, as methods of the rows did."""

    def objective_kind(self, *_: Any, **__: Any) -> ObjectiveKind:
        return ObjectiveKind.SMOOTH


@dataclass(frozen=True)
class InRounds(Method):
    """A loss learned in rounds: around labels, then where the model predicts.

    Where there are several families, the one whose model at labels has the best validation
    decisions goes into rounds; that takes one call per family and validation instance.
    """

    families: tuple[Family, ...]  # the families to choose from

    def run(self, run: Run) -> Outcome:
        loop, part = Loop(run.task, run.domain), run.domain.splits.train_and_validation
        n_train, n = len(run.domain.splits.train.y), len(part.y)
        family, n_choosing = self._chosen(run, loop)

        def train(loss: LearnedLoss) -> tuple[Predictions, Array]:
            y_hat = _train(loop, loss)
            return y_hat, np.concatenate([y_hat.train, y_hat.validation])

        rounds = learn_in_rounds(
            _OwnDecisions(run.domain.problem, store=run.answers, progress=False),
            part.y,
            train,
            context=part.context,
            family=family,
            schedule=Schedule(
                run.task.n_samples, run.task.n_rounds, _N_PER_ROUND, sampler=run.task.sampler
            ),
            validation=np.arange(n_train, n),
            random_state=run.seed,
        )
        is_scored = len(rounds.rounds) == run.task.n_rounds + 1  # the last model, by its own call
        return Outcome(
            self._kept(rounds),
            rounds.samples.n_calls + n * is_scored + n_choosing,
            0,
            rounds.samples.seconds,
            loop.seconds,
            {
                "family": repr(family),
                "validation_by_round": rounds.scores.tolist(),
                "calls_by_round": [
                    n * (1 + run.task.n_samples + k * _N_PER_ROUND) + n_choosing
                    for k in range(len(rounds.rounds))
                ],
            },
        )

    def _kept(self, rounds: Rounds) -> Predictions:
        """Return the predictions to keep, chosen by validation decisions."""
        best: Predictions = rounds.best.model
        return best

    def _chosen(self, run: Run, loop: Loop) -> tuple[Family, int]:
        """Return the family with the best validation decisions, and the calls that took."""
        if len(self.families) == 1:
            return self.families[0], 0
        part, scores = run.domain.splits.validation, []
        for family in self.families:
            samples = _ask(run, family, run.task.n_samples)
            y_hat = _train(loop, fit(samples, family, progress=False)).validation
            found = regret(run.domain.problem, y_hat, part.y, context=part.context)
            scores.append(float(found.mean()))
        return self.families[int(np.argmin(scores))], len(self.families) * len(part.y)


@dataclass(frozen=True)
class InAveragedRounds(InRounds):
    """The same, but the predictions of the best rounds are averaged."""

    n_averaged: int = 3  # how many rounds

    def _kept(self, rounds: Rounds) -> Predictions:
        # On large problems the average of the best three decides better than the best alone.
        best = np.argsort(rounds.scores, kind="stable")[: self.n_averaged]
        return average([rounds.rounds[i].model for i in best])


@dataclass(frozen=True)
class WithLearner(Method):
    """The learner with its defaults, on training and validation instances together.

    Folds, losses, rounds and the training of linear models are its own, so it shares the data with
    the other methods, and not the loop. All its calls are counted, those that choose included.
    """

    def run(self, run: Run) -> Outcome:
        splits, part = run.domain.splits, run.domain.splits.train_and_validation
        model = DecisionFocusedRegressor(run.domain.problem, random_state=run.seed)
        model.fit(part.x, part.y, context=part.context)
        train, validation = np.split(model._out_of_fold, [len(splits.train.y)])
        return Outcome(
            Predictions(train, validation, model.predict(splits.test.x)),
            oracle_calls=model.result_.trials[-1].n_calls,
            seconds_training=model.result_.seconds,
            details={"chosen": model.result_.selected_name},
        )


METHODS: Mapping[str, Method] = {
    "2-stage": TwoStage(),
    "SPO+": WithSolver(),
    "ConvexDirectedQuadratic, 50": AtLabels(ConvexDirectedQuadratic(), 50),
    "ConvexDirectedQuadratic, 1000": AtLabels(ConvexDirectedQuadratic(), 1000),
    "DecisionHinges, labels only": AtLabels(DecisionHinges()),
    "DecisionHinges, rounds": InRounds((DecisionHinges(),)),
    "DecisionHinges, best 3 rounds": InAveragedRounds((DecisionHinges(),)),
    "DecisionRanking, rounds": InRounds(
        tuple(replace(DecisionRanking(), temperature=t) for t in _TEMPERATURES)
    ),
    "DecisionFocusedRegressor": WithLearner(),
}
"""The methods by name."""


def _ask(run: Run, family: Family, n_samples: int) -> Samples:
    part = run.domain.splits.train_and_validation
    return Oracle(run.domain.problem, store=run.answers, progress=False).sample(
        part.y,
        run.task.sampler,
        n_samples,
        context=part.context,
        random_state=run.seed,
        slopes=family.uses_slopes,
    )


def _train(loop: Loop, loss: LearnedLoss) -> Predictions:
    n_train = len(loop.domain.splits.train.y)
    criterion, validation = (
        LearnedLossModule(loss.subset(rows), reduction="none")
        for rows in (np.arange(n_train), np.arange(n_train, loss.n_instances))
    )
    return loop.fit(criterion, validation)
