"""Contract checks for custom problems, families and learners."""

import numpy.typing as npt

from lodl._typing import Context
from lodl.oracle import Oracle, ProblemReport
from lodl.problems import Problem
from lodl.testing._check_family import check_family
from lodl.testing._check_learner import check_learner

__all__ = ["check_family", "check_learner", "check_problem"]


def check_problem(
    problem: Problem | Oracle, y: npt.ArrayLike, *, context: Context = None, random_state: int = 0
) -> ProblemReport:
    """Check that a problem does what `lodl` relies on, in about fifty solver calls.

    Checked: the sense; that decisions which are arrays have one shape; that the objective is one
    finite number; that `solve_many` and `objective_many` agree with their single forms; `project`;
    that the decision under the true label is at least as good as under noise; that a decision does
    not depend on earlier calls; that `solve` and `objective` do not change their arguments; and
    that the problem can be sent to another process. A `ProblemError` has one line per finding.

    Args:
        problem: The problem to check, or an oracle, whose time limit and workers are then used.
        y: Labels, shape (n, *label_shape). The first few instances are used.
        context: One entry per instance, or None. From a frame, each row becomes a dict.
        random_state: Random seed for the noise.

    Example:
        >>> domain = lodl.domains.knapsack(sizes=(10, 1, 1))
        >>> report = lodl.testing.check_problem(domain.problem, domain.splits.train.y)
        >>> report.is_affine
        True
    """
    return Oracle.of(problem).check(y, context=context, random_state=random_state)
