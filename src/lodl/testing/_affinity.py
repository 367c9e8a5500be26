"""Whether an objective is affine in the label."""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context, Decision
from lodl.problems import Problem
from lodl.problems._problem import check_instances
from lodl.testing._case import RELATIVE, Case, FaultError, cases

_LAST_DIGITS = 1e-12  # of an objective: what its own sum may lose
_N_LABELS = 15  # far from the mean, and as many others


def is_affine(
    problem: Problem, y: npt.ArrayLike, *, context: Context = None, seed: int = 0
) -> bool:
    """Return whether the objective is affine in the label, as far as fifteen decisions tell.

    Args:
        problem: The problem.
        y: Labels, shape (n, *label_shape); the solver is asked about the first few. Without a
            context, the objective is also compared at some thirty others.
        context: One entry per instance, or None.
        seed: Random seed for the noise.

    Example:
        >>> newsvendor = lodl.domains.newsvendor(sizes=(10, 1, 1))
        >>> lodl.testing.is_affine(newsvendor.problem, newsvendor.splits.train.y)
        False
    """
    labels, context = check_instances(problem, y, context)
    others = far_apart(labels) if context is None else labels[:0]
    try:
        return all(
            is_straight_everywhere(case, others) for case in cases(problem, labels, context, seed)
        )
    except FaultError:  # whoever samples will say where and why
        return False


def is_straight_everywhere(case: Case, others: Array) -> bool:
    """Return whether the objective of each decision is a straight line wherever it is tried.

    Args:
        case: An instance; its decisions are tried along random directions.
        others: Labels of other instances: two decisions are tried half-way to each of them, as a
            kink may lie where only few labels are.
    """
    decisions = [case.best, *case.decisions]
    around = [
        (z, case.y + delta, case.y - delta, case.y) for z in decisions for delta in case.noise
    ]
    between = [(z, case.y, other, (case.y + other) / 2) for z in decisions[:2] for other in others]
    return all(_is_straight(case, *one) for one in around + between)


def _is_straight(case: Case, z: Decision, ahead: Array, behind: Array, middle: Array) -> bool:
    """Return whether a decision is worth half-way what it is worth on average at both ends."""
    try:
        ends, here = [case.value(z, ahead), case.value(z, behind)], case.value(z, middle)
    except FaultError:
        return False
    change = max(abs(end - here) for end in ends)
    return abs(sum(ends) - 2 * here) <= RELATIVE * change + _LAST_DIGITS * abs(here)


def far_apart(y: Array) -> Array:
    """Return some labels: the furthest from the mean, and others spread evenly."""
    distance = np.abs(y - y.mean(axis=0)).reshape(len(y), -1).max(axis=1)
    order = np.argsort(-distance, kind="stable")
    chosen = np.concatenate([order[:_N_LABELS], order[:: -(-len(y) // _N_LABELS)]])
    return np.asarray(y[np.unique(chosen)])
