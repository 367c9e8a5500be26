"""
Energy scheduling: when squared error is already enough
=======================================================

A machine has five jobs to run while power is cheap. Prices explode when there is little wind and a
high load. A linear model cannot follow that: at the peaks it is off by a large factor. But it ranks
the half hours almost correctly, and the ranking is all the solver needs. So there is little to
gain, and the learner says so. Problem and data come with the benchmarks (`pip install ./benchmarks`
in a clone).
"""

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.evaluation import decision_loss, regret
from lodl.training.linear import LinearLearner
from lodl_benchmarks.domains import energy_scheduling

domain = energy_scheduling(sizes=(80, 1, 200), noise=0.1)
problem, train, test = domain.problem, domain.splits.train, domain.splits.test

learner = LinearLearner()
model = lodl.DecisionFocusedRegressor(
    problem, learner, families=[lodl.DecisionHinges()], n_rounds=1, n_samples=10
)
model.fit(train.x, train.y)
print(model.summary())

# %%
# Squared error is always one of the candidates, and it is kept if nothing is better.

(baseline,) = learner.train(train.x, lodl.losses.squared_error_loss(train.y))
two_stage = baseline.predict(test.x)
best = decision_loss(problem, test.y, test.y).mean()
before = regret(problem, two_stage, test.y).mean() / best
after = model.regret(test.x, test.y).mean() / best
relative_error = np.abs(two_stage / test.y - 1).mean()
print(
    f"Prices are off by {relative_error:.0%} on average, yet the schedule costs only {before:.1%}"
)
print(f"more than the best one. With the model that was kept, it costs {after:.1%} more.")

# %%
# One day. The bars at the bottom show when the machine runs if it follows the true prices, and if
# it follows the predicted ones.

i = int(np.argmax(test.y.max(axis=1)))
hours = np.arange(test.y.shape[1]) / 2
fig, ax = plt.subplots()
ax.plot(hours, test.y[i], color="0.5", lw=2, label="true price")
ax.plot(hours, two_stage[i], color="C0", label="predicted by a linear model")
depth = test.y[i].max() * 0.06
for k, (name, prices) in enumerate((("true", test.y[i]), ("predicted", two_stage[i]))):
    power = problem.solve(prices, None)
    ax.bar(hours, depth * power / power.max(), 0.5, bottom=-(k + 1.3) * depth * 1.2,
           color=("0.5", "C0")[k], label=f"power drawn, {name} prices")  # fmt: skip
ax.set(xlabel="hour", ylabel="price", xlim=(0, 24), title="Wrong prices, nearly the right hours")
ax.legend()
plt.show()
