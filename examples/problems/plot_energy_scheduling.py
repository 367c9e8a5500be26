"""
Energy scheduling: when squared error is already enough
=======================================================

Five jobs are to run on a machine when power is cheap. Prices explode when little wind meets a high
load, which a linear model cannot follow at all: it is off by a factor at the peaks. Still its
*order* of the half hours is nearly right, and the order is all that the solver needs. So there is
little to gain, and the learner says so instead of pretending.
"""

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.domains import energy_scheduling
from lodl.evaluation import decision_loss, regret
from lodl.training.torch import TorchLearner, TrainingSettings

domain = energy_scheduling(sizes=(80, 1, 200), noise=0.1)
problem, train, test = domain.problem, domain.splits.train, domain.splits.test

learner = TorchLearner(
    n_initialisations=1, settings=TrainingSettings(0.05, n_steps=200, patience=30)
)
model = lodl.DecisionFocusedRegressor(
    problem, learner, families=[lodl.DecisionHinges()], n_rounds=1, n_samples=10
)
model.fit(train.x, train.y)
print(model.summary())

# %%
# Squared error is always among the candidates, and it stays where nothing is better.

two_stage = learner.train(train.x, lodl.losses.squared_error_loss(train.y)).predict(test.x)
best = decision_loss(problem, test.y, test.y).mean()
before = regret(problem, two_stage, test.y).mean() / best
after = model.regret(test.x, test.y).mean() / best
relative_error = np.abs(two_stage / test.y - 1).mean()
print(f"prices are {relative_error:.0%} off on average, yet the schedule costs {before:.1%} more")
print(f"than the best one; with what the learner kept {after:.1%} more.")

# %%
# A day. The bars below are when the machine runs, by the predicted and by the true prices.

i = int(np.argmax(test.y.max(axis=1)))
hours = np.arange(test.y.shape[1]) / 2
fig, ax = plt.subplots()
ax.plot(hours, test.y[i], color="0.5", lw=2, label="true price")
ax.plot(hours, two_stage[i], color="C0", label="predicted by a linear model")
depth = test.y[i].max() * 0.06
for k, (name, prices) in enumerate((("true", test.y[i]), ("predicted", two_stage[i]))):
    power = problem.solve(prices)
    ax.bar(hours, depth * power / power.max(), 0.5, bottom=-(k + 1.3) * depth * 1.2,
           color=("0.5", "C0")[k], label=f"power drawn by {name} prices")  # fmt: skip
ax.set(xlabel="hour", ylabel="price", xlim=(0, 24), title="Wrong prices, nearly the right hours")
ax.legend()
plt.show()
