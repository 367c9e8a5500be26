"""The gain of `DecisionFocusedRegressor` over squared error, with its defaults, on every domain."""

from lodl_benchmarks.learner._run import plan, run
from lodl_benchmarks.learner._tables import tables
from lodl_benchmarks.learner._tasks import MODELS, TASKS, LearnerTask

__all__ = ["MODELS", "TASKS", "LearnerTask", "plan", "run", "tables"]
