"""
A model in CP-SAT: OR-Tools
===========================

A depot charges five electric trucks during a night of eight hours, one truck per hour, and some
have to leave before others. CP-SAT, the constraint solver of OR-Tools, finds the cheapest order for
the predicted prices of power. CP-SAT only takes integers, so the predicted costs are scaled, with a
known bound on the rounding error.
"""

import matplotlib.pyplot as plt
import numpy as np
from ortools.sat.python import cp_model

import lodl
from lodl.problems.ortools import OrtoolsLinearProblem

N, HOURS = 80, 8  # nights
DRAWS = [5, 3, 4, 2, 1]  # power that each truck needs

# %%
# **The model** has no objective. The function returns it together with the variables that have a
# predicted cost: the power drawn in each hour. Truck 1 is charged before truck 0, and truck 3
# before truck 2.


def depot():
    model = cp_model.CpModel()
    charge = [[model.new_bool_var(f"{i} at {h}") for h in range(HOURS)] for i in range(len(DRAWS))]
    power = [model.new_int_var(0, max(DRAWS), f"power at {h}") for h in range(HOURS)]
    for truck in charge:
        model.add_exactly_one(truck)
    for hour, drawn in zip(zip(*charge, strict=True), power, strict=True):
        model.add_at_most_one(hour)
        model.add(drawn == cp_model.LinearExpr.weighted_sum(hour, DRAWS))
    time = [cp_model.LinearExpr.weighted_sum(truck, range(HOURS)) for truck in charge]
    model.add(time[1] < time[0])
    model.add(time[3] < time[2])
    return model, power


problem = OrtoolsLinearProblem(depot, "min")

# %%
# **The data.** Forecasts of load and wind, and prices that explode when the load is high and there
# is little wind. One model predicts the price of every hour, from the forecasts for that hour.

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
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
hours = np.arange(HOURS)
axes.bar(hours - 0.2, ideal, 0.4, color="grey", label="power, with true prices")
axes.bar(hours + 0.2, planned, 0.4, label="power, as planned")
axes.step(hours, y[night], where="mid", color="black", label="true price")
axes.set(xlabel="hour", ylabel="power, price")
axes.legend()
