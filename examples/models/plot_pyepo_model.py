"""
PyEPO: a model you already have
===============================

`PyEPO <https://github.com/khalil-research/PyEPO>`_ describes problems as an ``optModel``. Such a
model is a problem of `lodl` in one line, so its users can compare a learned loss with the methods
they know. Here a knapsack of PyEPO's, solved by OR-Tools, with a Ridge regression of scikit-learn,
which has no gradient for PyEPO to use.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyepo
from pyepo.model.ort import knapsackModel
from sklearn.linear_model import Ridge

import lodl
from lodl.evaluation import regret
from lodl.problems.pyepo import PyepoProblem

weights, features, costs = pyepo.data.knapsack.genData(
    num_data=300, num_features=5, num_items=10, dim=1, deg=6, noise_width=0.2, seed=7
)
model = knapsackModel(weights=weights, capacity=[15.0])
problem = PyepoProblem(model)
x, y = np.asarray(features), np.asarray(costs, dtype=float)
train, test = slice(0, 100), slice(100, 300)

# %%
# A hundred instances, ten samples of each, and a few more where the model errs.

regressor = lodl.DecisionFocusedRegressor(
    problem, Ridge(alpha=0.1), families=[lodl.DecisionHinges()], n_samples=10, n_rounds=1
)
regressor.fit(x[train], y[train])
print(regressor.summary())

ridge = Ridge(alpha=0.1).fit(x[train], y[train])
before = regret(problem, ridge.predict(x[test]), y[test], progress=False)
after = regressor.regret(x[test], y[test])
print(f"regret on 200 new knapsacks: {before.mean():.2f} -> {after.mean():.2f}")

# %%
# Each dot is a knapsack; below the line the learned loss decides better.

fig, ax = plt.subplots(figsize=(4.4, 4.4))
jitter = np.random.default_rng(0).uniform(-0.15, 0.15, size=(2, len(before)))
ax.plot(before + jitter[0], after + jitter[1], "o", alpha=0.5)
top = max(before.max(), after.max()) + 1
ax.plot([0, top], [0, top], color="0.6", lw=1)
ax.set(xlabel="regret, squared error", ylabel="regret, learned loss", title="200 new knapsacks")
ax.set_aspect("equal")
plt.show()
