"""The oracle: a problem and a sampler become answers."""

from lodl.oracle._check import ProblemReport
from lodl.oracle._objective_kind import ObjectiveKind
from lodl.oracle._oracle import Oracle
from lodl.oracle._samples import Samples
from lodl.oracle._store import Progress

__all__ = [
    "ObjectiveKind",
    "Oracle",
    "ProblemReport",
    "Progress",
    "Samples",
]
