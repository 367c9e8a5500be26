"""
A program in any language
=========================

A baker's ordering program is what it is: it reads a forecast from its standard input and prints an
order. Here it is a short script that runs as a program of its own; it could be R, Julia, a
spreadsheet, or a simulator in Fortran. It reads and prints a line of JSON per question.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import lodl
from lodl.problems.command import CommandProblem

N = 200  # days

# %%
# **The program.** It fills an oven of 30 places with the loaves that are wanted, dearest first, and
# says what an order earned once the demand is known. Nothing in it knows about ``lodl``.

PROGRAM = """
import json, sys
margins = [5.0, 4.0, 3.0, 2.0]
for line in sys.stdin:
    asked = json.loads(line)
    if "prediction" in asked:
        room, order = 30.0, []
        for wanted in asked["prediction"]:
            order.append(min(max(wanted, 0.0), room))
            room -= order[-1]
        answer = {"decision": order}
    else:
        sold = [min(a, b) for a, b in zip(asked["decision"], asked["label"])]
        waste = sum(asked["decision"]) - sum(sold)
        answer = {"objective": sum(m * s for m, s in zip(margins, sold)) - waste}
    print(json.dumps(answer), flush=True)
"""
problem = CommandProblem([sys.executable, "-c", PROGRAM], "max", persistent=True)

# %%
# **The data.** Weather and weekday, and the demand for four kinds of bread.

rng = np.random.default_rng(0)
x = rng.normal(size=(N, 3))
drivers = rng.uniform(0, 1, (3, 4))
y = 2 * (x @ drivers / 2 + 2) ** 2 * rng.uniform(0.7, 1.3, (N, 4))
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor.** What the order earns has a kink where it meets the demand, so the regressor
# tries a family that learns from regrets beside those that learn from decisions.

model = lodl.DecisionFocusedRegressor(problem, n_samples=30, n_rounds=1)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **Predictions** of the dearest bread. They are not meant to be right on average: an order that is
# too small loses a margin of 5, one that is too large a loaf and a place in the oven.

squared_error = LinearRegression().fit(x[train], y[train]).predict(x[test])
figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.axline((0, 0), slope=1, color="grey", linewidth=1)
axes.scatter(y[test][:, 0], squared_error[:, 0], s=14, label="squared error")
axes.scatter(y[test][:, 0], model.predict(x[test])[:, 0], s=14, label="learned loss")
axes.set(xlabel="true demand", ylabel="predicted demand")
axes.legend()
figure.tight_layout()
