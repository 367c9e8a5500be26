"""SEMO electricity prices: a knapsack of half-hours, and jobs on machines."""

import json
from pathlib import Path
from typing import Literal

import numpy as np

from lodl._typing import Array
from lodl.domains import Knapsack
from lodl.errors import DataError, InvalidInputError
from lodl.problems import Problem
from lodl_benchmarks.real._job_scheduling import Job, JobScheduling
from lodl_benchmarks.real._split import Split, dates, read_table, standardised

N_PERIODS = 48
_N_TEST = 139  # days of the published test set
_RANGES = {
    "holiday": (0, 1),
    "day_of_week": (0, 6),
    "week_of_year": (1, 53),
    "month": (1, 12),
    "forecast_wind": (0, np.inf),
    "forecast_load": (0, np.inf),
    "forecast_price": (-np.inf, np.inf),
    "co2_intensity": (0, np.inf),
}
_LABELS = {"price": (-np.inf, np.inf), "knapsack_value": (-np.inf, np.inf)}

Features = Literal["item", "item and weight", "day"]
"""What a model of SEMO prices sees: see `semo`."""

SEMO_TASKS = ("knapsack 60", "knapsack 120", "knapsack 180", "scheduling 1", "scheduling 2")


def semo(
    days: str | Path,
    tasks: str | Path,
    task: str,
    *,
    features: Features = "item",
    seed: int | None = None,
    choosing: bool = False,
) -> Split:
    """Decisions by half-hourly prices of the Irish market, 789 days (Mandi et al., 2020).

    An instance is a day, its label has a number for each of 48 half-hours. Knapsack: choose
    half-hours of the most value, each with a weight of 3, 5 or 7 that is the same every day.
    Scheduling: run the jobs of the file's `load1` or `load2` when power is cheap (`JobScheduling`;
    like the published comparison, without the costs of machines).
    Features are the eight published ones, standardised by the training days.

    Args:
        days: CSV with a row per half-hour: `day`, `period` (0 to 47), the eight features, and the
            labels `price` and `knapsack_value`.
        tasks: JSON file with the weights of the knapsack and the jobs and machines of schedules.
        task: One of `SEMO_TASKS`.
        features: "item", shape (n, 48, 8); "item and weight", shape (n, 48, 17), with the weight of
            the half-hour and its products with the other features; or "day", shape (n, 384), the
            whole day for every label.
        seed: Seed of a random split, as published, into 650 days to train on and 139 to test on;
            None for time order.
        choosing: Whether to split the first 650 days only, into 511 and 139: no choosing split has
            a test day of the time order. Test days of random splits are not kept apart.
    """
    x, labels, n_days = _read(days)
    if task not in SEMO_TASKS:
        raise InvalidInputError(f"`task` must be one of {', '.join(SEMO_TASKS)}, got {task!r}.")
    problem, weights = _problem(tasks, task)
    y = labels["price" if weights is None else "knapsack_value"]
    order = np.arange(n_days - _N_TEST if choosing else n_days)
    if seed is not None:
        order = np.random.default_rng(seed).permutation(order)
    train, test = order[:-_N_TEST], order[-_N_TEST:]
    x_train, x_test = (_seen(part, features, weights) for part in standardised(x[train], x[test]))
    return Split(problem, x_train, y[train], x_test, y[test], is_ordered=seed is None)


def _problem(path: str | Path, task: str) -> tuple[Problem, Array | None]:
    """Return the problem of a task and, for knapsacks, its weights."""
    kind, number = task.split()
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if kind == "knapsack":
            weights = np.array(content["knapsack"]["weights"], dtype=np.float64)
            return Knapsack((float(number),), (tuple(weights.tolist()),)), weights
        load = content["scheduling"][f"load{number}"]
        jobs = tuple(Job(**job) for job in load["tasks"])
        return JobScheduling(jobs, tuple(m["capacity"] for m in load["machines"])), None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise DataError(f"{path} does not describe the task {task!r}: {error!r}") from error


def _seen(x: Array, features: Features, weights: Array | None) -> Array:
    if features == "day":
        return x.reshape(len(x), -1)
    if features == "item":
        return x
    if weights is None:
        raise InvalidInputError("Jobs have no weights: `features` must be 'item' or 'day'.")
    weight = np.broadcast_to(weights[:, np.newaxis] / weights.mean(), (*x.shape[:2], 1))
    return np.concatenate([x, weight, x * weight], axis=2)


def _read(path: str | Path) -> tuple[Array, dict[str, Array], int]:
    """Return features (n, 48, 8), labels (n, 48) by name, and the number of days."""
    table = read_table(path, {"period": (0, N_PERIODS - 1), **_RANGES, **_LABELS}, ["day"])
    dates(table, "day", path)
    n_days = len(table) // N_PERIODS
    periods = np.tile(np.arange(N_PERIODS), n_days)
    if n_days <= 2 * _N_TEST or not np.array_equal(table["period"], periods):
        raise DataError(
            f"{path} must have more than {2 * _N_TEST} days, and for each day a row for each of "
            f"the periods 0 to {N_PERIODS - 1}, in order."
        )
    x = table[list(_RANGES)].to_numpy(np.float64).reshape(n_days, N_PERIODS, -1)
    labels = {name: table[name].to_numpy(np.float64).reshape(n_days, -1) for name in _LABELS}
    return x, labels, n_days
