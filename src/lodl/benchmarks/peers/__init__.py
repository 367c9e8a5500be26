"""Our learner beside 2-stage and PyEPO's methods: one solver, one loop, one treatment, one bill.

Needs torch and PyEPO (`pip install 'lodl[torch,pyepo,report]'`, or the dependency group `peers`).
"""

from lodl._validation import require

require("torch", extra="torch")
require("pyepo", extra="pyepo")

from lodl.benchmarks.peers._draw import draw_peers, drawn_tasks  # noqa: E402
from lodl.benchmarks.peers._methods import METHODS, Method  # noqa: E402
from lodl.benchmarks.peers._page import write_report  # noqa: E402
from lodl.benchmarks.peers._run import Trial, plan, run  # noqa: E402
from lodl.benchmarks.peers._scales import SCALES, Scale  # noqa: E402
from lodl.benchmarks.peers._tables import tables  # noqa: E402
from lodl.benchmarks.peers._tasks import TASKS, Task  # noqa: E402

__all__ = [
    "METHODS",
    "SCALES",
    "TASKS",
    "Method",
    "Scale",
    "Task",
    "Trial",
    "draw_peers",
    "drawn_tasks",
    "plan",
    "run",
    "tables",
    "write_report",
]
