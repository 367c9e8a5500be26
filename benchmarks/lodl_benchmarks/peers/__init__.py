"""Our learner beside 2-stage and PyEPO's methods: one solver, one loop, one treatment, one bill."""

from lodl_benchmarks.peers._draw import draw_peers, drawn_tasks
from lodl_benchmarks.peers._draw_ranks import draw_ranks
from lodl_benchmarks.peers._methods import METHODS, Method
from lodl_benchmarks.peers._page import write_report
from lodl_benchmarks.peers._run import SCALES, Scale, plan, run
from lodl_benchmarks.peers._tables import tables
from lodl_benchmarks.peers._tasks import TASKS, PeersTask

__all__ = [
    "METHODS",
    "SCALES",
    "TASKS",
    "Method",
    "PeersTask",
    "Scale",
    "draw_peers",
    "draw_ranks",
    "drawn_tasks",
    "plan",
    "run",
    "tables",
    "write_report",
]
