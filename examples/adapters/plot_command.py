"""
A program in any language
=========================

A bakery has an ordering program that reads a forecast from standard input and prints an order. Here
it is a short script that runs as a separate program; it could just as well be R, Julia, a
spreadsheet, or a simulator in Fortran. For each question it reads one line of JSON and prints
another.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import lodl
from lodl.problems.command import CommandProblem

N = 200  # days

# %%
# **The program.** It fills an oven with room for 30 loaves, most profitable bread first, and it
# says what an order earns once the demand is known. It knows nothing about ``lodl``.

PROGRAM = """
import json, sys
margins = [5.0, 4.0, 3.0, 2.0]
for line in sys.stdin:
    question = json.loads(line)
    if "prediction" in question:
        room, order = 30.0, []
        for wanted in question["prediction"]:
            order.append(min(max(wanted, 0.0), room))
            room -= order[-1]
        answer = {"decision": order}
    else:
        sold = [min(a, b) for a, b in zip(question["decision"], question["label"])]
        waste = sum(question["decision"]) - sum(sold)
        answer = {"objective": sum(m * s for m, s in zip(margins, sold)) - waste}
    print(json.dumps(answer), flush=True)
"""
problem = CommandProblem([sys.executable, "-c", PROGRAM], "max", persistent=True)

# %%
# **The data.** Three features, and the demand for four kinds of bread.

rng = np.random.default_rng(0)
x = rng.normal(size=(N, 3))
drivers = rng.uniform(0, 1, (3, 4))
y = 2 * (x @ drivers / 2 + 2) ** 2 * rng.uniform(0.7, 1.3, (N, 4))
train, test = slice(0, N // 2), slice(N // 2, N)

# %%
# **The regressor.** The profit has a kink where the order meets the demand, so the regressor uses a
# family that learns from regrets. It is fitted to all days together, from a few samples of each.

model = lodl.DecisionFocusedRegressor(problem)
model.fit(x[train], y[train], validation=0.3)
print(model.summary())

# %%
# **Predictions** for the most profitable bread. They are not meant to be right on average: ordering
# too little loses a margin of 5, ordering too much wastes a loaf and a place in the oven.

squared_error = LinearRegression().fit(x[train], y[train]).predict(x[test])
figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.axline((0, 0), slope=1, color="grey", linewidth=1)
axes.scatter(y[test][:, 0], squared_error[:, 0], s=14, label="squared error")
axes.scatter(y[test][:, 0], model.predict(x[test])[:, 0], s=14, label="learned loss")
axes.set(xlabel="true demand", ylabel="predicted demand")
axes.legend()
figure.tight_layout()
