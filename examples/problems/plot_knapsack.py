"""
Knapsack: the same linear model, half the regret
================================================

Sixteen items, two kinds of weight, and room for about four of them. The value of an item depends on
five features in a way that no linear model can follow, so the model has to be wrong somewhere.
Squared error spreads its mistakes evenly. A learned loss puts them where they do not change what is
packed.
"""

import matplotlib.pyplot as plt
import numpy as np

import lodl
from lodl.domains import knapsack
from lodl.evaluation import regret
from lodl.training.linear import LinearLearner

domain = knapsack(sizes=(200, 1, 1000), degree=6, noise=0.2)
train, test = domain.splits.train, domain.splits.test

# %%
# The regressor trains on squared error. It asks the solver what wrong predictions around each label
# would cost, and then about predictions that its models make. It trains on the losses learned from
# the answers, and keeps whatever decides best on the third of the instances that it held out.

model = lodl.DecisionFocusedRegressor(
    domain.problem,
    LinearLearner(),
    families=[lodl.DecisionHinges(), lodl.DecisionRanking()],
    n_rounds=2,
)
model.fit(train.x, train.y, validation=1 / 3)
print(model.summary())

# %%
# On a thousand new instances, compared with ordinary least squares:

ones = np.column_stack([np.ones(len(train.x)), train.x])
weights = np.linalg.lstsq(ones, train.y, rcond=None)[0]
least_squares = np.column_stack([np.ones(len(test.x)), test.x]) @ weights

before = regret(domain.problem, least_squares, test.y)
after = model.regret(test.x, test.y)
difference = before - after
error = difference.std() / np.sqrt(len(difference))
print(f"value lost per knapsack: {before.mean():.2f} -> {after.mean():.2f}")
print(f"gain: {difference.mean():.2f} ± {1.96 * error:.2f} (95% interval)")

# %%
# Left: the share of knapsacks that lose at most a given value. Right: one of them, item by item.
# The model trained on the learned loss is further from the true values, and still packs better.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for name, values in (("least squares", before), ("learned loss", after)):
    left.step(np.sort(values), np.linspace(0, 1, len(values)), where="post", label=name)
left.set(xlabel="value lost by the decision", ylabel="share of knapsacks", xlim=(0, None))
left.set_title("Regret of 1,000 new knapsacks")
left.legend()

i = int(np.argsort(difference)[-20])
y_hat = model.predict(test.x[i : i + 1])[0]
packed = [domain.problem.solve(values, None).astype(bool) for values in (least_squares[i], y_hat)]
order = np.argsort(test.y[i])
items = np.arange(len(order))
right.bar(items, test.y[i][order], color="0.85", label="true value")
for (name, values), chosen, marker in zip(
    (("least squares", least_squares[i]), ("learned loss", y_hat)), packed, "os", strict=True
):
    dots = right.plot(items, values[order], marker, ms=4, label=name, alpha=0.6)
    right.plot(items[chosen[order]], values[order][chosen[order]], marker, ms=10, mfc="none",
               color=dots[0].get_color())  # fmt: skip
right.set(xlabel="items, by their true value", ylabel="value", xticks=[])
right.set_title("One knapsack; rings mark what is packed")
right.legend()
plt.show()
