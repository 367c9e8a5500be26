"""Decision quality against solver calls: decision families, rounds, SPO+, 2-stage."""

from lodl_benchmarks.rounds._methods import METHODS, Method, Outcome, Run
from lodl_benchmarks.rounds._run import plan, run
from lodl_benchmarks.rounds._tables import tables
from lodl_benchmarks.rounds._tasks import TASKS, RoundsTask

__all__ = ["METHODS", "TASKS", "Method", "Outcome", "RoundsTask", "Run", "plan", "run", "tables"]
