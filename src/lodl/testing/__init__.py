"""Checks a user can run on parts of their own."""

from lodl.testing._check_problem import check_problem

__all__ = ["check_problem"]
