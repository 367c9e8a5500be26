"""
A PyEPO model
=============

PyEPO is a library of predict-then-optimise methods for PyTorch. One line turns a PyEPO model, with
its sense and its solver, into a problem, so you can compare the losses of both libraries on the
same model.
"""

import matplotlib.pyplot as plt
from pyepo.data import knapsack
from pyepo.model.omo import knapsackModel
from sklearn.linear_model import LinearRegression

import lodl
from lodl.evaluation import regret
from lodl.problems.pyepo import PyepoProblem

N = 120  # instances

# %%
# **The model and the data** come from PyEPO: a knapsack with two capacities, whose item values are
# predicted.

weights, x, y = knapsack.genData(N, 5, 8, dim=2, deg=6, noise_width=0.5, seed=0)
problem = PyepoProblem(knapsackModel(weights, capacity=[20, 20], solver="appsi_highs"))
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor.**

model = lodl.DecisionFocusedRegressor(problem, n_samples=10, n_rounds=1)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **What it gains** on instances that it has not seen: the share of them that lose more than a given
# value.

squared_error = LinearRegression().fit(x[train], y[train]).predict(x[test])
before = regret(problem, squared_error, y[test])
after = model.regret(x[test], y[test])
print(f"value lost per instance: {before.mean():.2f} -> {after.mean():.2f}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for lost, label in [(before, "squared error"), (after, "learned loss")]:
    axes.ecdf(lost, complementary=True, label=label)
axes.set(xlabel="value lost", ylabel="share of instances that lose more")
axes.legend()
