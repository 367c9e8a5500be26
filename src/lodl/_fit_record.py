"""What a page shows of one `fit`: plain data, which a file can hold."""

from collections.abc import Mapping
from dataclasses import dataclass

from lodl._amounts import amounts


@dataclass(frozen=True)
class TriedModel:
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
class ChangedDecision:
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
class CoordinateCosts:
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
class FitRecord:
    """One `fit` of `lodl.DecisionFocusedRegressor`.

    Attributes:
        problem: The problem, in words.
        model: The estimator, in words.
        unit: The unit of the objective; empty if it has no name.
        chosen: What was kept, in words.
        verdict: Whether it is worth it, in a sentence.
        judged_by: Which instances were held out, and how.
        data: A digest of the held-out labels: runs with the same one can be paired.
        instances: Names of the held-out instances.
        regret_two_stage: Their regrets under 2-stage.
        regret_kept: Their regrets under the kept model.
        loss_kept: The learned loss of the kept model's predictions for them.
        gain_95: The 95% interval of the mean difference of the two regrets.
        history: Every model that was tried.
        changes: The instances that gained most and those that lost most.
        coordinates: What errors cost; None where the kept model is 2-stage.
        n_calls: Oracle calls.
        seconds: Time that `fit` took.
        settings: The settings of the learner, as texts.
        versions: Versions of packages.
    """

    problem: str
    model: str
    unit: str
    chosen: str
    verdict: str
    judged_by: str
    data: str
    instances: tuple[str, ...]
    regret_two_stage: tuple[float, ...]
    regret_kept: tuple[float, ...]
    loss_kept: tuple[float, ...]
    gain_95: tuple[float, ...]
    history: tuple[TriedModel, ...]
    changes: tuple[ChangedDecision, ...]
    coordinates: CoordinateCosts | None
    n_calls: int
    seconds: float
    settings: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def mean_two_stage(self) -> float:
        """Mean regret of 2-stage."""
        return sum(self.regret_two_stage) / len(self.regret_two_stage)

    @property
    def mean_kept(self) -> float:
        """Mean regret of the kept model."""
        return sum(self.regret_kept) / len(self.regret_kept)

    def headline(self) -> str:
        """Return the regret before and after, with the relative change."""
        before, after = self.mean_two_stage, self.mean_kept
        change = f" ({after / before - 1:+.0%})" if before > 0 and after != before else ""
        texts = amounts(before, after)
        return f"{texts[0]} → {texts[1]}{self.in_unit}{change}"

    @property
    def in_unit(self) -> str:
        """The unit with a space before it, or nothing."""
        return f" {self.unit}" if self.unit else ""
