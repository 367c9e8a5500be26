"""`learn_loss` and `learn_in_rounds`: from a solver and labels to a learned loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_predictions
from lodl._progress import shown_logs
from lodl._typing import Array, Context, Index
from lodl.errors import InvalidInputError
from lodl.learning._defaults import AT_LABELS, Schedule, check_families, warn_of_few_samples
from lodl.learning._rounds import Evidence, rounds
from lodl.learning._search import Contender, Scoreboard
from lodl.losses import Family, LearnedLoss
from lodl.oracle import Instances, Oracle, Samples
from lodl.problems import Problem
from lodl.samplers import Sampler

_HOLDOUT = 0.2  # share of the samples that measure a fit
_PATIENCE = 3  # rounds without a better model; on large problems the first two may be worse


def learn_loss(
    oracle: Problem | Oracle,
    y: npt.ArrayLike | Instances,
    *,
    context: Context = None,
    family: Family | None = None,
    sampler: Sampler = AT_LABELS,
    n_samples: int | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> LearnedLoss:
    """Learn from a solver a loss that reflects the cost of prediction errors.

    Calls the solver at points around each label, and fits one loss per instance to the regrets of
    its decisions. If the objective is affine in the label, decision families also learn from the
    decisions of all other instances, or what a context allows of them (`lodl.losses.fit_shared`).
    If it is not affine, losses linear in their parameters are pooled (`lodl.losses.fit_pooled`).

    To look at the answers, or to fit several families, do the two steps separately:

        samples = lodl.Oracle(problem).sample(y, sampler, 50, slopes=True)
        losses = [lodl.losses.fit(samples, family) for family in families]

    Args:
        oracle: The problem whose solver is called, `n_samples + 1` times per instance, or a
            `lodl.Oracle` of it, which has workers, a store, a time limit and a policy for failures.
        y: Labels of training and validation instances, shape (n, *label_shape), a frame with a
            column for each number of a label, or instances with keys of `Oracle.instances`.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        family: The parametric loss. Defaults to `DirectedWeightedMAE(squares=True)` if the
            objective is not affine in the label, which some twenty calls find out, else to
            `DecisionHinges`, of shared decisions `DecisionHinges(margin=1.0, squared_error=1.0)`.
        sampler: Draws the points.
        n_samples: Number of points per instance. `lodl.learning.Schedule` has the defaults.
        random_state: Random seed.
        verbose: Whether to log progress to standard error.

    Example:
        >>> domain = lodl.domains.knapsack(sizes=(10, 1, 1))
        >>> loss = lodl.learn_loss(domain.problem, domain.splits.train.y)
        >>> loss
        LearnedLoss(DecisionHinges(...), n_instances=10, label_shape=(16,))
    """
    oracle = Oracle.of(oracle)
    instances = oracle.instances(y, context)
    schedule = Schedule(n_samples, n_rounds=0, sampler=sampler)
    with shown_logs(verbose):
        evidence = _evidence(oracle, instances, family, schedule, random_state)
        return evidence.learn(evidence.families[0], holdout=_HOLDOUT)


def _evidence(
    oracle: Oracle, instances: Instances, family: Family | None, schedule: Schedule, seed: int
) -> Evidence:
    """Return the solver's answers about points around labels, to learn one family from."""
    families, dim = None if family is None else [family], instances.y[0].size
    check_families(families, dim)
    how: Any = {"default": lambda facts: (facts.family(),), "has_baseline": False}
    evidence = Evidence.of(oracle, instances, families, schedule, seed, **how)
    evidence.schedule = plan = evidence.schedule.within_budget(len(instances.y), lambda _: 1)
    if not evidence.situation.is_pooled(evidence.families[0]):
        n_samples = (plan.n_samples or 0) + (plan.n_rounds or 0) * (plan.n_per_round or 1)
        warn_of_few_samples(evidence.families[0], n_samples, dim)
    evidence.start()
    return evidence


@dataclass(frozen=True, eq=False, repr=False)
class Rounds:
    """The models of all rounds, from samples at the labels alone to all answers."""

    #: One entry per trained model, with its `model`, `y_hat`, `loss`, the `regret` of each instance
    #: (NaN if the solver failed), and the `n_calls` and `seconds` so far.
    rounds: tuple[Contender, ...]
    validation: Index  #: Positions of the instances whose regret selects.
    samples: Samples  #: All answers, those at predictions included.

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
        """Mean validation regret of each round; a failed decision is the first model's worst."""
        board = Scoreboard(self.validation)
        for entry in self.rounds:
            board.add(entry)
        return np.array([board.mean(entry) for entry in self.rounds])

    @property
    def best(self) -> Contender:
        """The round with the best validation decisions, the earliest of equal ones."""
        return self.rounds[self._best]

    @property
    def _best(self) -> int:
        return int(np.argmin(self.scores))


def learn_in_rounds(
    oracle: Problem | Oracle,
    y: npt.ArrayLike | Instances,
    train: Callable[[LearnedLoss], tuple[Any, npt.ArrayLike]],
    *,
    context: Context = None,
    family: Family | None = None,
    schedule: Schedule = Schedule(),  # noqa: B008 - it is frozen
    validation: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> Rounds:
    """Learn a loss from samples around the labels, then in rounds where the model predicts.

    Each round trains a model on the loss of all answers so far, and calls the solver where it
    predicts (`AtPredictions`). For decision families these are cutting planes: on large problems
    samples around the labels miss the decisions that matter, and a few rounds make the whole
    difference. The loop ends after the rounds of the schedule, or after three without better
    validation decisions. Print the result to see scores and costs, and take `.best.model` for use.

    With a store, a killed run resumes: it repeats no call if `train` gives the same predictions.

    Args:
        oracle: The problem or `lodl.Oracle` whose solver is called, as in `learn_loss`.
        y: Labels of training and validation instances, as in `learn_loss`.
        train: Trains a model, in any framework, on a `LearnedLoss` of these instances in their
            order, and returns it with its predictions for all of them, out-of-fold ones for
            training instances if the model can overfit.
        context: One entry per instance, or None.
        family: The parametric loss. Defaults to that of `learn_loss`.
        schedule: The numbers of samples and rounds, and the limit on solver calls.
        validation: Positions of the instances whose regret selects the best round, and which
            `train` must not fit. Defaults to all of them.
        random_state: Random seed of the points.

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

    def trained(loss: LearnedLoss) -> tuple[Any, Array]:
        returned = train(loss)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise InvalidInputError(
                "`train` must return the model and its predictions for all instances, "
                f"`(model, y_hat)`, got {type(returned).__name__}."
            )
        return returned[0], check_predictions(returned[1], instances.y)

    selecting = _check_validation(validation, len(instances.y))
    evidence = _evidence(oracle, instances, family, schedule, random_state)
    done = Rounds((), selecting, evidence.samples)
    for entry in rounds(evidence, trained, evidence.scored):
        done = replace(done, rounds=(*done.rounds, entry), samples=evidence.samples)
        if len(done.rounds) - 1 - done._best >= _PATIENCE:
            break
    return done


def _check_validation(validation: npt.ArrayLike | None, n: int) -> Index:
    if validation is None:
        return np.arange(n)
    wanted = np.asarray(validation)
    try:
        rows = np.atleast_1d(np.arange(n)[wanted] if wanted.size else wanted)
    except IndexError as error:
        expected = f"must hold positions of instances from 0 to {n - 1}, or a mask"
        raise InvalidInputError(f"`validation` {expected}: {error}.") from error
    if not rows.size:
        raise InvalidInputError("`validation` must name at least one instance, got none.")
    return rows
