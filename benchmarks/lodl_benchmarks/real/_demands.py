"""Tasks with demands: a restaurant's dishes and a bike rental's staff.

The tables come with packages on PyPI. Costs, capacities and limits are ours: no table has them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lodl._typing import Array
from lodl.domains import Newsvendor
from lodl.errors import DataError
from lodl_benchmarks.real._split import Split, dates, in_order, read_table, standardised
from lodl_benchmarks.real._staffing import Staffing

_ANY = (-np.inf, np.inf)
_POSITIVE = (0.0, np.inf)
_DAY, _WEEK, _MONTH = 1, 7, 28  # days

# Of each dish: cost of preparing a portion, of a missing one (the margin is lost), and what a
# portion that is left over saves tomorrow. Fish does not keep.
_DISHES = {
    "calamari": (2.0, 7.0, 0.0),
    "fish": (3.0, 10.0, 0.0),
    "shrimp": (2.5, 9.5, 0.0),
    "chicken": (2.0, 8.0, 1.0),
    "koefte": (2.5, 8.5, 1.5),
    "lamb": (3.5, 11.5, 1.5),
    "steak": (3.0, 12.0, 1.5),
}
_KITCHEN = 1.1  # capacity, over what the mean demand takes
_WEATHER = ("wind", "clouds", "rain", "sunshine", "temperature")


def restaurant(folder: str | Path, *, choosing: bool = False) -> Split:
    """Portions of seven dishes to prepare, within the kitchen's capacity.

    Demands of 760 days at Yaz, a restaurant in Stuttgart: `yaz_data.csv` and `yaz_target.csv` of
    the package ddop. The problem is `Newsvendor`; the cost of preparing a portion is the time it
    takes in the kitchen, whose capacity is 1.1 times what the mean demand takes. Features: weekday,
    season, holiday, weather (measured, not forecast), demands of the day before and the week
    before, and means of four weeks. Closed days are dropped.

    Args:
        folder: Folder of both files.
        choosing: Whether to drop the test days and to split the training days in the same way.
    """
    x_path, y_path = (Path(folder, f"yaz_{name}.csv") for name in ("data", "target"))
    flags = dict.fromkeys(("is_holiday", "is_closed"), (0.0, 1.0))
    table = read_table(x_path, {**flags, **dict.fromkeys(_WEATHER, _ANY)}, ["date"])
    demand = read_table(y_path, dict.fromkeys(_DISHES, _POSITIVE))
    if len(table) != len(demand):
        raise DataError(f"{x_path} and {y_path} must have as many rows as each other.")
    is_open = table["is_closed"].to_numpy() == 0
    days = dates(table, "date", x_path)[is_open]
    y = demand[is_open].to_numpy(np.float64)
    known = table.loc[is_open, ["is_holiday", *_WEATHER]].to_numpy(np.float64)
    mean = np.lib.stride_tricks.sliding_window_view(y, _MONTH, axis=0).mean(axis=2)[:-1]
    lags = [y[_MONTH - lag : len(y) - lag] for lag in (_DAY, _WEEK)]
    x = np.hstack([_calendar(days)[_MONTH:], known[_MONTH:], *lags, mean])
    train, test = in_order(len(x), choosing)
    y = y[_MONTH:]
    price, missing, left_over = (np.array(values) for values in zip(*_DISHES.values(), strict=True))
    capacity = _KITCHEN * float(price @ y[train].mean(axis=0))
    problem = Newsvendor(capacity, *(tuple(v.tolist()) for v in (price, missing, left_over)))
    levels = (missing - price) / (missing - left_over)
    return Split(problem, *_arrays(x, y, train, test), levels=levels)


def bikes(path: str | Path, *, choosing: bool = False) -> Split:
    """Staff for six shifts of bike rentals, by the rentals of 24 hours.

    Rentals of 358 days of 2011 in Washington: `Bikeshare.csv` of the package ISLP. An hour without
    a row has no rentals. A person serves 40 rentals an hour and costs 80 for a shift of four hours,
    a rental that is not served costs 2, and there are at most 27 people for the shifts of a day.
    Features: season, weekday, holiday, working day, weather of each three hours (measured, not
    forecast), rentals of the day before and of the week before.

    Args:
        path: The file, with a row per hour.
        choosing: Whether to drop the test days and to split the training days in the same way.
    """
    weather = ("temp", "hum", "windspeed")
    ranges: dict[str, Any] = {"day": (1, 366), "hr": (0, 23), "weekday": (0, 6)}
    ranges |= dict.fromkeys(("holiday", "workingday", *weather), (0, 1)) | {"bikers": _POSITIVE}
    table = read_table(path, ranges, ["weathersit"])
    if table.duplicated(["day", "hr"]).any() or not table["day"].is_monotonic_increasing:
        raise DataError(f"{path}: rows must be in the order of `day`, and an hour must have one.")
    table["wet"] = (~table["weathersit"].isin(["clear", "cloudy/misty"])).astype(float)
    n_days = int(table["day"].max())
    hours = pd.MultiIndex.from_product([range(1, n_days + 1), range(24)])
    by_hour = table.set_index(["day", "hr"]).reindex(hours)
    y = by_hour["bikers"].fillna(0).to_numpy(np.float64).reshape(-1, 24)
    filled = by_hour[["weekday", "holiday", "workingday", *weather, "wet"]].ffill().bfill()
    hourly = filled.to_numpy(np.float64).reshape(n_days, 8, 3, -1).mean(axis=2)
    season = 2 * np.pi * np.arange(n_days) / 365
    calendar = [np.cos(season), np.sin(season), *hourly[:, 0, 1:3].T]
    known = [np.column_stack(calendar), np.eye(7)[hourly[:, 0, 0].astype(int)]]
    known += [hourly[:, :, 3:].reshape(n_days, -1)]
    lags = [y[_WEEK - lag : n_days - lag] for lag in (_DAY, _WEEK)]
    x, y = np.hstack([np.hstack(known)[_WEEK:], *lags]), y[_WEEK:]
    problem = Staffing(n_shifts=6, wage=80.0, penalty=2.0, rate=40.0, limit=27)
    levels = np.full(24, problem.level(24))
    return Split(problem, *_arrays(x, y, *in_order(len(x), choosing)), levels=levels)


def _calendar(days: pd.DatetimeIndex) -> Array:
    season = 2 * np.pi * days.day_of_year.to_numpy() / 365
    return np.column_stack([np.eye(7)[days.day_of_week], np.cos(season), np.sin(season)])


def _arrays(x: Array, y: Array, train: slice, test: slice) -> tuple[Array, Array, Array, Array]:
    x_train, x_test = standardised(x[train], x[test])
    return x_train, y[train], x_test, y[test]
