"""Real tasks, and what a careful practitioner reaches on them."""

from lodl_benchmarks.real._pjm import PJM_ORIGINS, GenerationScheduling, pjm
from lodl_benchmarks.real._semo import SEMO_TASKS, semo
from lodl_benchmarks.real._split import Split

__all__ = ["PJM_ORIGINS", "SEMO_TASKS", "GenerationScheduling", "Split", "pjm", "semo"]
