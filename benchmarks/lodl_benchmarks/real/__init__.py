"""Real tasks, and what a careful practitioner reaches on them."""

from lodl_benchmarks.real._demands import bikes, restaurant
from lodl_benchmarks.real._flights import ReserveCrews, flight_staff, reserve_crews
from lodl_benchmarks.real._job_scheduling import Job, JobScheduling
from lodl_benchmarks.real._pjm import PJM_ORIGINS, GenerationScheduling, pjm
from lodl_benchmarks.real._published import published_tables
from lodl_benchmarks.real._run import METHODS, RealTrial, plan, run, stored_rows
from lodl_benchmarks.real._semo import SEMO_TASKS, semo
from lodl_benchmarks.real._split import Split
from lodl_benchmarks.real._staffing import Staffing
from lodl_benchmarks.real._tables import tables
from lodl_benchmarks.real._tasks import MODELS, TASKS, RealTask

__all__ = [
    "METHODS",
    "MODELS",
    "PJM_ORIGINS",
    "SEMO_TASKS",
    "TASKS",
    "GenerationScheduling",
    "Job",
    "JobScheduling",
    "RealTask",
    "RealTrial",
    "ReserveCrews",
    "Split",
    "Staffing",
    "bikes",
    "flight_staff",
    "pjm",
    "plan",
    "published_tables",
    "reserve_crews",
    "restaurant",
    "run",
    "semo",
    "stored_rows",
    "tables",
]
