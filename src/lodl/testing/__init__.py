"""Checks a user can run on parts of their own."""

from lodl.oracle import ProblemReport
from lodl.testing._check_family import check_family
from lodl.testing._check_learner import check_learner
from lodl.testing._check_problem import check_problem, is_affine

__all__ = ["ProblemReport", "check_family", "check_learner", "check_problem", "is_affine"]
