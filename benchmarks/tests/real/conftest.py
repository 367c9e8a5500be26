import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder of generated files that have the columns of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    _pjm(rng).to_csv(folder / "pjm_load.csv.gz", index=False)
    _semo(rng).to_csv(folder / "semo_prices.csv.gz", index=False)
    (folder / "semo_tasks.json").write_text(json.dumps(_tasks(rng)))
    _restaurant(rng, folder)
    _bikes(rng).to_csv(folder / "Bikeshare.csv", index=False)
    _flights(rng, folder)
    return folder


def _pjm(rng, n_days=420):
    days = pd.date_range("2011-01-01", periods=n_days)
    load = 1.5 + 0.3 * rng.standard_normal((n_days, 24))
    temperature = 50 + 10 * rng.standard_normal((n_days, 24))
    load[0, 0], load[70, 2], temperature[70, 2] = np.nan, np.nan, np.nan
    columns = [f"{kind}_{hour:02}" for kind in ("load", "temp") for hour in range(24)]
    table = pd.DataFrame(np.hstack([load, temperature]), columns=columns)
    table.insert(0, "file", np.where(np.arange(n_days) < 100, 1, 2))
    table.insert(0, "date", days.strftime("%Y-%m-%d"))
    return table


def _semo(rng, n_days=290):
    n = n_days * 48
    day = pd.date_range("2012-01-01", periods=n_days).repeat(48)
    forecast = rng.uniform(20, 80, n)
    price = forecast + rng.normal(0, 5, n)
    return pd.DataFrame(
        {
            "day": day.strftime("%Y-%m-%d"),
            "period": np.tile(np.arange(48), n_days),
            "holiday": 0,
            "day_of_week": day.day_of_week,
            "week_of_year": day.isocalendar().week.to_numpy(),
            "month": day.month,
            "forecast_wind": rng.uniform(0, 1000, n),
            "forecast_load": rng.uniform(2000, 5000, n),
            "forecast_price": forecast,
            "co2_intensity": rng.uniform(300, 600, n),
            "price": price,
            "knapsack_value": price * 5,
        }
    )


def _tasks(rng):
    job = {"duration": 10, "earliest_start": 1, "latest_end": 25, "power": 4.0, "use": 3}
    load = {"machines": [{"capacity": 5}], "tasks": [job, {**job, "latest_end": 48, "power": 7.0}]}
    weights = rng.choice([3, 5, 7], 48).tolist()
    return {"knapsack": {"weights": weights}, "scheduling": {"load1": load, "load2": load}}


def _restaurant(rng, folder, n_days=110):
    days = pd.date_range("2014-01-01", periods=n_days)
    dishes = ("calamari", "fish", "shrimp", "chicken", "koefte", "lamb", "steak")
    weather = dict.fromkeys(("wind", "clouds", "rain", "sunshine", "temperature"), 1.5)
    table = pd.DataFrame({"date": days.strftime("%Y-%m-%d"), "is_holiday": 0, **weather})
    table["is_closed"] = (np.arange(n_days) == 40).astype(int)
    demand = rng.poisson(8 + 4 * (days.day_of_week.to_numpy() == 5), (7, n_days)).T
    table.to_csv(folder / "yaz_data.csv", index=False)
    pd.DataFrame(demand, columns=dishes).to_csv(folder / "yaz_target.csv", index=False)


def _bikes(rng, n_days=60):
    n = n_days * 24
    hour = np.tile(np.arange(24), n_days)
    table = pd.DataFrame(
        {
            "day": np.repeat(np.arange(1, n_days + 1), 24),
            "hr": hour,
            "weekday": np.repeat(np.arange(n_days) % 7, 24),
            "holiday": 0,
            "workingday": 1,
            "weathersit": "clear",
            "temp": rng.uniform(0, 1, n),
            "hum": 0.5,
            "windspeed": 0.2,
            "bikers": rng.poisson(100 + 50 * np.sin(hour / 4)),
        }
    )
    return table.drop(index=[3, 50])


def _flights(rng, folder, n_days=40):
    n = n_days * 2 * 60
    day = pd.DatetimeIndex(np.repeat(pd.date_range("2013-01-01", periods=n_days), 2 * 60))
    origin = np.tile(np.repeat(["EWR", "JFK"], 60), n_days)
    late = rng.exponential(20, n)
    table = pd.DataFrame(
        {
            "year": day.year,
            "month": day.month,
            "day": day.day,
            "hour": np.tile([*range(5, 17), *range(5, 17), *[17, 18, 19, 20] * 9], n // 60),
            "minute": rng.integers(0, 60, n),
            "dep_delay": np.where(rng.random(n) < 0.02, np.nan, late - 10),
            "arr_delay": late - 5,
            "carrier": rng.choice(["AA", "UA"], n),
            "tailnum": rng.choice(["N1", "N2", None], n),
            "origin": origin,
            "distance": rng.uniform(200, 2000, n),
        }
    )
    table.to_csv(folder / "flights.csv.zip", index=False)
    hours = table[["year", "month", "day", "origin"]].drop_duplicates()
    weather = hours.merge(pd.DataFrame({"hour": np.arange(24)}), how="cross")
    for name in ("temp", "wind_speed", "precip", "visib"):
        weather[name] = rng.uniform(0, 10, len(weather))
    weather.loc[7, "temp"] = np.nan
    weather.to_csv(folder / "weather.csv", index=False)
    planes = pd.DataFrame({"tailnum": ["N1", "N2"], "seats": [50, 150]})
    planes.to_csv(folder / "planes.csv", index=False)
