"""
Knapsack
========

First.
"""

import matplotlib.pyplot as plt

import lodl
from lodl.domains import knapsack

domain = knapsack(sizes=(40, 5, 20))
train = domain.splits.train
loss = lodl.learn_loss(domain.problem, train.y, family=lodl.DecisionHinges())
print(loss)
plt.plot([1, 2])
