"""Parts of a fit's result: trials, changed decisions, costs of errors, means with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from lodl._arrays import printable
from lodl._typing import Array
from lodl.report._text import coordinate_name, decision_texts

BASELINE = "squared error"
"""The name of the baseline's trial."""

PLAIN = "plain model"
"""The name of the plain model's trial."""

FEWEST_INSTANCES = 5  # an interval from fewer differences says nothing
_Z_95 = 1.96  # standard errors on each side of a mean in its 95% interval


@dataclass(frozen=True)
class Estimate:
    """A mean over instances with its standard error.

    Attributes:
        mean: The mean.
        standard_error: Its standard error, infinite for a single instance.
        n_instances: Number of instances.
    """

    mean: float
    standard_error: float
    n_instances: int

    @classmethod
    def of(cls, values: Array | Sequence[float]) -> "Estimate":
        """Return the mean of one value per instance."""
        values, n = np.asarray(values, dtype=float), len(values)
        error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
        return cls(float(values.mean()), error, n)

    @property
    def low(self) -> float:
        """The lower end of the 95% interval."""
        return self.mean - _Z_95 * self.standard_error

    @property
    def high(self) -> float:
        """The upper end of the 95% interval."""
        return self.mean + _Z_95 * self.standard_error


class Shown:
    """A record whose texts can be shown as they are: control characters are escaped."""

    _as_given: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            if field.name not in self._as_given:
                object.__setattr__(self, field.name, _shown(getattr(self, field.name)))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, Mapping):
        return {printable(name): _shown(content) for name, content in value.items()}
    return value


@dataclass(frozen=True)
class Trial(Shown):
    """A model that was scored.

    Attributes:
        name: The loss it was trained on, or the models it averages.
        round: Rounds of points at predictions that its loss had learned from.
        regret: Mean validation regret.
        n_calls: Solver calls of the fit so far.
        seconds: Seconds of the fit so far.
    """

    name: str
    round: int
    regret: float
    n_calls: int
    seconds: float

    @property
    def is_baseline(self) -> bool:
        """Whether the model was trained on squared error alone."""
        return self.name.partition(",")[0] in (BASELINE, PLAIN)


@dataclass(frozen=True)
class ChangedDecision(Shown):
    """A validation instance on which the baseline and the selected model decide differently.

    Attributes:
        instance: Name of the instance.
        decision_baseline: The baseline's decision as text.
        decision_selected: The selected model's decision as text.
        regret_baseline: Regret of the baseline's decision.
        regret_selected: Regret of the selected model's decision.
    """

    instance: str
    decision_baseline: str
    decision_selected: str
    regret_baseline: float
    regret_selected: float

    @classmethod
    def of(
        cls,
        instance: str,
        decisions: tuple[Any, Any],
        regrets: tuple[float, float],
        label_names: Sequence[str] | None,
    ) -> "ChangedDecision":
        """Describe two decisions, the baseline's first, in terms of the label's names if known."""
        return cls(instance, *decision_texts(*decisions, label_names), *map(float, regrets))


@dataclass(frozen=True)
class CoordinateCosts(Shown):
    """Mean learned loss of an error in one number of the label alone.

    Attributes:
        names: Names of the label's numbers.
        over: Loss of predicting a number one standard deviation too high.
        under: Loss of predicting it one standard deviation too low.
    """

    names: tuple[str, ...]
    over: tuple[float, ...]
    under: tuple[float, ...]

    @classmethod
    def of(
        cls, over: Array, under: Array, label_shape: Sequence[int], names: Sequence[str] | None
    ) -> "CoordinateCosts":
        """Return the costs, shape (D,) each, with names for coordinates that have none."""
        named = names or [coordinate_name(j, label_shape) for j in range(len(over))]
        return cls(tuple(named), tuple(over.tolist()), tuple(under.tolist()))


@dataclass(frozen=True)
class Failures:
    """Validation decisions that failed, if the oracle skips failed calls.

    Attributes:
        baseline: Failed decisions of the baseline.
        selected: Failed decisions of the selected model.
        left_out: Instances that are left out because the solver failed on them with every model.
    """

    baseline: int = 0
    selected: int = 0
    left_out: int = 0
