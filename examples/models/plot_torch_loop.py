"""
PyTorch: your own training loop
===============================

A learned loss is an ordinary `torch.nn.Module`. The loop stays yours: your model, your optimiser,
your batches. Only the criterion changes, and it needs to know *which* instances are in a batch.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import lodl
from lodl.domains import knapsack
from lodl.evaluation import decision_loss, regret
from lodl.training.torch import LearnedLossModule

domain = knapsack(sizes=(200, 1, 500), degree=6, noise=0.2)
problem, train, test = domain.problem, domain.splits.train, domain.splits.test

loss = lodl.learn_loss(problem, train.y, family=lodl.DecisionRanking(), n_samples=20)
print(loss)

# %%
# The same loop, with two criteria.

x, y = (torch.tensor(array, dtype=torch.float32) for array in (train.x, train.y))
x_test = torch.tensor(test.x, dtype=torch.float32)
criteria = {
    "squared error": lambda y_hat, index: nn.functional.mse_loss(y_hat, y[index]),
    "learned loss": LearnedLossModule(loss),
}
optimum = -decision_loss(problem, test.y, test.y).mean()
curves = {name: [] for name in criteria}

for name, criterion in criteria.items():
    torch.manual_seed(0)
    model = nn.Linear(x.shape[-1], y.shape[-1])
    nn.init.zeros_(model.weight)
    model.bias.data[:] = y.mean(dim=0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for epoch in range(61):
        if epoch % 5 == 0:
            y_hat = model(x_test).detach().numpy()
            curves[name].append(100 * regret(problem, y_hat, test.y).mean() / optimum)
        for index in torch.randperm(len(x)).split(50):
            optimiser.zero_grad()
            criterion(model(x[index]), index).backward()
            optimiser.step()
    print(f"{name:14} {curves[name][-1]:.1f}% of the value is lost on new instances")

# %%
# No solver runs inside the loop: all answers were collected before it, and the next model can use
# the same ones. (The test regret is computed along the way only to draw the picture.)

fig, ax = plt.subplots()
for name, values in curves.items():
    ax.plot(np.arange(len(values)) * 5, values, "o-", label=name)
ax.set(xlabel="epoch", ylabel="value lost on new knapsacks, %", ylim=(0, None))
ax.set_title("The same loop with another criterion")
ax.legend()
plt.show()
