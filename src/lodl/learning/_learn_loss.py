"""`learn_loss`: from a solver and labels to a learned loss."""

from __future__ import annotations

import numpy.typing as npt

from lodl._progress import show_logs
from lodl._typing import Context
from lodl.learning._defaults import AT_LABELS, Schedule, warn_of_few_samples
from lodl.learning._rounds import Evidence
from lodl.losses import Family, LearnedLoss
from lodl.oracle import Instances, Oracle
from lodl.problems import Problem
from lodl.samplers import Sampler

_HOLDOUT = 0.2  # share of the samples that measure a fit


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

    Draws points around each label, calls the solver at each of them, and fits one loss per instance
    to the regrets of its decisions. If the objective is affine in the label, there is no context
    and the family is made of decisions, each instance also learns from the decisions of all others
    (`lodl.losses.fit_shared`). If the objective is not affine, losses that are linear in their
    parameters are fitted to all instances together (`lodl.losses.fit_pooled`).

    To look at the answers, or to fit several families to them, do the two steps separately (slopes
    are for decision families):

        samples = lodl.Oracle(problem).sample(y, sampler, 50, slopes=True)
        losses = [lodl.losses.fit(samples, family) for family in families]

    Args:
        oracle: The problem whose solver is called, `n_samples + 1` times per instance, or a
            `lodl.Oracle` of it, which has workers, a store, a time limit and a policy for failures.
        y: Labels of training and validation instances, shape (n, *label_shape), or a frame with a
            column for each number of a label. Instances with keys come from `Oracle.instances`.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        family: The parametric loss. Defaults to `DecisionHinges` if the objective is affine in the
            label, which some twenty calls find out, and otherwise to
            `DirectedWeightedMAE(squares=True)`. For instances that share their decisions the
            default is `DecisionHinges(margin=1.0, squared_error=1.0)`.
        sampler: Draws the points.
        n_samples: Number of points per instance, with the defaults of `lodl.learning.Schedule`: 10
            if instances share their decisions, 6 or 16 with a context, 4 or 10 for losses that are
            pooled, 50 for others that are fitted to regrets. A family that is fitted to each
            instance should have at least three times as many samples as parameters; otherwise a
            warning is logged.
        random_state: Random seed.
        verbose: Whether to log progress to standard error.

    Example:
        >>> domain = lodl.domains.knapsack(sizes=(10, 1, 1))
        >>> loss = lodl.learn_loss(domain.problem, domain.splits.train.y)
        >>> loss
        LearnedLoss(DecisionHinges(...), n_instances=10, label_shape=(16,))
    """
    if verbose:
        show_logs()
    oracle = Oracle.of(oracle)
    instances = oracle.instances(y, context)
    families = None if family is None else [family]
    schedule = Schedule(n_samples=n_samples, sampler=sampler)
    evidence = Evidence.of(oracle, instances, families, random_state)
    family = evidence.situation.family() if family is None else family
    schedule = evidence.situation.schedule(schedule, [family])
    if not evidence.situation.is_pooled(family):
        warn_of_few_samples(family, schedule.n_samples or 0, instances.y[0].size)
    evidence.slopes = family.uses_slopes
    evidence.start(schedule, family)
    return evidence.learn(family, holdout=_HOLDOUT)
