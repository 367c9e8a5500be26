"""Boosted trees of any framework: while they grow, as a model, and in files."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.training._early_stopping import EarlyStopping
from lodl.training._features import as_rows, check_features, count_rows
from lodl.training._learner import Predictor, shape_in
from lodl.training.boosting._objective import BoostingObjective, LossAt

N_FOR_THREADS = 100_000
"""Numbers to predict from which more than one thread is worth it."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Fitted trees of one framework.

    Attributes:
        booster: The framework's object. It may have grown further.
        n_rounds: Rounds of boosting that count.
        options: Options of the framework for reading features, as JSON.
        categories: Categories of each categorical column.
    """

    booster: Any
    n_rounds: int
    options: dict[str, Any] = field(default_factory=dict)
    categories: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Watched:
    """Instances that stop boosting.

    Attributes:
        x: Features, one row each.
        margin: Predictions before the first round, shape (rows, outputs).
        loss: Their loss.
    """

    x: Any
    margin: Array
    loss: LossAt


class Boosting(ABC):
    """Trees of one framework that grow on one set of rows.

    Args:
        estimator: The regressor, which has the parameters of the trees.
        seed: Random seed of the trees, unless the estimator has one.
        x: Features, one row each.
        margin: Predictions to start from, shape (rows, outputs).
        objective: The objective to minimise.

    Attributes:
        n_rounds: Rounds so far.
    """

    n_rounds = 0

    @abstractmethod
    def __init__(
        self, estimator: Any, seed: int, x: Any, margin: Array, objective: BoostingObjective
    ) -> None: ...

    @abstractmethod
    def grow(self) -> bool:
        """Add a round. Returns False if no leaf can be split."""

    @abstractmethod
    def watch(self, x: Any) -> Callable[[], Array]:
        """Return a function that returns what all rounds so far add to the predictions of rows.

        It is called after every round, from the first on.
        """

    @abstractmethod
    def trees(self, n_rounds: int) -> Trees:
        """Return the trees of the first rounds."""

    def run(
        self, n_rounds: int, watched: Sequence[Watched] = (), patience: int = 1
    ) -> list[tuple[int, Array]]:
        """Grow to `n_rounds` rounds, or until the loss of every watched set stopped falling.

        Args:
            n_rounds: The most rounds.
            watched: Instances that stop boosting. Boosting must start with them.
            patience: Rounds without a better loss after which a set has stopped.

        Returns:
            For each watched set, its best round and its predictions then.
        """
        stopping = EarlyStopping(patience - 1, len(watched))
        added = [self.watch(rows.x) for rows in watched]
        margins = [rows.margin for rows in watched]
        best = list(margins)

        def look() -> None:
            running = stopping.running.tolist()
            stopping.update(
                np.array([watched[i].loss.value(margins[i]) for i in running]), self.n_rounds
            )
            for i, is_better in zip(running, stopping.is_better, strict=True):
                best[i] = margins[i] if is_better else best[i]

        look()
        while self.n_rounds < n_rounds and self.grow():
            margins = [
                rows.margin + now().reshape(rows.margin.shape)
                for rows, now in zip(watched, added, strict=True)
            ]
            look()
            if watched and not len(stopping.running):
                break
        return list(zip(stopping.best_steps.tolist(), best, strict=True))


@dataclass(frozen=True, eq=False)
class BoostedPredictor(Predictor):
    """A constant plus the trees of one or two fits. Each framework has a subclass.

    Attributes:
        centre: The constant of each output.
        parts: Trees of the baseline, then trees of the learned loss.
        label_shape: Shape of a label.
        n_features: Number of features.
        n_steps: Rounds of boosting on the loss.
    """

    centre: Array
    parts: tuple[Trees, ...]
    label_shape: tuple[int, ...]
    n_features: int
    n_steps: int

    @staticmethod
    @abstractmethod
    def added(trees: Trees, x: Any) -> Array:
        """Return the sum of the trees' outputs, one row for each of `x`, of any layout."""

    @staticmethod
    @abstractmethod
    def write_trees(trees: Trees, path: Path) -> None:
        """Write the framework's object to a file. `path` has no suffix yet."""

    @staticmethod
    @abstractmethod
    def read_trees(path: Path, trees: Trees, content: dict[str, Any]) -> Any:
        """Return the framework's object that `write_trees` wrote.

        Args:
            path: The path given to `write_trees`.
            trees: The trees without it.
            content: All of `predictor.json`, not checked yet.
        """

    def predict(self, x: Any) -> Array:
        checked = check_features(x, n_features=self.n_features)
        return self.margin(as_rows(checked)).reshape(count_rows(checked), *self.label_shape)

    def margin(self, rows: Any) -> Array:
        """Return predictions of shape (rows, outputs)."""
        total = np.tile(self.centre, (count_rows(rows), 1))
        for trees in self.parts:
            total += self.added(trees, rows).reshape(total.shape)
        return total

    def save(self, folder: str | PathLike[str]) -> None:
        parts = [
            {name: getattr(trees, name) for name in ("n_rounds", "options", "categories")}
            for trees in self.parts
        ]
        names = ("label_shape", "n_features", "n_steps")
        values = {name: getattr(self, name) for name in names}
        path = self.write(folder, {"centre": self.centre.tolist(), **values, "parts": parts})
        for i, trees in enumerate(self.parts):
            self.write_trees(trees, path / f"trees_{i}")

    @classmethod
    def load(cls, folder: Path, **_: Any) -> Self:
        content = cls.read(folder)
        parts = []
        for i, part in enumerate(content["parts"]):
            n_rounds = check_count("n_rounds", part["n_rounds"], minimum=0)
            if not all(isinstance(names, list) for names in part["categories"].values()):
                raise ValueError("`categories` must be lists")
            trees = Trees(None, n_rounds, part["options"], part["categories"])
            booster = cls.read_trees(folder / f"trees_{i}", trees, content)
            parts.append(replace(trees, booster=booster))
        centre, label_shape = np.array(content["centre"], dtype=np.float64), shape_in(content)
        fits = centre.ndim == 1 and centre.size and math.prod(label_shape) % centre.size == 0
        if not fits or not np.isfinite(centre).all():
            raise ValueError(f"`centre` does not fit labels of shape {label_shape}")
        n_features = check_count("n_features", content["n_features"])
        n_steps = check_count("n_steps", content["n_steps"], minimum=0)
        return cls(centre, tuple(parts), label_shape, n_features, n_steps)
