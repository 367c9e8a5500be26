"""The oracle: every solver call, its answers, and the file that keeps them."""

from lodl.oracle._check import ProblemReport
from lodl.oracle._first_look import ObjectiveKind
from lodl.oracle._instances import Instances
from lodl.oracle._oracle import Oracle
from lodl.oracle._pool import DecisionPool
from lodl.oracle._samples import Answers, Samples
from lodl.oracle._store import Progress

__all__ = [
    "Answers",
    "DecisionPool",
    "Instances",
    "ObjectiveKind",
    "Oracle",
    "ProblemReport",
    "Progress",
    "Samples",
]
