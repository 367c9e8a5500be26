"""Our learner beside 2-stage and PyEPO's methods: one solver, one loop, one treatment, one bill."""

from lodl_benchmarks.peers._draw import draw_bill
from lodl_benchmarks.peers._draw_ranks import draw_ranks
from lodl_benchmarks.peers._methods import METHODS, OURS, Method
from lodl_benchmarks.peers._page import write_pictures, write_report
from lodl_benchmarks.peers._run import SCALES, Scale, plan, run
from lodl_benchmarks.peers._tables import tables
from lodl_benchmarks.peers._tasks import TASKS, PeersTask

__all__ = [
    "METHODS",
    "OURS",
    "SCALES",
    "TASKS",
    "Method",
    "PeersTask",
    "Scale",
    "draw_bill",
    "draw_ranks",
    "plan",
    "run",
    "tables",
    "write_pictures",
    "write_report",
]
