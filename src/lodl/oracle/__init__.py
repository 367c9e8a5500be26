"""The oracle: a problem and a sampler become regrets."""

from lodl.oracle._evaluate import evaluate, open_samples
from lodl.oracle._fingerprint import fingerprint
from lodl.oracle._samples import OracleSamples

__all__ = [
    "OracleSamples",
    "evaluate",
    "fingerprint",
    "open_samples",
]
