"""What a page shows of one `fit`: plain data, which a file can hold."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from lodl._amounts import amounts
from lodl._gain import Failures, Gain
from lodl._printable import printable


class _Shown:
    """A record whose texts can be shown as they are: control characters are written out."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, one.name, _shown(getattr(self, one.name)))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, Mapping):
        return {printable(name): _shown(content) for name, content in value.items()}
    return value


@dataclass(frozen=True)
class TriedModel(_Shown):
    """A model that was tried.

    Attributes:
        name: The loss it was trained on, or which models it averages.
        round: Rounds of candidates around predictions that its loss knew.
        regret: Mean regret of its held-out decisions.
        n_calls: Oracle calls until then.
        seconds: Time until then.
    """

    name: str
    round: int
    regret: float
    n_calls: int
    seconds: float


@dataclass(frozen=True)
class ChangedDecision(_Shown):
    """An instance whose held-out decision the kept model changed.

    Attributes:
        instance: The name of the instance.
        two_stage: The decision under the prediction of 2-stage, as text.
        kept: The decision under the prediction of the kept model, as text.
        regret_two_stage: What the first costs more than the best decision.
        regret_kept: What the second costs more.
    """

    instance: str
    two_stage: str
    kept: str
    regret_two_stage: float
    regret_kept: float


@dataclass(frozen=True)
class CoordinateCosts(_Shown):
    """What errors of the predictions cost by the learned loss, coordinate by coordinate.

    Attributes:
        names: Names of the label's coordinates.
        over: Mean loss where a coordinate alone is predicted one standard deviation too high.
        under: The same for too low.
    """

    names: tuple[str, ...]
    over: tuple[float, ...]
    under: tuple[float, ...]


@dataclass(frozen=True)
class FitRecord(_Shown):
    """One `fit` of `lodl.DecisionFocusedRegressor`.

    Attributes:
        problem: Description of the problem.
        problem_parameters: Its class and plain constructor parameters, as texts.
        model: The estimator, in words.
        unit: The unit of the objective; empty if it has no name.
        chosen: What was kept, in words.
        judged_by: Which instances were held out, and how.
        data: A digest of the held-out labels: runs with the same one can be paired.
        instances: Names of the held-out instances.
        regret_two_stage: Their regrets under 2-stage.
        regret_kept: Their regrets under the kept model.
        failures: How many held-out decisions failed. Each counts as the worst one of 2-stage.
        loss_kept: The learned loss of the kept model's predictions for them.
        history: Every model that was tried.
        changes: The instances that gained most and those that lost most.
        coordinates: What errors cost; None where the kept model is 2-stage.
        n_calls: Oracle calls.
        seconds: Time that `fit` took.
        settings: The settings of the learner, as texts.
        versions: Versions of packages.
    """

    problem: str
    problem_parameters: Mapping[str, str]
    model: str
    unit: str
    chosen: str
    judged_by: str
    data: str
    instances: tuple[str, ...]
    regret_two_stage: tuple[float, ...]
    regret_kept: tuple[float, ...]
    failures: Failures
    loss_kept: tuple[float, ...]
    history: tuple[TriedModel, ...]
    changes: tuple[ChangedDecision, ...]
    coordinates: CoordinateCosts | None
    n_calls: int
    seconds: float
    settings: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def gain(self) -> Gain:
        """The gain over squared error, with its verdict."""
        both = np.array(self.regret_two_stage), np.array(self.regret_kept)
        return Gain.of(*both, failures=self.failures, unit=self.unit)

    @property
    def mean_two_stage(self) -> float:
        """Mean regret of 2-stage."""
        return self.gain.two_stage

    @property
    def mean_kept(self) -> float:
        """Mean regret of the kept model."""
        return self.gain.chosen

    def headline(self) -> str:
        """Return the regret before and after, with the relative change."""
        gain = self.gain
        change = f" ({-gain.share:+.0%})" if gain.share else ""
        before, after = amounts(gain.two_stage, gain.chosen)
        return f"{before} → {after}{self.in_unit}{change}"

    @property
    def in_unit(self) -> str:
        """The unit with a space before it, or nothing."""
        return f" {self.unit}" if self.unit else ""
