"""The real tasks by name, with the models that are fitted to each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lodl_benchmarks.real._demands import bikes, restaurant
from lodl_benchmarks.real._flights import flight_staff, reserve_crews
from lodl_benchmarks.real._models import make_model
from lodl_benchmarks.real._pjm import PJM_ORIGINS, pjm
from lodl_benchmarks.real._semo import SEMO_TASKS, semo
from lodl_benchmarks.real._split import Split

TIME_ORDER = 0
"""The seed of splits in time order; other seeds are of random splits."""


@dataclass(frozen=True, eq=False)
class RealTask:
    """A task that is read from a folder."""

    title: str  # its name in tables
    # Reads a split from a folder: `read(folder, model, seed, choosing)`.
    read: Callable[[Path, str, int, bool], Split]
    models: tuple[str, ...]  # the models that are fitted to it
    has_random_splits: bool = False  # whether there are splits of other seeds than `TIME_ORDER`


MODELS = {
    "ridge": "ridge",
    "lightgbm": "lightgbm",
    "item": "linear",
    "item and weight": "linear",
    "item lightgbm": "lightgbm",
}
"""The estimator of each model; "item" models have one row of features per item."""

_JOINT, _ITEM = ("ridge", "lightgbm"), ("item", "item lightgbm")


def estimator(model: str, split: Split) -> Any:
    """Return the estimator of a model, not fitted."""
    return make_model(MODELS[model], split.x_train)


def _pjm(until: str, folder: Path, _model: str, _seed: int, choosing: bool) -> Split:
    return pjm(folder / "pjm_load.csv.gz", until, choosing=choosing)


def _semo(task: str, folder: Path, model: str, seed: int, choosing: bool) -> Split:
    files = (folder / "semo_prices.csv.gz", folder / "semo_tasks.json")
    has_weights = task.startswith("knapsack") and model != "item"
    features: Any = "day" if model == "ridge" else "item and weight" if has_weights else "item"
    random_seed = None if seed == TIME_ORDER else seed
    return semo(*files, task, features=features, seed=random_seed, choosing=choosing)


def _in_folder(read: Callable[..., Split]) -> Callable[[Path, str, int, bool], Split]:
    return lambda folder, _model, _seed, choosing: read(folder, choosing=choosing)


TASKS = {
    **{
        f"pjm-{until[:7]}": RealTask(f"PJM, trained until {until}", partial(_pjm, until), _JOINT)
        for until in PJM_ORIGINS
    },
    **{
        f"semo-{name.replace(' ', '-')}": RealTask(
            f"SEMO, {name}",
            partial(_semo, name),
            ("item", "item and weight", "ridge", "item lightgbm")
            if name.startswith("knapsack")
            else ("item", "ridge", "item lightgbm"),
            has_random_splits=True,
        )
        for name in SEMO_TASKS
    },
    "restaurant": RealTask("restaurant", _in_folder(restaurant), _JOINT),
    "bikes": RealTask(
        "bike rentals",
        _in_folder(lambda folder, **how: bikes(folder / "Bikeshare.csv", **how)),
        _JOINT,
    ),
    "flight-staff": RealTask("staff for delays", _in_folder(flight_staff), _JOINT),
    "reserve-crews": RealTask("reserve crews", _in_folder(reserve_crews), _ITEM),
}
"""The tasks by name."""
