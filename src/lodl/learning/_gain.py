"""The gain over squared error on held-out decisions, and the verdict on it, worded once."""

from dataclasses import dataclass

import numpy as np

from lodl._typing import Array
from lodl.report._text import amounts

Z_95 = 1.96  # standard errors on each side of a mean in its 95% interval
FEWEST_INSTANCES = 5  # an interval from fewer differences says nothing
_ROUNDING = 1e-6  # of the mean regret: how far an interior-point solver may be off

USE_MORE = f"Use at least {FEWEST_INSTANCES} validation instances, better 50."


@dataclass(frozen=True)
class Failures:
    """Held-out decisions that failed, where `on_failure="skip"` allows it.

    Attributes:
        two_stage: Number of failed decisions of squared error.
        chosen: Number of failed decisions of the kept model.
        left_out: Number of further instances, on which every model failed.
    """

    two_stage: int = 0
    chosen: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class Gain:
    """The regret of squared error less that of the kept model, paired by instance.

    The model was chosen by these very decisions, so its regret is a little too good.

    Attributes:
        two_stage: Mean regret of squared error.
        chosen: Mean regret of the kept model.
        low: Lower end of the difference's 95% interval, `-inf` for a single instance.
        high: Upper end, `inf` for a single instance.
        n_instances: Number of held-out instances.
        n_inexact: Held-out decisions that are better than the solver's own for the true label. An
            exact solver makes none. Of the two models, the one with the more negative regrets
            counts.
        inexactness: The size of their negative regrets, as a mean over all instances.
        failures: How many decisions failed. Each counts as the worst decision of squared error.
        unit: The unit of the objective, or empty.
    """

    two_stage: float
    chosen: float
    low: float
    high: float
    n_instances: int
    n_inexact: int = 0
    inexactness: float = 0.0
    failures: Failures = Failures()
    unit: str = ""

    @classmethod
    def of(
        cls,
        two_stage: Array,
        chosen: Array,
        *,
        failures: Failures = Failures(),  # noqa: B008 - frozen
        unit: str = "",
    ) -> "Gain":
        """Compare two models by their regrets on the same instances, all finite, shape (n,)."""
        low, high = interval_95(two_stage - chosen)
        worse = min(two_stage, chosen, key=lambda regret: np.minimum(regret, 0.0).mean())
        inexactness = -float(np.minimum(worse, 0.0).mean())
        if inexactness <= _ROUNDING * np.abs(worse).mean():
            inexactness = 0.0
        return cls(
            float(two_stage.mean()),
            float(chosen.mean()),
            low,
            high,
            len(chosen),
            int((worse < 0).sum()) if inexactness else 0,
            inexactness,
            failures,
            unit,
        )

    @property
    def difference(self) -> float:
        """The mean regret per instance that is avoided, in the objective's unit."""
        return self.two_stage - self.chosen

    @property
    def share(self) -> float | None:
        """The share of the regret that is avoided, None unless both mean regrets allow one."""
        is_defined = self.two_stage > 0 and self.chosen >= 0
        return self.difference / self.two_stage if is_defined else None

    @property
    def verdict(self) -> str:
        """What to do and why, in a few sentences."""
        return " ".join([self._advice(), *self._notes()])

    def __str__(self) -> str:
        return self.verdict

    def _advice(self) -> str:
        before, after, low, high = amounts(self.two_stage, self.chosen, self.low, self.high)
        numbers = f"regret {before} -> {after}{self._in_unit} per instance"
        if self.n_instances < FEWEST_INSTANCES:
            return f"{too_few(self.n_instances)} to judge: {numbers}. {USE_MORE}"
        if self.difference <= 0:
            return (
                "Keep squared error: no clear gain here. "
                f"Its regret is {before}{self._in_unit} per instance."
            )
        # Inexactness exceeds any difference from a mean regret that is not positive.
        if self.difference <= self.inexactness:
            return (
                f"Perhaps use this model: {numbers}, a difference that the solver's inexactness "
                "explains."
            )
        percent = "" if self.share is None else f"-{self.share:.0%}, "
        numbers += f" ({percent}95% interval of the gain {low} to {high})"
        if self.low > 0:
            return f"Use this model: {numbers}."
        return (
            f"Perhaps use this model: {numbers}. This may be chance; use more validation instances "
            "to find out."
        )

    def _notes(self) -> list[str]:
        notes, failures = [], self.failures
        if self.n_inexact:
            (size,) = amounts(self.inexactness)
            notes.append(
                f"The solver is not exact: {self.n_inexact:,} of {self.n_instances:,} validation "
                f"decisions are better than its own for the true label, by {size}{self._in_unit} "
                "per instance on average."
            )
        if failures.two_stage or failures.chosen:
            of_model = f", {failures.chosen:,} with this model" if self.difference > 0 else ""
            notes.append(
                f"{failures.two_stage:,} of {self.n_instances:,} validation decisions failed with "
                f"squared error{of_model}; each counts as the worst decision of squared error."
            )
        if failures.left_out:
            notes.append(
                f"Instances left out because the solver failed on them with every model: "
                f"{failures.left_out:,}."
            )
        return notes

    @property
    def _in_unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


def too_few(n: int) -> str:
    """Return the start of a sentence that says that `n` held-out instances are too few."""
    return f"{n} validation instance{' is' if n == 1 else 's are'} too few"


def interval_95(values: Array) -> tuple[float, float]:
    """Return the 95% interval of the mean of some values."""
    mean, half = float(values.mean()), Z_95 * standard_error(values)
    return mean - half, mean + half


def standard_error(values: Array) -> float:
    """Return the standard error of the mean, infinite for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf
