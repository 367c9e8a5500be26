"""
Portfolio: where a learned loss does not help, and why
======================================================

Tomorrow's returns can hardly be predicted. The best a model can do is to predict the mean, and no
loss changes that: whatever a model adds to the mean is mostly noise, and the solver acts on it. The
learner finds this out by itself, because it also tries predictions pulled towards the mean, and
judges them by decisions on held-out instances. Problem and data come with the benchmarks (`pip
install ./benchmarks` in a clone).
"""

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.training.linear import LinearLearner
from lodl_benchmarks.domains import portfolio
from lodl_benchmarks.quality import quality_scale

domain = portfolio(sizes=(80, 1, 120), n_stocks=20)
problem, train, test = domain.problem, domain.splits.train, domain.splits.test

loss = lodl.learn_loss(problem, train.y, context=train.context, family=lodl.DecisionHinges())
learner = LinearLearner()
predictions = {
    "squared error": learner.train(train.x, lodl.losses.squared_error_loss(train.y))[0],
    "learned loss": learner.train(train.x, loss)[0],
}

# %%
# As random predictions we take the returns of other days: what a model that knows nothing would
# say.

rng = np.random.default_rng(0)
y_random = np.stack([rng.permutation(test.y) for _ in range(5)])
scale = quality_scale(problem, test.y, context=test.context, y_random=y_random)
mean = train.y.mean(axis=0)


def quality(y_hat):
    """Return the decision quality of predictions: 0 is random, 1 the true returns."""
    gained = -lodl.evaluation.decision_loss(problem, y_hat, test.y, context=test.context)
    return float(scale.normalise(gained))


shares = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
curves = {}
for name, model in predictions.items():
    y_hat = model.predict(test.x)
    curves[name] = [quality(mean + share * (y_hat - mean)) for share in shares]
    correlation = np.corrcoef((y_hat - mean).ravel(), (test.y - mean).ravel())[0, 1]
    print(
        f"{name:14} quality {curves[name][-1]:.2f}; predicting only the mean: {curves[name][0]:.2f}"
    )
    print(f"{'':14} correlation of what it adds with the truth: {correlation:+.3f}")

# %%
# The more the predictions are pulled towards the mean, the better the decisions. That is a sign to
# keep squared error, to shrink the predictions, or to look for better features.
# `DecisionFocusedRegressor` does the first two by itself.

fig, ax = plt.subplots()
for name, values in curves.items():
    ax.plot(shares, values, "o-", label=name)
ax.axhline(curves["squared error"][0], color="0.6", ls="--", label="predicting the mean every day")
ax.set(
    xlabel="how much of the model's deviation from the mean is kept",
    ylabel="decision quality on test days",
    title="The more the model says about tomorrow, the worse the portfolio",
)
ax.legend()
plt.show()
