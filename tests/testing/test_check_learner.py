from dataclasses import dataclass

import numpy as np
import pytest

from lodl.errors import InvalidInputError, LearnerError
from lodl.testing import check_learner


@dataclass
class Line:
    weights: np.ndarray
    n_steps: int = 0

    def predict(self, x):
        return np.column_stack([np.ones(len(x)), x]) @ self.weights


class GradientDescent:
    """A learner for linear models in a few lines of NumPy, and ways to break it."""

    def __init__(self, fault=None):
        self.fault, self.n_trained = fault, 0

    def train(self, x, loss, *, x_validation=None, loss_validation=None, n_steps=None):
        self.n_trained += 1
        features = np.column_stack([np.ones(len(x)), x])
        weights = np.linalg.lstsq(features, loss.y, rcond=None)[0]
        n_steps = 30 if n_steps is None else n_steps
        rate = 0.5 / np.abs(loss.curvature(loss.y)).max() / (features**2).sum(1).max()
        for _ in range(0 if self.fault == "ignores the loss" else n_steps):
            weights = weights - rate * features.T @ loss.gradient(features @ weights) / len(x)
        if self.fault == "random":
            weights = weights + self.n_trained
        if self.fault == "writes":
            x[0, 0] += 1
        if self.fault == "poor":
            weights = -weights
        model = Line(weights, None if self.fault == "no steps" else n_steps)
        if self.fault == "shape":
            model.predict = lambda x: np.ones((len(x), 1))
        if self.fault == "batch":
            model.predict = lambda x: Line.predict(model, x - x.mean(axis=0))
        return model


def test_a_learner_in_numpy_keeps_the_contract():
    check_learner(GradientDescent())


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ("ignores the loss", "does not lower the predictions, without validation instances"),
        ("random", "Training twice with the same arguments gives different models"),
        ("writes", "changed its arguments"),
        ("poor", "predicts validation labels no better than their mean"),
        ("no steps", "`n_steps` of a predictor must be a whole number"),
        ("shape", "`predict` must return finite numbers of shape"),
        ("batch", "depends on the instances beside it"),
    ],
)
def test_a_fault_is_named(fault, match):
    with pytest.raises(LearnerError, match=match):
        check_learner(GradientDescent(fault))


def test_what_has_no_train_is_no_learner():
    with pytest.raises(InvalidInputError, match="`learner` must have a method `train`"):
        check_learner(GradientDescent)
