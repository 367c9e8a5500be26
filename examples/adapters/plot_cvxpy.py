"""
A convex model: CVXPY
=====================

A battery buys and sells power, using predicted prices for the next twelve hours. The model is
written in CVXPY, with a quadratic term for battery wear. The battery's charge at the start differs
from day to day; that is the context.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.problems.cvxpy import CvxpyProblem

N, HOURS = 100, 12  # days

# %%
# **The model** has one parameter that is predicted and one that comes from the context.

price, level = cp.Parameter(HOURS, name="price"), cp.Parameter(name="level")
power = cp.Variable(HOURS, name="power")  # bought where positive
stored = level + cp.cumsum(power)
cost = price @ power + 0.5 * cp.sum_squares(power)
rules = [cp.abs(power) <= 1, stored >= 0, stored <= 3, stored[-1] >= 1]
problem = CvxpyProblem(cp.Problem(cp.Minimize(cost), rules), price)

# %%
# **The data.** Forecasts of load and sun, and prices that explode when the load is high and there
# is little sun. One model predicts the price of every hour, from the features of that hour.

rng = np.random.default_rng(0)
x = rng.normal(size=(N, HOURS, 2))
y = np.exp(0.9 * x[..., 0] - 0.9 * x[..., 1]) * rng.uniform(0.6, 1.4, (N, HOURS))
context = [{"level": start} for start in rng.uniform(0, 3, N)]
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor.**

model = lodl.DecisionFocusedRegressor(problem, n_samples=10, n_rounds=1)
model.fit(x[train], y[train], context=context[train], validation=0.3)
print(model.summary())

# %%
# **A decision**: what the battery does on a day that the model has not seen, and what it would have
# done with the true prices.

day = N - 1
(planned,) = model.decide(x[[day]], context=[context[day]])
ideal = problem.solve(y[day], context[day])
figure, (above, below) = plt.subplots(2, sharex=True, figsize=(6, 4.5), layout="constrained")
hours = np.arange(HOURS)
above.step(hours, y[day], where="mid", color="black", label="true price")
above.step(hours, model.predict(x[[day]])[0], where="mid", label="predicted price")
below.bar(hours - 0.2, ideal["power"], 0.4, color="grey", label="with true prices")
below.bar(hours + 0.2, planned["power"], 0.4, label="planned")
above.set(ylabel="price")
below.set(ylabel="power bought", xlabel="hour")
above.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
below.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
