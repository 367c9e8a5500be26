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
    return {"knapsack": {"weights": rng.choice([3, 5, 7], 48).tolist()}}
