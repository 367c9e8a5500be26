"""
A model in Pyomo
================

A mill mixes feed from six ingredients at the lowest cost, with enough protein and fibre and not too
much of any ingredient. The prices have to be predicted when contracts are signed. The model is
written in Pyomo and solved by HiGHS; any solver that Pyomo supports will do.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyomo.environ as pyo

import lodl
from lodl.problems.pyomo import PyomoProblem

N = 120  # weeks

# %%
# **The model**: a function builds it, with a mutable parameter for the predicted prices.

names = ["maize", "wheat", "soya", "peas", "bran", "straw"]
protein = dict(zip(names, [9, 12, 45, 22, 16, 4], strict=True))
fibre = dict(zip(names, [2, 3, 6, 6, 11, 40], strict=True))


def feed():
    model = pyo.ConcreteModel()
    model.price = pyo.Param(names, mutable=True, initialize=0.0)
    model.share = pyo.Var(names, bounds=(0, 0.5))
    model.all = pyo.Constraint(expr=pyo.summation(model.share) == 1)
    model.protein = pyo.Constraint(expr=pyo.sum_product(protein, model.share, index=names) >= 18)
    model.fibre = pyo.Constraint(expr=pyo.sum_product(fibre, model.share, index=names) >= 7)
    model.cost = pyo.Objective(expr=pyo.summation(model.price, model.share))
    return model


problem = PyomoProblem(feed, "price")

# %%
# **The data.** Four drivers of the market, and prices that are not linear in them.

rng = np.random.default_rng(1)
x = rng.normal(size=(N, 4))
drivers = rng.binomial(1, 0.5, (4, 6))
y = [14, 15, 24, 18, 14, 8] * (x @ drivers / 3 + 2) ** 2 / 4 * rng.uniform(0.9, 1.1, (N, 6))
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor.**

model = lodl.DecisionFocusedRegressor(problem, n_rounds=1)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **Decisions**: the average mix for the true prices and for the predicted ones.

ideal = np.mean([problem.solve(prices)["share"] for prices in y[test]], axis=0)
chosen = np.mean([mix["share"] for mix in model.decide(x[test])], axis=0)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
places = np.arange(len(names))
axes.bar(places - 0.2, ideal, 0.4, color="grey", label="true prices")
axes.bar(places + 0.2, chosen, 0.4, label="predicted prices")
axes.set_xticks(places, names)
axes.set_ylabel("mean share")
axes.legend()
