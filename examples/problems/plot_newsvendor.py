"""
Newsvendor: ordering too much or too little
===========================================

A shop orders before it knows the demand. A leftover unit costs 1 and a missing unit costs 4. If you
order the *mean* demand you lose money; the right order is the 80% quantile. You do not have to know
that: it shows in the solver's answers, and a loss with two sides learns it from them.
"""

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.evaluation import regret
from lodl.training.linear import LinearLearner

OVER, UNDER = 1.0, 4.0


def order(y_hat):
    """Order what is predicted."""
    return np.maximum(y_hat, 0.0)


def cost(z, y):
    """Return what is paid for units left over and for units missing."""
    return float((OVER * np.maximum(z - y, 0) + UNDER * np.maximum(y - z, 0)).sum())


shop = lodl.problem(order, cost, sense="min")

rng = np.random.default_rng(0)
x = rng.uniform(0, 3, size=(1300, 1))
y = 20 + 10 * x + (2 + 4 * x) * rng.gamma(2.0, 1.0, size=(1300, 1))  # a long tail upwards

# %%
# The objective has a kink at the label, so we use a family that is fitted to regrets.
# `DirectedWeightedMAE` has one slope for predictions above the label and one for those below. All
# instances learn together, so that two samples of each are enough.

loss = lodl.learn_loss(shop, y[:300], family=lodl.DirectedWeightedMAE(), n_samples=2)
slopes = {name: float(np.median(loss.phi[name])) for name in ("w_plus", "w_minus")}
print("median slopes of the 300 losses:", {k: round(v, 3) for k, v in slopes.items()})

learner = LinearLearner()
models = {
    "squared error": learner.train(x[:300], lodl.losses.squared_error_loss(y[:300]))[0],
    "learned loss": learner.train(x[:300], loss)[0],
}
for name, model in models.items():
    paid = regret(shop, model.predict(x[300:]), y[300:])
    share = (model.predict(x[300:]) >= y[300:]).mean()
    print(f"{name:14} regret {paid.mean():6.2f} per day, enough in stock on {share:.0%} of days")

# %%
# The true cost is a V with two slopes, and so is the learned loss. Its mean is least at the 80%
# quantile.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
d = np.linspace(-15, 15, 201)
true = [cost(order(y[0] + e), y[0]) for e in d]
left.plot(d, true, color="0.5", lw=3, label="what the error costs")
left.plot(d, [loss.value(y[:1] + e, [0])[0] for e in d], color="C1", label="learned loss")
left.plot(d, np.mean(true) * d**2 / np.mean(d**2), color="C0", ls="--", label="squared error")
left.set(xlabel="prediction minus demand", ylabel="cost", title="One day")
left.legend()

right.plot(x[300:], y[300:], ".", color="0.8", ms=3)
line = np.linspace(0, 3, 2)[:, None]
for name, model in models.items():
    right.plot(line, model.predict(line), label=name, lw=2)
right.set(xlabel="feature", ylabel="demand", title="What is ordered")
right.legend()
plt.show()
