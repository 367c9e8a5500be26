"""
The point at a glance: a line that falls, and one that rises
============================================================

This is the paper's first example. There are fifty items with one feature each, and the utility of
an item is a cubic function of its feature. The model is a straight line, and the item with the
highest prediction is picked. The least-squares line falls, because most of the cubic falls, so it
picks the worst item. A loss learned from the decisions knows that only the right end matters.
"""

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.training.linear import LinearLearner
from lodl_benchmarks.domains import linear_model
from lodl_benchmarks.quality import normalised_decision_quality

learner = LinearLearner()


def trained(seed):
    """Return the ends of both lines, and how well they decide."""
    domain = linear_model(seed, sizes=(100, 1, 200))
    train, test = domain.splits.train, domain.splits.test
    loss = lodl.learn_loss(
        domain.problem,
        train.y,
        family=lodl.DecisionHinges(),
        sampler=lodl.AllPerturbed(scale=1.0),
    )
    lines = []
    for one in (lodl.losses.squared_error_loss(train.y), loss):
        (model,) = learner.train(train.x, one)
        ends = model.predict(np.array([-1.0, 1.0])[None, :, None].repeat(25, axis=1))[0, [0, -1]]
        quality = normalised_decision_quality(domain.problem, model.predict(test.x), test.y)
        lines.append((ends, quality))
    return lines


results = [trained(seed) for seed in range(5)]
for name, rows in zip(("squared error", "learned loss"), zip(*results, strict=True), strict=True):
    rising = sum(ends[1] > ends[0] for ends, _ in rows)
    quality = np.mean([quality for _, quality in rows])
    print(f"{name:14} {rising} of {len(rows)} lines rise, decision quality {quality:.2f}")

# %%
# A decision quality of 0 is that of random predictions; 1 is that of the true utilities.

x = np.linspace(-1, 1, 200)
fig, ax = plt.subplots()
ax.plot(x, 10 * x**3 - 6.5 * x, color="0.6", lw=3, label="true utility")
for k, name in enumerate(("squared error: falls, picks the worst", "learned loss: rises")):
    for number, row in enumerate(results):
        ax.plot([-1, 1], row[k][0], color=f"C{k}", alpha=0.7, label=None if number else name)
ax.set(xlabel="feature", ylabel="utility", ylim=(-6, 6))
ax.legend(loc="upper left")
plt.show()
