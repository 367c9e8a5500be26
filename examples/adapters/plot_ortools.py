"""
A model in CP-SAT: OR-Tools
===========================

A depot loads five lorries, one an hour, in a night of eight hours; some must leave before others.
The order is found by CP-SAT, the constraint solver of OR-Tools, by the predicted prices of power.
CP-SAT knows whole numbers only: predicted costs are scaled to them, with a bound of the error.
"""

import matplotlib.pyplot as plt
import numpy as np
from ortools.sat.python import cp_model

import lodl
from lodl.problems.ortools import OrtoolsLinearProblem

N, HOURS = 80, 8  # nights
DRAWS = [5, 3, 4, 2, 1]  # power to load each lorry

# %%
# **The model** without an objective, and the variables that have a predicted cost: the power that
# is drawn in each hour. Lorry 1 leaves before lorry 0, and lorry 3 before lorry 2.


def depot():
    model = cp_model.CpModel()
    load = [[model.new_bool_var(f"{i} at {h}") for h in range(HOURS)] for i in range(len(DRAWS))]
    power = [model.new_int_var(0, max(DRAWS), f"power at {h}") for h in range(HOURS)]
    for lorry in load:
        model.add_exactly_one(lorry)
    for hour, drawn in zip(zip(*load, strict=True), power, strict=True):
        model.add_at_most_one(hour)
        model.add(drawn == cp_model.LinearExpr.weighted_sum(hour, DRAWS))
    time = [cp_model.LinearExpr.weighted_sum(lorry, range(HOURS)) for lorry in load]
    model.add(time[1] < time[0])
    model.add(time[3] < time[2])
    return model, power


problem = OrtoolsLinearProblem(depot, "min")

# %%
# **The data.** Forecasts of load and wind, and prices that explode when there is much load and
# little wind. One model predicts the price of each hour from that hour's forecasts.

rng = np.random.default_rng(0)
x = rng.normal(size=(N, HOURS, 2))
y = np.exp(0.9 * x[..., 0] - 0.9 * x[..., 1]) * rng.uniform(0.6, 1.4, (N, HOURS))
train = slice(0, N // 2)

# %%
# **The regressor.**

model = lodl.DecisionFocusedRegressor(problem, n_samples=10, n_rounds=1)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **A decision** for a night that the model has not seen, and the best one in hindsight.

night = N - 1
(planned,) = model.decide(x[[night]])
ideal = problem.solve(y[night])
figure, axes = plt.subplots(figsize=(6, 3.5))
hours = np.arange(HOURS)
axes.bar(hours - 0.2, ideal, 0.4, color="grey", label="power, had prices been known")
axes.bar(hours + 0.2, planned, 0.4, label="power as planned")
axes.step(hours, y[night], where="mid", color="black", label="true price")
axes.set(xlabel="hour", ylabel="power, price")
axes.legend()
figure.tight_layout()
