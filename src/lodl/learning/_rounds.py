"""Train, ask again where the model now predicts, learn from all answers so far, train again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_predictions
from lodl._typing import Array, Context
from lodl.errors import InvalidInputError
from lodl.learning._enough_samples import warn_of_few_samples
from lodl.learning._held_out import HeldOutRegrets
from lodl.learning._sharing import check_sharing
from lodl.losses import DecisionHinges, DecisionRanking, Family, LearnedLoss, fit, fit_shared
from lodl.oracle import ObjectiveKind, Oracle, Samples
from lodl.problems import Problem
from lodl.samplers import AllPerturbed, AtPredictions, Sampler

Train: TypeAlias = Callable[[LearnedLoss], tuple[Any, npt.ArrayLike]]
"""Trains a model on a loss of all instances; returns it with its predictions for all of them."""

_DEFAULT_SAMPLER = AllPerturbed(scale="auto")
_NARROW = 0.5  # of the residuals' deviation: noise around predictions
_PATIENCE = 3  # rounds without a better model; on large problems the first two may be worse


@dataclass(frozen=True, eq=False, repr=False)
class Round:
    """A model, and what it was trained on.

    Attributes:
        model: What `train` returned.
        y_hat: Its predictions, shape (n, *label_shape).
        loss: The loss it was trained on.
        regret: Its regret on each instance, NaN where the oracle failed, shape (n,).
        n_calls: Oracle calls made until its training began, those of earlier rounds included.
        seconds: Time since the first call.
    """

    model: Any
    y_hat: Array
    loss: LearnedLoss
    regret: Array
    n_calls: int
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Rounds:
    """The models of all rounds, from samples at the labels alone to those of the last round.

    Attributes:
        rounds: One entry per trained model.
        validation: Numbers of the instances whose regret chooses.
        samples: All answers, those at the last model's predictions included.
    """

    rounds: tuple[Round, ...]
    validation: npt.NDArray[np.intp]
    samples: Samples

    def __repr__(self) -> str:
        return f"Rounds of {len(self.rounds)} models, the best is number {self._place_of_best}"

    def __str__(self) -> str:
        lines = [
            f"{'*' if i == self._place_of_best else ' '} round {i}: validation regret {score:.4g}, "
            f"{one.n_calls:,} solver calls, {one.seconds:.1f} s"
            for i, (one, score) in enumerate(zip(self.rounds, self.scores, strict=True))
        ]
        return "\n".join([*lines, "* is the best: `.best.model`, `.best.loss`, `.best.y_hat`"])

    @property
    def scores(self) -> Array:
        """Mean regret of each round's model on the validation instances, lower is better.

        A failed decision counts as the worst decision of the first round's model. Validation
        instances on which every model failed are left out.
        """
        regrets = HeldOutRegrets(self.validation)
        for one in self.rounds:
            regrets.add(one.regret)
        return np.array([regrets.of(one.regret).mean() for one in self.rounds])

    @property
    def best(self) -> Round:
        """The round with the best validation decisions, the earliest of equal ones."""
        return self.rounds[self._place_of_best]

    def top(self, n: int) -> tuple[Round, ...]:
        """Return the `n` rounds with the best validation decisions, the best first.

        On large problems the average of what the best three predict decides better than the best
        alone, which owes part of its score to chance: results/rounds.
        """
        places = np.argsort(self.scores, kind="stable")[: check_count("n", n)]
        return tuple(self.rounds[i] for i in places)

    @property
    def _place_of_best(self) -> int:
        return int(np.argmin(self.scores))


def learn_in_rounds(
    oracle: Problem | Oracle,
    y: npt.ArrayLike,
    train: Train,
    *,
    context: Context = None,
    family: Family | None = None,
    sampler: Sampler = _DEFAULT_SAMPLER,
    n_samples: int = 20,
    n_per_round: int = 4,
    n_rounds: int = 3,
    validation: npt.ArrayLike | None = None,
    max_calls: int | None = None,
    share: bool = False,
    random_state: int = 0,
) -> Rounds:
    """Learn a loss from samples around the labels, then in rounds where the model predicts.

    Each round trains a model on the loss of all answers so far, and asks the solver at its
    predictions: at the prediction itself, at the point beyond it where a hinge is violated most,
    and around it (`AtPredictions`). For decision families these are cutting planes: on large
    combinatorial problems samples around the labels miss the decisions that matter, and a few
    rounds make the whole difference. The loop ends after `n_rounds`, after three rounds without
    better validation decisions, or before a round that would exceed `max_calls`.

    With a store, a killed run can resume: it trains again, but asks for no answer twice as long as
    `train` gives the same predictions.

    Args:
        oracle: The problem whose solver is called; or a `lodl.Oracle` of it, which has workers, a
            store, a time limit and a policy for failures.
        y: Labels of training and validation instances, shape (n, *label_shape), or a frame with a
            column for each number of a label.
        train: Trains a model, in any framework, on a `LearnedLoss` of these instances in their
            order, and returns it with its predictions for all of them. Out-of-fold predictions for
            training instances are better than fitted ones, where the model can overfit.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        family: The parametric loss. None is `DecisionHinges` if the objective is affine in the
            label, and else `DecisionRanking`, which stands slopes that hold near the label only.
        sampler: Draws the candidates of the start, around labels.
        n_samples: Candidates per instance at the start.
        n_per_round: Candidates per instance and round, at least 1.
        n_rounds: The most rounds; 0 trains on the samples at the labels only.
        validation: Numbers of the instances by whose regret the best round is chosen, which `train`
            must not fit; None takes all of them.
        max_calls: Limit on solver calls, or None.
        share: Whether each instance also learns from the decisions of the others
            (`lodl.losses.fit_shared`). Only for a decision family, an objective that is affine in
            the label, and instances without a context.
        random_state: Random seed of the candidates.

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
        >>> rounds = lodl.learning.learn_in_rounds(domain.problem, y, train, n_rounds=1)
        >>> len(rounds.rounds), rounds.best.y_hat.shape
        (2, (30, 12))
    """
    oracle = Oracle.of(oracle)
    instances = oracle.instances(y, context)
    labels = instances.y
    chosen = _check_validation(validation, len(labels))
    check_count("n_rounds", n_rounds, minimum=0)
    check_count("n_per_round", n_per_round)
    _check_budget(max_calls, len(labels) * (n_samples + 2))
    slopes = family is None or family.uses_slopes
    kind = oracle.objective_kind(instances, sampler, slopes=slopes, random_state=random_state)
    is_affine = kind is ObjectiveKind.AFFINE
    family = family or (DecisionHinges() if is_affine else DecisionRanking())
    if share:
        check_sharing(family, instances.context, is_affine=is_affine)
    warn_of_few_samples(family, n_samples + n_rounds * n_per_round, labels[0].size)
    started = time.perf_counter()
    how: Any = {"slopes": family.uses_slopes, "random_state": random_state}
    samples = oracle.sample(instances, sampler, n_samples, **how)
    rounds: list[Round] = []
    while True:
        if share:
            loss = fit_shared(samples, family, at=rounds[-1].y_hat if rounds else None)
        else:
            loss = fit(samples, family, n_jobs=oracle.n_jobs, progress=oracle.settings.progress)
        model, y_hat = _trained(train(loss), labels)
        n_calls, seconds = samples.n_calls, time.perf_counter() - started
        # A further round is asked, and its model scored, at a call per instance.
        after = n_calls + len(labels) * (n_per_round + 1)
        is_last = len(rounds) == n_rounds or (max_calls is not None and after > max_calls)
        at_models = at_predictions(labels, y_hat, family)
        answers = oracle.sample(instances, at_models, 1 if is_last else n_per_round, **how)
        rounds.append(Round(model, y_hat, loss, answers.first_regrets(), n_calls, seconds))
        samples = samples.union(answers)
        done = Rounds(tuple(rounds), chosen, samples)
        if len(rounds) - 1 - done._place_of_best >= _PATIENCE or is_last:
            return done


def _trained(result: Any, y: Array) -> tuple[Any, Array]:
    """Return the model and the predictions that `train` returned."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise InvalidInputError(
            "`train` must return the model and its predictions for all instances, "
            f"`(model, y_hat)`, got {type(result).__name__}."
        )
    return result[0], check_predictions(result[1], y)


