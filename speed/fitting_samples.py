"""Samples of the Linear Model for the fitting scripts, in a file that workers can import."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from lodl._typing import Array
from lodl.oracle import Answers

N_SAMPLES, DIM = 5_000, 50


@cache
def shared_errors() -> Array:
    """Return the errors that all instances share, so that drawing them is not timed."""
    return np.random.default_rng(0).standard_normal((N_SAMPLES, DIM))


@dataclass(frozen=True)
class TopOneSamples:
    """Samples of the Linear Model, made when an instance is asked for."""

    numbers: tuple[int, ...]

    @property
    def n_instances(self) -> int:
        return len(self.numbers)

    @property
    def y(self) -> Array:
        x = np.stack([np.random.default_rng(i).uniform(-1, 1, DIM) for i in self.numbers])
        return 10 * (x**3 - 0.65 * x)

    def select(self, indices: range, /) -> "TopOneSamples":
        return replace(self, numbers=tuple(self.numbers[i] for i in indices))

    def __getitem__(self, index: int, /) -> Answers:
        y = self.y[index]
        y_hat = y + shared_errors()
        return Answers(y, y_hat, y.max() - y[y_hat.argmax(axis=1)])

    def provenance(self) -> dict[str, str]:
        return {}
