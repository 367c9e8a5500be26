"""Knapsack: data, problem and model shapes, with features of the whole or of each item."""

from lodl.domains._knapsack._domain import item_knapsack, knapsack
from lodl.domains._knapsack._problem import Knapsack

__all__ = ["Knapsack", "item_knapsack", "knapsack"]
