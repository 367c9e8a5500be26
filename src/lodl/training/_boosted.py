"""Boosted trees of any framework as a model, and their files."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.training._features import as_rows, check_features, count_rows
from lodl.training._learner import Predictor, shape_in


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
class BoostedPredictor(Predictor):
    """A constant plus the trees of one or two fits.

    Attributes:
        centre: The constant of each output.
        parts: Trees of 2-stage, then those of the learned loss.
        label_shape: Shape of a label.
        n_features: Number of features it was trained with.
        n_steps: Rounds of boosting on the loss it was trained for.
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
        """Write the model to a folder that `lodl.training.load_predictor` reads."""
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
    @abstractmethod
    def load_trees(cls, folder: Path, content: dict[str, Any]) -> Sequence[Trees]:
        """Return the trees in a folder, checked against `predictor.json`."""

    @classmethod
    def load(cls, folder: Path, **_: Any) -> Self:
        content = cls.read(folder)
        parts = tuple(cls.load_trees(folder, content))
        centre, label_shape = np.array(content["centre"], dtype=np.float64), shape_in(content)
        fits = centre.ndim == 1 and centre.size and math.prod(label_shape) % centre.size == 0
        if not fits or not np.isfinite(centre).all():
            raise ValueError(f"`centre` does not fit labels of shape {label_shape}")
        for part in parts:
            check_count("n_rounds", part.n_rounds, minimum=0)
        n_features = check_count("n_features", content["n_features"])
        n_steps = check_count("n_steps", content["n_steps"], minimum=0)
        return cls(centre, parts, label_shape, n_features, n_steps)


def part_file(folder: Path, number: int) -> Path:
    """Return where a predictor's trees are."""
    return folder / f"trees_{number}"


def categories_in(part: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the categories of columns in `predictor.json`, checked."""
    categories: dict[str, list[Any]] = part["categories"]
    if not all(isinstance(names, list) for names in categories.values()):
        raise ValueError("`categories` must be lists")
    return categories
