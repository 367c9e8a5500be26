r"""Boosted trees of any framework: their objective, while they grow, as a model, and in files.

Boosting takes Newton steps from a diagonal Hessian, which would be huge where a learned loss has a
Hessian of nearly 0. So:

- **Losses fitted to regrets** have their curvature plus its mean.
- **Losses made of decisions** have a constant Hessian of 10 c, c = rms(gradient) / sd(label) at the
  mean label: a step along a gradient of ordinary size is a tenth of a deviation.

Gradients and Hessians are divided by the mean Hessian, so that parameters in its unit
(`min_child_weight`, `reg_lambda`, `min_sum_hessian`) act as they do with squared error: with small
Hessians XGBoost silently grows trees without a split.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array, FilePath
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss
from lodl.training._features import as_rows, check_features
from lodl.training._learner import EarlyStopping, Predictor

_N_FOR_THREADS = 100_000  # numbers to predict
_CAUTION = 10.0  # divides the steps on losses made of decisions


def objective(loss: LearnedLoss) -> "BoostingObjective":
    """Return a learned loss as a custom objective of XGBoost or LightGBM.

    Use it for the instances of the loss, in its order, or one row for each item: in
    `xgboost.train(..., obj=objective(loss))`, `lightgbm.train({"objective": objective(loss), ...})`
    or the regressors' `objective=`. Labels have shape (n, D); for LightGBM, if D is more than 1,
    give zeros as labels and `num_class=D`. Parameters such as `min_child_weight` act as they do
    with squared error. With a custom objective XGBoost starts from 0.5: give `base_score`, or
    `base_margin` at both training and prediction. LightGBM starts from 0: give `init_score`, and
    add it to what `predict` returns.

    Example:
        >>> import lightgbm, numpy as np, xgboost
        >>> from lodl.losses import squared_error_loss
        >>> from lodl.training.boosting import objective
        >>> x, y = np.arange(80.0).reshape(80, 1), np.arange(160.0).reshape(80, 2)
        >>> loss = squared_error_loss(y)
        >>> data = xgboost.DMatrix(x, label=y)
        >>> parameters = {"base_score": y.mean(), "num_target": 2}
        >>> xgboost.train(parameters, data, obj=objective(loss)).predict(data).shape
        (80, 2)
        >>> start = np.tile(y.mean(axis=0), (80, 1))
        >>> data = lightgbm.Dataset(x, label=np.zeros(80), init_score=start)
        >>> parameters = {"objective": objective(loss), "num_class": 2, "verbosity": -1}
        >>> (start + lightgbm.train(parameters, data).predict(x)).shape
        (80, 2)
    """
    return BoostingObjective.of(loss)


@dataclass(frozen=True, eq=False)
class BoostingObjective:
    """Gradient and Hessian of a learned loss, as XGBoost and LightGBM call them, of mean 1."""

    loss: LearnedLoss
    floor: float  # added to the curvature, in the unit of the loss
    unit: float  # mean of their sum
    start: Array  # predictions that trees are added to. XGBoost would keep them in single precision

    @classmethod
    def of(cls, loss: LearnedLoss, start: Array | float = 0.0) -> "BoostingObjective":
        """Return the objective of the instances of a loss."""
        start = np.asarray(start)
        mean = np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)
        if loss.family.uses_slopes:
            size = float(np.sqrt(np.mean(np.square(loss.gradient(mean)))))
            spread = float(np.sqrt(np.var(loss.y, axis=0).mean())) or 1.0
            constant = _CAUTION * size / spread or 1.0
            return cls(loss, constant, constant, start)
        curvature = loss.curvature(mean)
        is_flat = np.ptp(curvature) == 0  # squared error
        floor = 0.0 if is_flat else float(curvature.mean())
        return cls(loss, floor, float(curvature.mean()) + floor or 1.0, start)

    @property
    def is_large(self) -> bool:
        """Whether more than one thread is worth it."""
        return self.start.size >= _N_FOR_THREADS

    def __call__(self, first: Any, second: Any) -> tuple[Array, Array]:
        """Return gradient and Hessian of `(predictions, data)` or `(labels, predictions)`."""
        added = np.asarray(second if isinstance(second, np.ndarray) else first)
        start = self.start.reshape(added.shape) if self.start.ndim else self.start
        return self.derivatives(start + added)

    def derivatives(self, y_hat: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian in the shape of the predictions of all instances in order."""
        n, *label_shape = self.loss.y.shape
        if y_hat.size != self.loss.y.size:
            wanted = f"of the {n} instances of the loss, with labels of shape {tuple(label_shape)}"
            got = f"shape {y_hat.shape}. Use `loss.subset(index)` for some of the instances"
            raise InvalidInputError(f"Predictions must be {wanted}, got {got}.")
        predictions = y_hat.reshape(self.loss.y.shape)
        gradient = (self.loss.gradient(predictions) / self.unit).reshape(y_hat.shape)
        if self.loss.family.uses_slopes:
            return gradient, np.ones(y_hat.shape)
        hessian = (self.loss.curvature(predictions) + self.floor) / self.unit
        return gradient, hessian.reshape(y_hat.shape)


