"""How well learned losses fit, for a person to read."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.losses._family import Family
from lodl.losses._fit_errors import FitErrors, FitStatus
from lodl.losses._verdicts import (
    ANOTHER_FAMILY,
    HELD_OUT_SAMPLES,
    LOCAL_SLOPES,
    MORE_SAMPLES,
    NO_CHANGE,
    PROBLEM_OR_SCALE,
    ROUNDS,
    SENSE_OR_SOLVER,
    Finding,
    finding_text,
)

_POOR = 0.5  # an error of half the mean regret
_RANKS = 0.3  # rank correlation from which a loss is of use, however large its error
_SMALL = 0.05  # an error too small to need more samples
_GAP = 1.25  # ratio of held-out to fitted error above which more samples help

# Of losses made of decisions; results/decision_summaries.md has the numbers of all domains.
_HARDLY_RANKS = 0.05  # rank correlation: the lowest of a loss that trained a good model was 0.1
_LOCAL = 0.9  # share of decisions explained: 0.99 in Web Advertising, where such losses do well
_MANY = 0.25  # share of decisions met: rounds helped most below it


@dataclass(frozen=True)
class Spread:
    """The median of a number over instances, and its value at the worst tenth of them.

    NaN if the number is not defined for any instance.
    """

    median: float
    worst: float

    def __str__(self) -> str:
        return f"{self.median:.2f} (worst tenth {self.worst:.2f})"


@dataclass(frozen=True)
class FitSummary:
    """How well a learned loss repeats the regrets it was fitted to. `str(summary)` is the text.

    Errors are mean absolute errors divided by the instance's mean regret: 1 is an error as large as
    the regret itself. Numbers are of fitted instances unless they say otherwise. A family that is
    made of decisions (`family.uses_slopes`) does not repeat regrets: it has no errors and no R2,
    but two numbers of its own, which other families lack.

    Attributes:
        family: The parametric loss.
        n_instances: Number of instances, fitted or not.
        n_parameters: Number of parameters per instance.
        n_by_status: Number of instances that were fitted, and that were not for which reason.
        n_samples: Median number of samples per instance, held-out ones included.
        rank_correlation: Rank correlation with the regret on held-out samples, the mean over
            instances, as those of single instances have few samples; NaN if not defined.
        decisions_met: Share of the costly decisions of held-out samples that fitted samples met
            too, the mean over instances. It is low where decisions are many, and 0 where they are
            continuous; that alone is no fault. None for other families.
        decisions_explained: Share of the held-out samples whose decision is the cheapest of those
            met, by the slopes: 1 where the objective is affine in the label and the solver exact,
            so that the loss holds everywhere. None for other families.
        error_held_out: Relative error on held-out samples.
        error_fitted: Relative error on fitted samples.
        r2: R2 on held-out samples.
        n_judged: Number of instances with a relative error on held-out samples.
        n_negative: Number of instances, fitted or not, with a mean regret below 0. There are none
            if the solver is exact and the sense is right.
    """

    family: Family
    n_instances: int
    n_parameters: int
    n_by_status: dict[FitStatus, int]
    n_samples: float
    rank_correlation: float
    decisions_met: float | None
    decisions_explained: float | None
    error_held_out: Spread
    error_fitted: Spread
    r2: Spread
    n_judged: int
    n_negative: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What would make the fit better, the most important first; at least one finding."""
        n_sampled = self.n_instances - self.n_by_status[FitStatus.NO_SAMPLES]
        if 2 * self.n_negative > n_sampled:
            negative = f"The mean regret is below 0 for {self.n_negative} of {n_sampled} instances."
            return (Finding(SENSE_OR_SOLVER, negative),)
        if not self.n_by_status[FitStatus.FITTED]:
            unfitted = f"None of the {self.n_instances} instances could be fitted."
            return (Finding(PROBLEM_OR_SCALE, unfitted),)
        if self.family.uses_slopes:
            return tuple(self._judge_decisions())
        if not self.n_judged:
            return (Finding(HELD_OUT_SAMPLES, "No samples were held out to judge the fit by."),)
        errors = (
            f"{self.error_held_out.median:.2f} of the mean regret on held-out samples and "
            f"{self.error_fitted.median:.2f} on fitted ones."
        )
        return tuple(self._judge_errors(errors)) or (Finding(NO_CHANGE, self._evidence(errors)),)

    def _judge_errors(self, errors: str) -> Iterator[Finding]:
        held_out, fitted = self.error_held_out.median, self.error_fitted.median
        if min(held_out, fitted) > _POOR and not self.rank_correlation > _RANKS:
            yield Finding(ANOTHER_FAMILY, self._evidence(errors))
        if held_out > max(_GAP * fitted, _SMALL):
            yield Finding(MORE_SAMPLES, self._evidence(errors))

    def _evidence(self, errors: str) -> str:
        """Return the rank correlation, which matters most for training, and then the errors."""
        if math.isnan(self.rank_correlation):
            return f"The error is {errors}"
        ranks = f"The rank correlation with the regret is {self.rank_correlation:.2f}"
        return f"{ranks}, the error {errors}"

    def _judge_decisions(self) -> Iterator[Finding]:
        """Judge a loss made of decisions, by held-out samples."""
        met, explained = self.decisions_met, self.decisions_explained
        if math.isnan(self.rank_correlation) or met is None or explained is None:
            costly = "No costly samples were held out to judge the loss by."
            yield Finding(HELD_OUT_SAMPLES, costly)
            return
        ranks = f"The rank correlation with the regret is {self.rank_correlation:.2f}."
        if explained < _LOCAL:
            local = f"Slopes explain {explained:.0%} of the decisions taken."
            yield Finding(LOCAL_SLOPES, f"{ranks} {local}")
        if self.rank_correlation < _HARDLY_RANKS:
            yield Finding(MORE_SAMPLES, ranks)
        elif met < _MANY:
            yield Finding(ROUNDS, f"{ranks} Samples rarely lead to the same decision twice.")
        elif explained >= _LOCAL:
            yield Finding(NO_CHANGE, ranks)

    def __str__(self) -> str:
        by_status = ", ".join(
            f"{count} {status.name.lower().replace('_', ' ')}"
            for status, count in self.n_by_status.items()
            if count or status is FitStatus.FITTED
        )
        errors = {
            "error, held out": f"{self.error_held_out} of the mean regret",
            "error, fitted": f"{self.error_fitted} of the mean regret",
            "R2": f"{self.r2}",
        }
        if self.family.uses_slopes:
            errors = dict(self._decision_lines())
        return finding_text(
            f"{self.family}, {self.n_parameters} parameters per instance",
            self.findings,
            {
                "rank correlation": f"{self.rank_correlation:.2f} on held-out samples (mean)",
                **errors,
                "samples": f"{self.n_samples:.0f} per instance (median)",
                "instances": f"{self.n_instances}: {by_status}",
            },
        )

    def _decision_lines(self) -> Iterator[tuple[str, str]]:
        """Yield what is known of decisions, by name."""
        if self.decisions_met is not None:
            seen = f"{self.decisions_met:.0%} of the costly ones in held-out samples (mean)"
            yield "known decisions", seen
        if self.decisions_explained is not None:
            share = f"{self.decisions_explained:.1%}"
            local = f"local: they explain {share} of held-out decisions"
            exact = "they explain all held-out decisions, as exact ones do"
            yield "slopes", exact if self.decisions_explained == 1 else local


