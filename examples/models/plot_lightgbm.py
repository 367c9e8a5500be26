"""
LightGBM: a bakery with an oven that is too small
=================================================

A bakery bakes six kinds of bread in the morning, before it knows the demand. On a busy day the oven
is too small, so what to bake depends on all six predictions at once. The features are a data frame
with numbers and a category, which LightGBM takes as it is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.model_selection import KFold

import lodl
from lodl.evaluation import regret
from lodl.training.boosting.lightgbm import LightGBMLearner

PRICE = np.array([4.0, 3.5, 6.0, 2.0, 5.0, 3.0])
COST = np.array([1.0, 2.0, 2.0, 1.5, 1.0, 2.5])
OVEN = 330.0


def bake(y_hat):
    """Bake what is predicted, highest margin first, until the oven is full."""
    z, room = np.zeros(6), OVEN
    for bread in np.argsort(COST - PRICE):
        z[bread] = min(max(y_hat[bread], 0.0), room)
        room -= z[bread]
    return z


def profit(z, y):
    """Return the profit; unsold bread is given away."""
    return float((PRICE * np.minimum(z, y) - COST * z).sum())


bakery = lodl.problem(bake, profit, sense="max", unit="EUR")

# %%
# Two years of daily data; the first year is for training.

rng = np.random.default_rng(0)
n = 730
days = pd.DataFrame(
    {
        "weekday": pd.Categorical(np.arange(n) % 7),
        "temperature": 12 + 9 * np.sin(np.arange(n) / 58) + rng.normal(0, 3, n),
        "rain": rng.random(n) < 0.3,
    }
)
level = 40 + 25 * np.isin(np.arange(n) % 7, (5, 6)) - 12 * days["rain"].to_numpy()
taste = rng.normal(0, 0.8, size=6)
warm = np.outer(days["temperature"] - 12, taste)
y = (level[:, None] + warm).clip(5) * rng.gamma(6, 1 / 6, size=(n, 6))
train, test = slice(0, 365), slice(365, n)

# %%
# The folds are blocks of consecutive days, as you would validate in practice.

trees = LGBMRegressor(n_estimators=60, num_leaves=7, learning_rate=0.1, verbose=-1)
model = lodl.DecisionFocusedRegressor(
    bakery,
    trees,
    families=[lodl.DirectedWeightedMSE()],
    n_samples=40,
    n_rounds=0,
)
model.fit(days[train], y[train], validation=KFold(4))
print(model.summary())

# %%
(baseline,) = LightGBMLearner(trees).train(days[train], lodl.losses.squared_error_loss(y[train]))
before = regret(bakery, baseline.predict(days[test]), y[test])
after = model.regret(days[test], y[test])
gain = before - after
error = 1.96 * gain.std() / np.sqrt(len(gain))
print(f"regret in the second year: {before.mean():.0f} -> {after.mean():.0f} EUR per day")
print(f"saved: {gain.mean():.1f} ± {error:.1f} EUR per day (95% interval)")

# %%
# How much of each bread is baked, and how much is wanted. Bread with a high margin is baked
# generously; bread that hardly pays is not.

baked = {
    "squared error": np.array([bake(row) for row in baseline.predict(days[test])]),
    "learned loss": np.array(model.decide(days[test])),
}
fig, ax = plt.subplots()
place, order = np.arange(6), np.argsort(COST - PRICE)
ax.bar(place, y[test].mean(axis=0)[order], 0.8, color="0.88", label="wanted")
for k, (name, z) in enumerate(baked.items()):
    ax.bar(place + 0.26 * k - 0.13, z.mean(axis=0)[order], 0.24, label=f"baked, {name}")
ax.set_xticks(place, [f"{PRICE[i] - COST[i]:.1f}" for i in order])
ax.set(xlabel="margin per loaf, EUR", ylabel="loaves per day", title="Average of the second year")
fig.legend(loc="outside lower center", ncols=3)
plt.show()
