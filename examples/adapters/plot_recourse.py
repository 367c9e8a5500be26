"""
Uncertain demand, with recourse
===============================

A utility buys power one day ahead for four blocks of the day, using predicted demand. Missing power
is bought on the spot market at a high price; surplus is sold at a loss. The prediction appears in a
*constraint*, so we only know what a plan is worth once the true demand is known: the plan is then
fixed, and the rest of the model is solved again.

All adapters follow this pattern. You name the variables that are decided before the truth is known:
``first_stage=`` in ``RecourseProgram``, ``CvxpyProblem`` and ``PyomoProblem``, and what ``build``
returns for ``OrtoolsProblem``. The other variables are the recourse. Without recourse, a plan may
be infeasible under the truth, and the error message says so.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import lodl
from lodl.evaluation import regret
from lodl.problems.cvxpy import CvxpyProblem

N = 120  # days

# %%
# **The model.** ``bought`` is decided today; ``missing`` and ``surplus`` follow once the demand is
# known.

demand = cp.Parameter(4, nonneg=True, name="demand")
bought = cp.Variable(4, nonneg=True, name="bought")
missing, surplus = cp.Variable(4, nonneg=True), cp.Variable(4, nonneg=True)
cost = np.array([3, 4, 6, 5]) @ bought + 15 * cp.sum(missing) - cp.sum(surplus)
rules = [bought + missing - surplus == demand, cp.abs(cp.diff(bought)) <= 2]
problem = CvxpyProblem(cp.Problem(cp.Minimize(cost), rules), demand, first_stage=[bought])

# %%
# **The data.** Three features, and a demand that is not linear in them and hard to predict.

rng = np.random.default_rng(0)
x = rng.normal(size=(N, 3))
drivers = rng.uniform(0, 1, (3, 4))
y = (x @ drivers / 2 + 3) ** 2 / 2 * rng.uniform(0.4, 1.6, (N, 4))
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor.** The cost has a kink where the plan meets the demand, so the regressor uses a
# family that learns from regrets alone. It needs no slopes, which would take two more solves for
# each number in a label and each decision, and a few samples of each day are enough.

model = lodl.DecisionFocusedRegressor(problem, ensemble=False)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **What it gains.** A missing unit costs 9 to 12 more than one bought in time, and a surplus unit
# costs 2 to 5, so predictions that are right on average are too low.

squared_error = LinearRegression().fit(x[train], y[train]).predict(x[test])
before = regret(problem, squared_error, y[test]).mean()
after = model.regret(x[test], y[test]).mean()
figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
axes.axline((0, 0), slope=1, color="grey", linewidth=1)
for y_hat, name, lost in [
    (squared_error, "squared error", before),
    (model.predict(x[test]), "learned loss", after),
]:
    axes.scatter(y[test], y_hat, s=10, label=f"{name}: {lost:.1f} lost per day")
axes.set(xlabel="true demand", ylabel="predicted demand")
axes.legend()