def at_predictions(y: Array, y_hat: Array, family: Family | None = None) -> AtPredictions:
    """Return the sampler of a round: its noise is half as wide as the model's residuals."""
    margin = getattr(family, "margin", 2.0)
    margin = margin if margin > 1 else 2.0  # beyond a margin of 1 there is no such point
    deviation = np.std(y_hat - y, axis=0)
    scale = _NARROW * np.where(deviation > 0, deviation, max(float(np.std(y_hat - y)), 1e-12))
    return AtPredictions(y_hat, scale=scale, margin=margin)


def _check_validation(validation: npt.ArrayLike | None, n: int) -> npt.NDArray[np.intp]:
    if validation is None:
        return np.arange(n)
    wanted = np.asarray(validation)
    try:
        rows = np.arange(n)[wanted] if wanted.size else wanted
    except IndexError as error:
        raise InvalidInputError(
            f"`validation` must hold numbers of instances from 0 to {n - 1}, or a mask: {error}."
        ) from error
    if not rows.size:
        raise InvalidInputError("`validation` must name at least one instance, got none.")
    return np.asarray(rows)


def _check_budget(max_calls: int | None, n_first: int) -> None:
    if max_calls is not None and check_count("max_calls", max_calls) < n_first:
        raise InvalidInputError(
            f"`max_calls` must be at least {n_first}, which the samples at the labels and one "
            f"look at the model's decisions take, got {max_calls}. Take fewer `n_samples`."
        )
