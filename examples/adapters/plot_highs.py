"""
A program given as arrays: HiGHS
================================

A workshop makes six products on three machines. On Friday it plans the next week by the margins
that it predicts. The plan is a linear program given by its matrix, which needs no modelling
language, no licence and no extra package.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import lodl
from lodl.evaluation import regret
from lodl.problems.highs import LinearProgram

N = 200  # weeks

# %%
# **The model.** The hours that a unit of each product takes on each machine, the hours that a
# machine has, and at most three units of a product. All costs are predicted, so there are none.

rng = np.random.default_rng(0)
hours = rng.uniform(1, 4, (3, 6))
problem = LinearProgram(hours, "max", row_upper=[16, 16, 16], upper=3)

# %%
# **The data.** What is known on Friday, and the margins of the week after. They follow a curve that
# a linear model cannot, so it has to choose where to be right.

x = rng.normal(size=(N, 4))
drivers = rng.binomial(1, 0.5, (4, 6))
y = (x @ drivers / 2 + 3) ** 4 / 27 * rng.uniform(0.7, 1.3, (N, 6))
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor** trains a linear model on squared error and on losses learned from the solver's
# answers, and keeps what decides best on held-out weeks.

model = lodl.DecisionFocusedRegressor(problem, n_rounds=1)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **What it is worth**, on weeks that it has not seen: each point is a week, and below the line the
# learned loss lost less of that week's margin than squared error did.

squared_error = LinearRegression().fit(x[train], y[train]).predict(x[test])
before = regret(problem, squared_error, y[test], progress=False)
after = model.regret(x[test], y[test])
print(f"margin lost per week: {before.mean():.2f} with squared error, {after.mean():.2f} now")

figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.axline((0, 0), slope=1, color="grey", linewidth=1)
axes.scatter(before, after, s=14)
axes.set(xlabel="lost with squared error", ylabel="lost with the learned loss")
figure.tight_layout()
