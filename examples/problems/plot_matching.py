"""
Matching: which car for which rider
===================================

There are six cars and six riders, and we predict how many minutes each car needs to reach each
rider. The best matching depends on differences between pairs. An error that is the same for all
pairs costs nothing; one that favours the wrong pair can cost a lot. The decision is a 6 x 6 matrix,
and the solver comes from SciPy.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

import lodl
from lodl.evaluation import decision_loss, regret
from lodl.training.linear import LinearLearner

K = 6


class Dispatch(lodl.LinearProblem):
    sense = "min"

    def solve(self, y_hat, context):
        z = np.zeros((K, K))
        z[linear_sum_assignment(y_hat)] = 1.0
        return z


# %%
# Driving through the centre takes longer. The model is linear in three features per pair and cannot
# follow that. The features have shape (instances, pairs, 3): one model predicts every pair.

rng = np.random.default_rng(0)
n = 700
car, rider = rng.uniform(0, 10, size=(2, n, K, 2))
way = car[:, :, None] - rider[:, None]
from_centre = np.linalg.norm((car[:, :, None] + rider[:, None]) / 2 - 5, axis=-1)
x = np.concatenate([np.abs(way), from_centre[..., None]], axis=-1).reshape(n, K * K, 3)
y = np.linalg.norm(way, axis=-1) ** 1.5 * (1 + 2 * np.exp(-(from_centre**2) / 6))
y = y * rng.gamma(20, 1 / 20, size=y.shape)
train, test = slice(0, 200), slice(200, n)

# %%
learner = LinearLearner()
model = lodl.DecisionFocusedRegressor(
    Dispatch(), learner, families=[lodl.DecisionHinges(), lodl.DecisionRanking()], n_rounds=2
)
model.fit(x[train], y[train])
print(model.summary())

(baseline,) = learner.train(x[train], lodl.losses.squared_error_loss(y[train]))
two_stage = baseline.predict(x[test])
before = regret(Dispatch(), two_stage, y[test])
after = model.regret(x[test], y[test])
best = decision_loss(Dispatch(), y[test], y[test])
error = 1.96 * (before - after).std() / np.sqrt(len(after))
print(f"extra minutes: {before.sum() / best.sum():.1%} -> {after.sum() / best.sum():.1%}")
print(f"gain: {(before - after).mean():.2f} ± {error:.2f} minutes per instance (95% interval)")

# %%
# An instance on which the two models disagree:

i = int(np.argsort(before - after)[-8])
fig, axes = plt.subplots(1, 2, figsize=(8.4, 4), sharex=True, sharey=True)
pairs = {
    f"squared error: {before[i]:.0f} minutes more than needed": two_stage[i],
    f"learned loss: {after[i]:.0f} minutes more": model.predict(x[test])[i],
}
cars, riders = car[test][i], rider[test][i]
for ax, (title, y_hat) in zip(axes, pairs.items(), strict=True):
    for k, j in np.argwhere(Dispatch().solve(y_hat, None)):
        ax.plot(*np.array([cars[k], riders[j]]).T, color="0.6", zorder=0)
    ax.add_patch(plt.Circle((5, 5), 2.5, color="C1", alpha=0.12, lw=0))
    ax.plot(*cars.T, "s", color="C0", ms=9, label="car")
    ax.plot(*riders.T, "o", color="C1", ms=8, label="rider")
    ax.set(title=title, xticks=[], yticks=[], xlim=(0, 10), ylim=(0, 10), aspect="equal")
axes[0].legend(loc="lower left")
plt.show()
