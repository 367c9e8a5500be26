"""
A battery: when to charge, when to sell
=======================================

A battery of 4 MWh buys power when it is cheap and sells it when it is dear. Tonight it has to say
what it will do in every hour of tomorrow, and tomorrow's prices are only predicted. It lives on the
differences between hours, so that is where predictions should be right. Prices are generated, or
measured if you name a file: ``SEMO=semo_prices.csv.gz python plot_battery.py``.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.problems.highs import LinearProgram

HOURS, POWER, CAPACITY = 24, 1.0, 4.0  # MW, MWh
EFFICIENCY, WEAR = 0.92, 3.0  # of charging and of discharging; EUR per MWh that is sold

# %%
# **The model** is a linear program with four numbers an hour: the power bought from the grid
# (negative if it is sold), charged and discharged, and the energy stored at the end of the hour.
# Only the first has a predicted cost, the price. What it earns is minus this cost.

one, none = np.eye(HOURS), np.zeros((HOURS, HOURS))
grid = np.hstack([one, -one, one, none])  # bought = charged - discharged
stored = np.hstack([none, -EFFICIENCY * one, one / EFFICIENCY, one - np.eye(HOURS, k=-1)])
battery = LinearProgram(
    np.vstack([grid, stored]), "min", row_lower=0, row_upper=0,
    lower=np.repeat([-POWER, 0, 0, 0], HOURS),
    upper=np.repeat([POWER, POWER, POWER, CAPACITY], HOURS),
    costs=np.repeat([0, 0, WEAR, 0], HOURS), predicted=range(HOURS),
)  # fmt: skip
battery.unit = "EUR"

# %%
# **The data.** For each hour there are forecasts of the load and of the wind. Prices rise steeply
# if little is left between them, which a linear model cannot follow.


def generated(n, rng):
    hour = np.arange(HOURS)
    day = rng.normal(size=(n, 1))
    load = (
        3
        + 0.8 * np.sin((hour - 9) / 12 * np.pi)
        + 0.6 * np.exp(-((hour - 18) ** 2) / 6)
        + 0.2 * day
    )
    gusts = rng.normal(size=(n, HOURS)).cumsum(axis=1) / 4
    wind = np.clip(1.2 + 0.8 * rng.normal(size=(n, 1)) + gusts, 0, 3)
    price = 15 + 12 * np.exp(1.1 * (load - wind - 2)) * rng.lognormal(0, 0.15, (n, HOURS))
    return np.stack([load, wind], axis=2), price


def measured(path):
    import pandas as pd

    table = pd.read_csv(path)
    table["hour"] = table["period"] // 2
    hours = table.groupby(["day", "hour"]).mean()
    x = hours[["forecast_load", "forecast_wind", "forecast_price"]].to_numpy()
    return x.reshape(-1, HOURS, 3), hours["price"].to_numpy().reshape(-1, HOURS)


path = os.environ.get("SEMO")
x, y = measured(path) if path else generated(240, np.random.default_rng(0))
n_train = len(y) * 2 // 3
train, test = slice(0, n_train), slice(n_train, None)  # earlier days, later days

# %%
# **The regressor.** One linear model predicts the price of every hour from that hour's forecasts.
# It is trained on squared error and on losses learned from the battery's plans, and compared on
# later days with simpler ways to predict.

model = lodl.DecisionFocusedRegressor(battery).fit(x[train], y[train])
print(model.evaluate(x[test], y[test]))

# %%
# With the measured prices of the Irish market (SEMO, November 2011 to 2013) the market's own
# forecast of the price is among the features, little is left to gain, and the verdict says so:
# regret 42.5 -> 40.9 EUR a day, no clear difference.
#
# On most days both models lead to nearly the same plan. **Below is a day on which they do not**
# (one day in ten gains more): the price that came, and the energy stored if the plan follows either
# model. In a strong wind the straight line of squared error predicts prices near or below zero,
# and the battery trades on differences that do not come.

gain = lodl.evaluation.regret(battery, model.plain_.predict(x[test]), y[test])
gain -= model.regret(x[test], y[test])
i = int(np.argsort(gain)[int(0.9 * len(gain))])
figure, (above, below) = plt.subplots(2, sharex=True, figsize=(7.2, 4.6))
above.plot(y[test][i], color="0.5", lw=2, label="price that came")
plans = {"squared error": model.plain_.predict(x[test]), "lodl": model.predict(x[test])}
for colour, (name, prices) in zip(("C1", "C0"), plans.items(), strict=True):
    z = battery.solve(prices[i], None)
    above.plot(prices[i], color=colour, label=f"predicted, {name}")
    earned = -battery.objective(z, y[test][i], None)
    below.step(range(HOURS), z[-HOURS:], color=colour, label=f"{name}: earns {earned:.0f} EUR")
above.set(ylabel="EUR per MWh")
below.set(xlabel="hour", ylabel="stored, MWh")
for axes in (above, below):
    axes.legend()
plt.show()