@dataclass(frozen=True, eq=False)
class Trees:
    """Fitted trees of one framework."""

    booster: Any  # the framework's object, which may have grown further
    n_rounds: int  # rounds of boosting that count
    options: dict[str, Any] = field(default_factory=dict)  # how to read features, as JSON
    categories: dict[str, list[Any]] = field(default_factory=dict)  # by categorical column
    output: int | None = None  # the only output that they predict


class Boosting(ABC):
    """Trees of one framework that grow on one set of rows, with an estimator's parameters."""

    n_rounds = 0

    @abstractmethod
    def __init__(self, estimator: Any, seed: int, x: Any, objective: BoostingObjective) -> None: ...

    @abstractmethod
    def grow(self) -> bool:
        """Add a round. Returns False if no leaf can be split."""

    @abstractmethod
    def watch(self, x: Any) -> Callable[[], Array]:
        """Return a function, called after every round, of what all rounds add to predictions."""

    @abstractmethod
    def trees(self, n_rounds: int) -> Trees:
        """Return the trees of the first rounds."""

    def run(
        self, n_rounds: int, others: tuple[Any, Array, LearnedLoss] | None = None, patience: int = 1
    ) -> int:
        """Grow until `n_rounds` or out of patience. Returns the best round.

        `others` has the rows that stop it, their first predictions (rows, outputs), and their loss.
        """
        stopping = EarlyStopping(patience - 1, 1)
        if others is not None:
            (rows, start, loss), margin = others, others[1]
            added = self.watch(rows)
        while True:
            if others is not None:
                score = loss.value(margin.reshape(loss.y.shape)).mean()
                stopping.update(np.array([score]), self.n_rounds)
            is_done = not len(stopping.running) or self.n_rounds >= n_rounds
            if is_done or not self.grow():
                return int(stopping.best_steps[0])
            if others is not None:
                margin = start + added().reshape(start.shape)


@dataclass(frozen=True, eq=False)
class BoostedPredictor(Predictor):
    """A constant plus the trees of several fits. Each framework has a subclass."""

    suffix: ClassVar[str]  # ends the name of a file of trees
    centre: Array  # the constant of each output
    parts: tuple[Trees, ...]  # of the baseline and the learned loss, or of a user's own fits
    label_shape: tuple[int, ...]
    n_features: int
    n_steps: int  # rounds of boosting on the loss

    @staticmethod
    @abstractmethod
    def trees_of(model: Any, x: Any) -> Trees:
        """Return the trees of a fitted regressor, which have its constant."""

    @staticmethod
    @abstractmethod
    def added(trees: Trees, x: Any) -> Array:
        """Return the sum of the trees' outputs, one row for each of `x`, of any layout."""

    @classmethod
    def write_trees(cls, trees: Trees, path: Path) -> None:
        """Write the framework's object to a file. `path` has no suffix yet."""
        trees.booster.save_model(path.with_suffix(cls.suffix))

    @staticmethod
    @abstractmethod
    def read_trees(path: Path, trees: Trees, content: dict[str, Any]) -> Any:
        """Return the framework's object for `trees`, given the content of `predictor.json`."""

    def predict(self, x: Any) -> Array:
        checked = check_features(x, n_features=self.n_features)
        return self.margin(as_rows(checked)).reshape(len(checked), *self.label_shape)

    def margin(self, rows: Any) -> Array:
        """Return predictions of shape (rows, outputs)."""
        total = np.tile(self.centre, (len(rows), 1))
        for trees in self.parts:
            outputs = slice(None) if trees.output is None else [trees.output]
            total[:, outputs] += self.added(trees, rows).reshape(len(rows), -1)
        return total

    def save(self, folder: FilePath) -> None:
        names = ("n_rounds", "options", "categories", "output")
        parts = [{name: getattr(trees, name) for name in names} for trees in self.parts]
        path = self.write(folder, centre=self.centre.tolist(), parts=parts)
        for i, trees in enumerate(self.parts):
            self.write_trees(trees, path / f"trees_{i}")

    @classmethod
    def load(cls, folder: Path, **_: Any) -> Self:
        content = cls.read(folder)
        centre, label_shape = np.array(content["centre"], dtype=np.float64), content["label_shape"]
        parts = []
        for i, part in enumerate(content["parts"]):
            n_rounds = check_count("n_rounds", part["n_rounds"], minimum=0)
            if not all(isinstance(names, list) for names in part["categories"].values()):
                raise ValueError("`categories` must be lists")
            output = part["output"]
            if output is not None and check_count("output", output, minimum=0) >= centre.size:
                raise ValueError(f"`output` must be below {centre.size}")
            trees = Trees(None, n_rounds, part["options"], part["categories"], output)
            booster = cls.read_trees(folder / f"trees_{i}", trees, content)
            parts.append(replace(trees, booster=booster))
        fits = centre.ndim == 1 and centre.size and math.prod(label_shape) % centre.size == 0
        if not fits or not np.isfinite(centre).all():
            raise ValueError(f"`centre` does not fit labels of shape {label_shape}")
        return cls(centre, tuple(parts), label_shape, content["n_features"], content["n_steps"])
