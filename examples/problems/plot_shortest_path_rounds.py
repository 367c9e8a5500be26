"""
Shortest path: sample again where the model predicts
====================================================

A 9 x 9 grid has 12,870 paths from corner to corner. Twenty wrong predictions around a label lead to
only a few of them, and not to the ones that the model will be tempted by. *Rounds* close the gap:
train, call the solver at the model's own predictions, learn from all answers so far, and train
again. Each new answer is a cutting plane of the loss.
"""

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.domains import shortest_path
from lodl.evaluation import decision_loss, regret
from lodl.training.linear import LinearLearner

GRID = (9, 9)
domain = shortest_path(sizes=(150, 50, 500), grid=GRID, degree=6, noise=0.3)
both, test = domain.splits.train_and_validation, domain.splits.test
n_train = len(domain.splits.train.y)
optimum = decision_loss(domain.problem, test.y, test.y).mean()

learner = LinearLearner()


def train(loss):
    """Train on the first instances, stop early on the others, and predict for all of them."""
    is_first = np.arange(len(both.y)) < n_train
    (model,) = learner.train(both.x, loss, masks=is_first[np.newaxis])
    return model, model.predict(both.x)


rounds = lodl.learning.learn_in_rounds(
    domain.problem,
    both.y,
    train,
    schedule=lodl.learning.Schedule(n_samples=10, n_rounds=5, n_per_round=4),
    validation=np.arange(n_train, len(both.y)),
)
print(rounds)

# %%
# Regret on 500 new instances, relative to the cost of the best path:

two_stage, _ = train(lodl.losses.squared_error_loss(both.y))
base = regret(domain.problem, two_stage.predict(test.x), test.y).mean() / optimum
scores = [
    regret(domain.problem, one.model.predict(test.x), test.y).mean() / optimum
    for one in rounds.rounds
]
best = scores[[one is rounds.best for one in rounds.rounds].index(True)]
print(f"squared error {base:.1%}; samples at labels only {scores[0]:.1%}; best round {best:.1%}")

# %%
# Right: one of the new instances. The darker an arc, the higher its true cost.


def draw(ax, z, colour, width, label):
    """Draw the arcs of a path."""
    rows, columns = GRID
    arc = 0
    for row in range(rows):
        for column in range(columns - 1):
            if z[arc] > 0:
                ax.plot([column, column + 1], [-row, -row], color=colour, lw=width, label=label)
                label = None
            arc += 1
        for column in range(columns if row < rows - 1 else 0):
            if z[arc] > 0:
                ax.plot([column, column], [-row, -row - 1], color=colour, lw=width, label=label)
                label = None
            arc += 1


fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
calls = [one.n_calls for one in rounds.rounds]
left.plot(calls, np.array(scores) * 100, "o-", color="C1", label="learned loss, round by round")
left.axhline(base * 100, color="C0", ls="--", label="squared error")
left.set(xlabel="solver calls", ylabel="extra cost on new instances, %", ylim=(0, None))
left.legend()

worst = regret(domain.problem, two_stage.predict(test.x), test.y)
ours = regret(domain.problem, rounds.best.model.predict(test.x), test.y)
i = int(np.argsort(worst - ours)[-10])
grey = test.y[i] / test.y[i].max()
for arc in range(len(grey)):
    draw(right, np.eye(len(grey))[arc], str(0.92 - 0.5 * grey[arc]), 2, None)
draw(right, domain.problem.solve(test.y[i], None), "#4c9f70", 9, "best")
draw(right, domain.problem.solve(two_stage.predict(test.x)[i], None), "C0", 5, "squared error")
draw(
    right, domain.problem.solve(rounds.best.model.predict(test.x)[i], None), "C1", 2, "learned loss"
)
right.set_axis_off()
right.set_aspect("equal")
right.legend(loc="upper right")
plt.show()
