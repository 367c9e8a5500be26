"""The one call that joins the parts: from a solver to a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from lodl._typing import Context
from lodl.learning._enough_samples import (
    N_SAMPLES_WITH_SLOPES,
    largest_family,
    warn_of_few_samples,
)
from lodl.learning._sharing import check_sharing
from lodl.losses import DecisionHinges, Family, LearnedLoss, fit, fit_shared
from lodl.losses._family import check_can_fit
from lodl.oracle import ObjectiveKind, Oracle
from lodl.problems import Problem
from lodl.samplers import AllPerturbed, Sampler
from lodl.samplers._sampler import check_sampler

_DEFAULT_SAMPLER = AllPerturbed(scale="auto")
_N_SAMPLES = 1000  # of a family that is fitted to regrets
_WITH_SHARED_DECISIONS = DecisionHinges(margin=1.0, squared_error=1.0)


def learn_loss(
    oracle: Problem | Oracle,
    y: npt.ArrayLike,
    *,
    context: Context = None,
    keys: Sequence[int | str] | None = None,
    family: Family | None = None,
    sampler: Sampler = _DEFAULT_SAMPLER,
    n_samples: int | None = None,
    share: bool = False,
    random_state: int = 0,
) -> LearnedLoss:
    """Learn a loss that reflects what prediction errors cost, by asking a solver.

    Draws predictions around each label, asks the solver what each would cost, and fits one loss per
    instance to the answers. To look at the answers, or to fit several families to them, do the two
    steps separately (slopes are for decision families):

        samples = lodl.Oracle(problem).sample(y, sampler, 1000, slopes=True)
        losses = [lodl.losses.fit(samples, family) for family in families]

    Args:
        oracle: The problem whose solver is called, `n_samples + 1` times per instance; or a
            `lodl.Oracle` of it, which has workers, a store, a time limit and a policy for failures.
        y: Labels of training and validation instances, shape (n, *label_shape), or a frame with a
            column for each number of a label.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        keys: Names of the instances, integers or strings. None identifies them by label and
            context.
        family: The parametric loss. None chooses one: `DecisionHinges` if the objective is affine
            in the label, which takes some twenty calls to find out, and otherwise the largest
            family fitted to regrets that the samples suffice for. If instances share their
            decisions, it is `DecisionHinges(margin=1.0, squared_error=1.0)`.
        sampler: Draws the predictions.
        n_samples: Number of predictions per instance; None is 20 for a decision family, else 1000.
            A fifth of them measures the fit. A family that is fitted should have at least three
            times as many samples as parameters; otherwise a warning is logged.
        share: Whether each instance also learns from the decisions of the others, for no further
            call (`lodl.losses.fit_shared`). Only for a decision family, an objective that is
            affine in the label, and instances without a context. Linear models trained on such a
            loss usually decide better (results/shared_decisions.md). No samples are held out to
            measure it.
        random_state: Random seed.

    Example:
        >>> domain = lodl.domains.knapsack(sizes=(10, 1, 1))
        >>> loss = lodl.learn_loss(domain.problem, domain.splits.train.y)
        >>> loss
        LearnedLoss(DecisionHinges(...), n_instances=10, label_shape=(16,))
    """
    oracle = Oracle.of(oracle)
    instances = oracle.instances(y, context, keys)
    dim = instances.y[0].size
    check_sampler(sampler)
    if family is not None:
        check_can_fit(family, dim)
    how: Any = {"slopes": family is None or family.uses_slopes, "random_state": random_state}
    is_affine = oracle.objective_kind(instances, sampler, **how) is ObjectiveKind.AFFINE
    if family is None:
        hinges = _WITH_SHARED_DECISIONS if share else DecisionHinges()
        is_hinges = is_affine or share
        family = hinges if is_hinges else largest_family(n_samples or _N_SAMPLES, dim)
    if share:
        check_sharing(family, instances.context, is_affine=is_affine)
    if n_samples is None:
        n_samples = N_SAMPLES_WITH_SLOPES if family.uses_slopes else _N_SAMPLES
    warn_of_few_samples(family, n_samples, dim)
    samples = oracle.sample(
        instances, sampler, n_samples, slopes=family.uses_slopes, random_state=random_state
    )
    if share:
        return fit_shared(samples, family)
    return fit(samples, family, n_jobs=oracle.n_jobs, progress=oracle.settings.progress)
