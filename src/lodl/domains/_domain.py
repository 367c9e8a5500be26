"""A domain: a problem, data for it, and the shape of a model."""

from dataclasses import dataclass
from typing import Literal

from lodl.domains._instances import Splits
from lodl.problems import Problem


@dataclass(frozen=True)
class ModelShape:
    """The default model of a domain, described without a framework.

    The model maps the last axis of `x` to `n_outputs` numbers, and the result is reshaped to the
    labels. Features of shape (n, n_items, n_features) make it work item by item; joint features of
    shape (n, n_features) predict the whole label at once.

    Attributes:
        n_features: Size of the last axis of the features.
        n_outputs: Numbers predicted for an item or, from joint features, the size of a label.
        hidden: Widths of the hidden layers, each followed by a ReLU; empty for a linear model.
        output: Activation of the last layer.
    """

    n_features: int
    n_outputs: int
    hidden: tuple[int, ...]
    output: Literal["identity", "relu", "tanh"]


@dataclass(frozen=True, eq=False)
class Domain:
    """A problem with data and a model: everything an experiment needs.

    Attributes:
        problem: Solver, objective and sense.
        splits: Training, validation and test instances.
        model: Shape of the model that the literature trains.
    """

    problem: Problem
    splits: Splits
    model: ModelShape
