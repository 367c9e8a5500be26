"""Contract checks for custom problems, families and learners."""

from lodl.testing._check_family import check_family
from lodl.testing._check_learner import check_learner
from lodl.testing._check_problem import check_problem

__all__ = ["check_family", "check_learner", "check_problem"]
