"""The oracle: a problem and a sampler become regrets."""

from lodl.oracle._evaluate import evaluate, open_samples
from lodl.oracle._fingerprint import fingerprint
from lodl.oracle._samples import InstanceSamples, OracleSamples

__all__ = [
    "InstanceSamples",
    "OracleSamples",
    "evaluate",
    "fingerprint",
    "open_samples",
]
