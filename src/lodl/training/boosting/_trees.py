"""Boosted trees of any framework: while they grow, as a model, and in files."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.training._early_stopping import EarlyStopping
from lodl.training._features import as_rows, check_features, count_rows
from lodl.training._learner import Predictor, shape_in
from lodl.training.boosting._objective import LossAt

N_FOR_THREADS = 100_000
"""Numbers to predict from which more than one thread is worth it."""


class Trees(ABC):
    """Fitted trees of one framework.

    Attributes:
        n_rounds: Rounds of boosting that count; there may be more trees.
    """

    n_rounds: int

    @abstractmethod
    def margin(self, x: Any) -> Array:
        """Return what the trees add to predictions, one row for each of `x`, of any layout."""

    @abstractmethod
    def save(self, path: Path) -> dict[str, Any]:
        """Write the trees to a file and return what is needed to read it, as JSON."""


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

    Attributes:
        n_rounds: Rounds so far.
    """

    n_rounds = 0

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
    """A constant plus the trees of one or two fits. A subclass per framework loads its files.

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

    def predict(self, x: Any) -> Array:
        checked = check_features(x, n_features=self.n_features)
        return self.margin(as_rows(checked)).reshape(count_rows(checked), *self.label_shape)

    def margin(self, rows: Any) -> Array:
        """Return predictions of shape (rows, outputs)."""
        total = np.tile(self.centre, (count_rows(rows), 1))
        for trees in self.parts:
            total += trees.margin(rows).reshape(total.shape)
        return total

    def save(self, folder: str | PathLike[str]) -> None:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        content = {
            "centre": self.centre.tolist(),
            "label_shape": self.label_shape,
            "n_features": self.n_features,
            "n_steps": self.n_steps,
            "parts": [part.save(part_file(path, i)) for i, part in enumerate(self.parts)],
        }
        self.write(path, content)

    @classmethod
    def load(cls, folder: Path, **_: Any) -> Self:
        content = cls.read(folder)
        parts = tuple(
            cls.load_trees(part_file(folder, i), part, content)
            for i, part in enumerate(content["parts"])
        )
        centre, label_shape = np.array(content["centre"], dtype=np.float64), shape_in(content)
        fits = centre.ndim == 1 and centre.size and math.prod(label_shape) % centre.size == 0
        if not fits or not np.isfinite(centre).all():
            raise ValueError(f"`centre` does not fit labels of shape {label_shape}")
        for part in parts:
            check_count("n_rounds", part.n_rounds, minimum=0)
        n_features = check_count("n_features", content["n_features"])
        n_steps = check_count("n_steps", content["n_steps"], minimum=0)
        return cls(centre, parts, label_shape, n_features, n_steps)

    @staticmethod
    @abstractmethod
    def load_trees(path: Path, part: dict[str, Any], content: dict[str, Any]) -> Trees:
        """Return the trees that `Trees.save` wrote.

        Args:
            path: The argument of `Trees.save`.
            part: Its result.
            content: All of `predictor.json`, not checked yet.
        """


def part_file(folder: Path, number: int) -> Path:
    """Return the path of the trees of a fit, without an ending."""
    return folder / f"trees_{number}"


def categories_in(part: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the categories of columns in `predictor.json`, checked."""
    categories: dict[str, list[Any]] = part["categories"]
    if not all(isinstance(names, list) for names in categories.values()):
        raise ValueError("`categories` must be lists")
    return categories
