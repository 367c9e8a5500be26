"""
A program given as arrays: HiGHS
================================

A workshop makes six products on three machines. Every Friday it plans the next week, using
predicted margins. The plan is a linear program given by its matrix: no modelling language, no
licence and no extra package.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import lodl
from lodl.evaluation import regret
from lodl.problems.highs import LinearProgram

N = 200  # weeks

# %%
# **The model.** The matrix has the hours that a unit of each product takes on each machine. Every
# machine has 16 hours, and at most three units of each product are made. All margins are predicted,
# so none are given here.

rng = np.random.default_rng(0)
hours = rng.uniform(1, 4, (3, 6))
problem = LinearProgram(hours, "max", row_upper=[16, 16, 16], upper=3)

# %%
# **The data.** What is known on Friday, and the margins of the following week. A linear model
# cannot follow their curve, so it has to choose where to be right.

x = rng.normal(size=(N, 4))
drivers = rng.binomial(1, 0.5, (4, 6))
y = (x @ drivers / 2 + 3) ** 4 / 27 * rng.uniform(0.7, 1.3, (N, 6))
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor** trains linear models on squared error and on losses learned from the solver's
# answers, and keeps what decides best on held-out weeks.

model = lodl.DecisionFocusedRegressor(problem, n_rounds=1)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **What it gains** on weeks that it has not seen. Each point is a week; below the line, the learned
# loss lost less of that week's margin than squared error did.

squared_error = LinearRegression().fit(x[train], y[train]).predict(x[test])
before = regret(problem, squared_error, y[test])
after = model.regret(x[test], y[test])
print(f"margin lost per week: {before.mean():.2f} -> {after.mean():.2f}")

figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
axes.axline((0, 0), slope=1, color="grey", linewidth=1)
axes.scatter(before, after, s=14)
axes.set(xlabel="lost with squared error", ylabel="lost with the learned loss")
