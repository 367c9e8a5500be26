"""What was gained over 2-stage on held-out decisions, and whether it is worth it."""

from dataclasses import dataclass

import numpy as np

from lodl._amounts import amounts
from lodl._typing import Array

_WIDTH = 1.96  # standard errors of an interval of 95 %


@dataclass(frozen=True)
class Gain:
    """The regret of 2-stage less that of the chosen model, paired by instance.

    The chosen model was chosen by these very decisions, so its regret is a little too good.

    Attributes:
        two_stage: Mean regret of 2-stage.
        chosen: Mean regret of the chosen model.
        low: Lower end of the difference's 95% interval.
        high: Upper end.
    """

    two_stage: float
    chosen: float
    low: float
    high: float

    @classmethod
    def of(cls, two_stage: Array, chosen: Array) -> "Gain":
        """Compare two models by their regrets on the same instances; NaN is left out."""
        known = np.isfinite(two_stage) & np.isfinite(chosen)
        difference = (two_stage - chosen)[known]
        mean, error = float(difference.mean()), standard_error(difference)
        return cls(
            float(two_stage[known].mean()),
            float(chosen[known].mean()),
            mean - _WIDTH * error,
            mean + _WIDTH * error,
        )

    @property
    def difference(self) -> float:
        """What an instance costs less than with 2-stage, in the objective's unit."""
        return self.two_stage - self.chosen

    @property
    def verdict(self) -> str:
        """Whether it is worth it, in words."""
        if self.difference <= 0:
            return "Keep squared error: no clear gain here."
        share = self.difference / self.two_stage if self.two_stage > 0 else 0.0
        gain = f"{share:.0%} of the regret of squared error is avoided"
        if self.low > 0:
            return f"Worth it: {gain}."
        return f"Perhaps worth it: {gain}, but that may be chance. More instances would tell."

    def __str__(self) -> str:
        before, after, gain, low, high = amounts(
            self.two_stage, self.chosen, self.difference, self.low, self.high
        )
        return (
            f"regret per instance {before} -> {after}, a gain of {gain} (95% interval {low} to "
            f"{high}). {self.verdict}"
        )


def standard_error(values: Array) -> float:
    """Return the standard error of the mean, infinite for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf
