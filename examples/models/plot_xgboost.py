"""
XGBoost: orders for twenty products
===================================

A shop orders twenty products within a budget. Tomorrow, missing units must be bought at a high
price and leftovers are sold off cheaply. The prices differ between products, so for some it is
worse to order too much, for others too little. Gradient-boosted trees predict the demand; we train
them on squared error, and on a loss that has learned both sides of every product.
"""

import matplotlib.pyplot as plt
import numpy as np
from xgboost import XGBRegressor

import lodl
from lodl.domains import newsvendor
from lodl.evaluation import decision_loss, regret
from lodl.training.boosting.xgboost import XGBoostLearner

domain = newsvendor(sizes=(150, 1, 1000))
problem, train, test = domain.problem, domain.splits.train, domain.splits.test
trees = XGBRegressor(n_estimators=60, max_depth=3, learning_rate=0.2)

# %%
# The objective has a kink at the label, so the regressor uses a family that is fitted to regrets.

model = lodl.DecisionFocusedRegressor(problem, trees)
model.fit(train.x, train.y)
print(model.summary())

# %%
(baseline,) = XGBoostLearner(trees).train(train.x, lodl.losses.squared_error_loss(train.y))
y_hat = {"squared error": baseline.predict(test.x), "learned loss": model.predict(test.x)}
before, after = (regret(problem, values, test.y) for values in y_hat.values())
gain, best = before - after, decision_loss(problem, test.y, test.y).mean()
error = 1.96 * gain.std() / np.sqrt(len(gain))
print(f"cost above the best: {before.mean() / best:.1%} -> {after.mean() / best:.1%}")
print(f"saved per order: {gain.mean():.1f} ± {error:.1f} (95% interval)")

# %%
# If you call XGBoost yourself, pass the loss as an objective:
# ``xgboost.train(parameters, data, obj=lodl.training.boosting.objective(loss))``.
#
# The picture shows what was saved or lost on each of the thousand orders.

fig, ax = plt.subplots()
sorted_gain = np.sort(gain)
place = np.arange(len(gain))
ax.fill_between(place, sorted_gain, 0, where=sorted_gain > 0, label="saved", alpha=0.8)
ax.fill_between(place, sorted_gain, 0, where=sorted_gain <= 0, label="lost", alpha=0.8)
ax.axhline(gain.mean(), color="0.4", ls="--", lw=1, label="mean")
ax.set(
    xlabel="1,000 new orders, sorted",
    ylabel="saved compared with squared error",
    title=f"{(gain > 0).mean():.0%} of the orders are cheaper",
)
ax.legend()
plt.show()
