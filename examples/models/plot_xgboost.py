"""
XGBoost: orders for twenty products
===================================

A shop orders twenty products within a budget. What is missing tomorrow must be bought dearly, what
is left over is sold cheaply, and the prices differ from product to product, so for some the dearer
error is to order too much and for others too little. Gradient-boosted trees predict the demands.
They are trained on squared error and on a loss that has learned both sides of every product.
"""

import matplotlib.pyplot as plt
import numpy as np
from xgboost import XGBRegressor

import lodl
from lodl.domains import newsvendor
from lodl.evaluation import decision_loss, regret
from lodl.training.xgboost import XGBoostLearner

domain = newsvendor(sizes=(150, 1, 1000))
problem, train, test = domain.problem, domain.splits.train, domain.splits.test
trees = XGBRegressor(n_estimators=60, max_depth=3, learning_rate=0.2)

# %%
# The objective has a kink at the label, so a family that is fitted to regrets competes with squared
# error here.

model = lodl.DecisionFocusedRegressor(
    problem, trees, families=[lodl.DirectedWeightedMSE()], n_samples=60, n_rounds=0
)
model.fit(train.x, train.y)
print(model.summary())

# %%
two_stage = XGBoostLearner(trees).train(train.x, lodl.losses.squared_error_loss(train.y))
y_hat = {"squared error": two_stage.predict(test.x), "learned loss": model.predict(test.x)}
before, after = (regret(problem, values, test.y) for values in y_hat.values())
gain, best = before - after, decision_loss(problem, test.y, test.y).mean()
error = 1.96 * gain.std() / np.sqrt(len(gain))
print(f"cost above the best: {before.mean() / best:.1%} -> {after.mean() / best:.1%}")
print(f"saved per order: {gain.mean():.1f} +- {error:.1f} (95 %)")

# %%
# For a booster of your own, the loss is an objective:
# ``xgboost.train(parameters, data, obj=lodl.training.xgboost.objective(loss))``.
#
# The picture shows, product by product, how far predictions are from the demand on average. Squared
# error aims at the middle everywhere. The learned loss shifts each product to its cheaper side.

weights = {name: rows.mean(axis=0) for name, rows in model.loss_.phi.items()}
if {"w_plus", "w_minus"} <= set(weights):
    lean = np.log2(weights["w_minus"] / weights["w_plus"])
else:
    lean = np.zeros(test.y.shape[1])
fig, ax = plt.subplots()
for name, values in y_hat.items():
    ax.plot(lean, (values - test.y).mean(axis=0), "o", label=name)
ax.axhline(0, color="0.6", lw=1)
ax.set(
    xlabel="too little is dearer than too much by a factor of (log2)",
    ylabel="prediction less demand, mean",
    title="Twenty products: predictions lean to the cheaper side",
)
ax.legend()
plt.show()
