"""The founding table of SPO+ (Elmachtoub and Grigas), and our learner on the same draws."""

from lodl_benchmarks.spo._exact import predict, spo_plus_weights
from lodl_benchmarks.spo._methods import METHODS
from lodl_benchmarks.spo._published import Figure, Published, read_published
from lodl_benchmarks.spo._run import plan, run
from lodl_benchmarks.spo._tables import tables, verdict
from lodl_benchmarks.spo._tasks import CELLS, SCALES, Cell, Scale, founding_path

__all__ = [
    "CELLS",
    "METHODS",
    "SCALES",
    "Cell",
    "Figure",
    "Published",
    "Scale",
    "founding_path",
    "plan",
    "predict",
    "read_published",
    "run",
    "spo_plus_weights",
    "tables",
    "verdict",
]
