"""The oracle: a problem and a sampler become answers."""

from lodl.oracle._answers import Answers
from lodl.oracle._check import ProblemReport
from lodl.oracle._oracle import Oracle
from lodl.oracle._samples import Samples
from lodl.oracle._store import Progress

__all__ = [
    "Answers",
    "Oracle",
    "ProblemReport",
    "Progress",
    "Samples",
]
