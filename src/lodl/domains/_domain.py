"""A domain: a decision, data for it, and the shape of a model that predicts."""

from dataclasses import dataclass
from typing import Literal

from lodl.datasets import Splits
from lodl.problems import Problem


@dataclass(frozen=True)
class ModelShape:
    """The default model of a domain, described without a framework.

    The model works item by item: it maps the last axis of `x`, of shape (n, items, n_features), to
    `n_outputs` numbers, and the result is brought into the shape of the labels.

    Attributes:
        n_features: Numbers known of an item.
        n_outputs: Numbers predicted for an item.
        hidden: Widths of the hidden layers, each followed by a ReLU; empty for a linear model.
        output: What is applied to the last layer.
    """

    n_features: int
    n_outputs: int
    hidden: tuple[int, ...]
    output: Literal["identity", "relu", "tanh"]


@dataclass(frozen=True, eq=False)
class Domain:
    """Everything an experiment needs to know.

    Attributes:
        problem: Solver, objective and sense.
        splits: Instances of train, validation and test.
        model: The shape of the model that the paper trains.
    """

    problem: Problem
    splits: Splits
    model: ModelShape
