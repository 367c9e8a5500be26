"""Randomised trials of treatments, drawn so that the true effects are known."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl_benchmarks.domains._streams import streams

COSTS = (1.0, 2.0, 4.0)
_SIZES = np.array([0.5, 0.9, 1.5])  # typical effects: of the dearer treatment less for its money
_N_FEATURES = 8


@dataclass(frozen=True, eq=False)
class Trial:
    """Customers of a trial: each got one arm, 0 for no treatment, by chance alone."""

    x: Array  # features, shape (n, p)
    arm: npt.NDArray[np.intp]  # shape (n,)
    response: Array  # to the arm, shape (n,)
    share: Array  # probability of each arm, shape (T + 1,)
    effects: Array | None = None  # true mean effect of each treatment, (n, T), if it is known


@dataclass(frozen=True)
class Setting:
    """A world: how customers respond without a treatment, and what treatments add."""

    is_linear: bool  # whether effects are linear in the features, and the response without, too
    baseline: float  # standard deviation of the mean response without a treatment
    noise: float = 1.0  # standard deviation of a response around its mean

    def draw(self, seed: int, n: int, part: str) -> Trial:
        """Draw `n` customers. Parts of one seed share the world."""
        (world,) = streams("budget world", seed, 1)
        rng, noise = streams(f"budget {part}", seed, 2)
        weights = world.normal(size=(_N_FEATURES, 5))
        weights /= np.linalg.norm(weights, axis=0)
        x = rng.normal(size=(n, _N_FEATURES))
        a, b, *_ = scores = (x @ weights).T
        if self.is_linear:
            mean, effects = a, _SIZES * (1 + 0.5 * scores[2:].T)
        else:
            mean = np.sqrt(2) * np.sin(2 * a + b)
            effects = _SIZES * np.exp(0.8 * scores[2:].T)
        arm = rng.integers(len(COSTS) + 1, size=n)
        response = self.baseline * mean + self.noise * noise.normal(size=n)
        response += np.column_stack([np.zeros(n), effects])[np.arange(n), arm]
        share = np.full(len(COSTS) + 1, 1 / (len(COSTS) + 1))
        return Trial(x, arm, response, share, effects)


SETTINGS: Mapping[str, Setting] = {
    "linear": Setting(is_linear=True, baseline=1.0),
    "uneven": Setting(is_linear=False, baseline=4.0),
}
"""Where squared error is right, and where it is not: a large baseline, effects of all sizes."""
