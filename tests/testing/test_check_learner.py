from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from lodl.errors import InvalidInputError, LearnerError
from lodl.testing import check_learner
from lodl.training import Learner, Predictor


@dataclass
class Line(Predictor):
    weights: np.ndarray
    n_steps: int = 0

    def predict(self, x):
        return np.column_stack([np.ones(len(x)), x]) @ self.weights


class FirstLine(Line):
    """A predictor that takes the first model for the mean of several."""

    @classmethod
    def mean(cls, predictors):
        return list(predictors[:1])


@dataclass
class SavedLine(Line):
    """A predictor with a file, which may be missing or wrong."""

    kind: ClassVar[str] = "line of a test"
    n_features: int = 2
    label_shape: tuple[int, ...] = (3,)
    fault: str = ""

    def predict(self, x):
        return super().predict(x) + (self.fault == "broken file")

    def save(self, folder):
        path = self.write(folder)
        if self.fault != "no file":
            np.save(path / "weights.npy", self.weights)

    @classmethod
    def load(cls, folder, **_):
        return cls(np.load(folder / "weights.npy"), cls.read(folder)["n_steps"])


class GradientDescent(Learner):
    """A learner for linear models in a few lines of NumPy, and ways to break it."""

    def __init__(self, fault=None):
        self.fault, self.n_trained = fault, 0

    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        if self.fault == "no masks":
            return [self.trained(x, loss, n_steps)]
        masks = np.ones((1, len(x)), dtype=bool) if masks is None else masks
        if self.fault == "sees all":
            masks = masks | True
        if self.fault == "prepared" and prepared:
            n_steps = 3
        if self.fault == "together":
            masks = np.tile(masks.all(axis=0), (len(masks), 1))
        return [self.trained(x, loss, n_steps, mask) for mask in masks]

    def prepare(self, x, y, masks=None):
        return True

    def trained(self, x, loss, n_steps, mask=True):
        self.n_trained += 1
        some = np.flatnonzero(np.broadcast_to(mask, len(x)))
        if self.fault == "writes":
            x[0, 0] += 1
        x, loss = x[some], loss.subset(some)
        features = np.column_stack([np.ones(len(x)), x])
        weights = np.linalg.lstsq(features, loss.y, rcond=None)[0]
        n_steps = 30 if n_steps is None else n_steps
        rate = 0.5 / np.abs(loss.curvature(loss.y)).max() / (features**2).sum(1).max()
        for _ in range(0 if self.fault == "ignores the loss" else n_steps):
            gradient = loss.gradient(features @ weights)
            gradient = np.roll(gradient, self.fault == "other rows", axis=0)
            weights = weights - rate * features.T @ gradient / len(x)
        if self.fault == "random":
            weights = weights + self.n_trained
        if self.fault == "poor":
            weights = -weights
        kind = SavedLine if "file" in str(self.fault) else Line
        kind = FirstLine if self.fault == "first of two" else kind
        model: Any = kind(weights, None if self.fault == "no steps" else n_steps)
        if kind is SavedLine:
            model.fault = self.fault
        if self.fault == "shape":
            model.predict = lambda x: np.ones((len(x), 1))
        if self.fault == "batch":
            model.predict = lambda x: Line.predict(model, x - x.mean(axis=0))
        return model


@pytest.mark.parametrize("fault", [None, "file"])
def test_a_learner_in_numpy_keeps_the_contract(fault):
    check_learner(GradientDescent(fault))


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        ("ignores the loss", "does not move their predictions that way, without masks"),
        ("other rows", "does not move their predictions that way, with masks"),
        ("first of two", "`mean` of two models predicts otherwise"),
        ("random", "Training twice with the same arguments gives different models"),
        ("writes", "changed its arguments"),
        ("poor", "predicts new labels no better than their mean"),
        ("no steps", "`n_steps` of a predictor must be a whole number"),
        ("no masks", "must return a list of 2 models, one per mask"),
        ("sees all", "Labels outside its mask change a model that nothing stops"),
        ("prepared", "With what `prepare` returned, `train` gives another model"),
        ("together", "A model depends on the other masks"),
        ("broken file", "A saved model is another model"),
        ("no file", "A model cannot be saved or loaded"),
        ("shape", "`predict` must return finite numbers of shape"),
        ("batch", "depends on the other instances"),
    ],
)
def test_a_fault_is_named(fault, match):
    with pytest.raises(LearnerError, match=match):
        check_learner(GradientDescent(fault))


def test_a_class_is_no_learner():
    with pytest.raises(
        InvalidInputError, match=r"must be an instance, got the class GradientDescent"
    ):
        check_learner(GradientDescent)