def summarise(family: Family, errors: FitErrors, *, n_parameters: int) -> FitSummary:
    """Return how well a learned loss repeats the regrets it was fitted to."""
    fitted = errors.take(errors.status == FitStatus.FITTED)
    regret = np.where(fitted.mean_regret > 0, fitted.mean_regret, np.nan)
    held_out = fitted.mae_held_out / regret
    return FitSummary(
        family=family,
        n_instances=len(errors.status),
        n_parameters=n_parameters,
        n_by_status={member: int(np.sum(errors.status == member)) for member in FitStatus},
        n_samples=_quantile(fitted.n_fitted + fitted.n_held_out, 0.5),
        rank_correlation=_mean(fitted.rank_correlation_held_out),
        decisions_met=_share(fitted.met_held_out),
        decisions_explained=_share(fitted.explained_held_out),
        error_held_out=_spread(held_out, worst=0.9),
        error_fitted=_spread(fitted.mae_fitted / regret, worst=0.9),
        r2=_spread(fitted.r2_held_out, worst=0.1),
        n_judged=int(np.isfinite(held_out).sum()),
        n_negative=int(np.sum(errors.mean_regret < 0)),
    )


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _share(values: Array) -> float | None:
    mean = _mean(values)
    return None if math.isnan(mean) else mean


def _spread(values: Array, *, worst: float) -> Spread:
    return Spread(_quantile(values, 0.5), _quantile(values, worst))


def _quantile(values: npt.NDArray[Any], share: float) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, share)) if len(known) else float("nan")
