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
    MORE_SAMPLES,
    NO_CHANGE,
    PROBLEM_OR_SCALE,
    SENSE_OR_SOLVER,
    Finding,
    finding_text,
)

_POOR = 0.5  # an error of half the mean regret
_RANKS = 0.3  # rank correlation from which a loss is of use, however large its error
_MOST = 0.5  # share of the decisions met, or rank correlation, of a loss made of decisions
_SMALL = 0.05  # an error too small to need more samples
_GAP = 1.25  # ratio of held-out to fitted error above which more samples help


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
    the regret itself. Numbers are of fitted instances unless they say otherwise. For a family that
    is made of decisions (`family.uses_slopes`), and so does not repeat regrets, only the rank
    correlation and `decisions_met` count.

    Attributes:
        family: The parametric loss.
        n_instances: Number of instances, fitted or not.
        n_parameters: Number of parameters per instance.
        n_by_status: Number of instances that were fitted, and that were not for which reason.
        n_samples: Median number of samples per instance, held-out ones included.
        rank_correlation: Rank correlation with the regret on held-out samples.
        decisions_met: Share of the costly decisions of held-out samples that fitted samples met
            too; None for other families, and where no decision was met twice: such decisions
            are continuous, or far too many to be met again.
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
    rank_correlation: Spread
    decisions_met: Spread | None
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
            return (self._judge_decisions(),)
        if not self.n_judged:
            return (Finding(HELD_OUT_SAMPLES, "No samples were held out to judge the fit by."),)
        errors = (
            f"{self.error_held_out.median:.2f} of the mean regret on held-out samples and "
            f"{self.error_fitted.median:.2f} on fitted ones."
        )
        return tuple(self._judge_errors(errors)) or (Finding(NO_CHANGE, self._evidence(errors)),)

    def _judge_errors(self, errors: str) -> Iterator[Finding]:
        held_out, fitted = self.error_held_out.median, self.error_fitted.median
        if min(held_out, fitted) > _POOR and not self.rank_correlation.median > _RANKS:
            yield Finding(ANOTHER_FAMILY, self._evidence(errors))
        if held_out > max(_GAP * fitted, _SMALL):
            yield Finding(MORE_SAMPLES, self._evidence(errors))

    def _evidence(self, errors: str) -> str:
        """Return the rank correlation, which matters most for training, and then the errors."""
        if math.isnan(self.rank_correlation.median):
            return f"The error is {errors}"
        ranks = f"The rank correlation with the regret is {self.rank_correlation.median:.2f}"
        return f"{ranks}, the error {errors}"

    def _judge_decisions(self) -> Finding:
        """Judge a loss made of decisions, by held-out samples."""
        ranks = self.rank_correlation.median
        if self.decisions_met is None:
            if math.isnan(ranks):
                costly = "No costly samples were held out to judge the loss by."
                return Finding(HELD_OUT_SAMPLES, costly)
            evidence = f"The rank correlation with the regret is {ranks:.2f}."
            return Finding(NO_CHANGE if ranks > _MOST else MORE_SAMPLES, evidence)
        met = self.decisions_met.median
        evidence = (
            f"The rank correlation with the regret is {ranks:.2f}, and {met:.0%} of the costly "
            "decisions of held-out samples were met by the other samples."
        )
        return Finding(NO_CHANGE if max(met, ranks) > _MOST else MORE_SAMPLES, evidence)

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
            met = self.decisions_met
            errors = {} if met is None else {"decisions met": f"{met} of held-out samples"}
        return finding_text(
            f"{self.family}, {self.n_parameters} parameters per instance",
            self.findings,
            {
                "rank correlation": f"{self.rank_correlation}",
                **errors,
                "samples": f"{self.n_samples:.0f} per instance (median)",
                "instances": f"{self.n_instances}: {by_status}",
            },
        )


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
        rank_correlation=_spread(fitted.rank_correlation_held_out, worst=0.1),
        decisions_met=_met(fitted.met_held_out) if family.uses_slopes else None,
        error_held_out=_spread(held_out, worst=0.9),
        error_fitted=_spread(fitted.mae_fitted / regret, worst=0.9),
        r2=_spread(fitted.r2_held_out, worst=0.1),
        n_judged=int(np.isfinite(held_out).sum()),
        n_negative=int(np.sum(errors.mean_regret < 0)),
    )


def _met(share: Array) -> Spread | None:
    """Return the share of decisions met again, None where no instance has one."""
    return _spread(share, worst=0.1) if np.nan_to_num(share).any() else None


def _spread(values: Array, *, worst: float) -> Spread:
    return Spread(_quantile(values, 0.5), _quantile(values, worst))


def _quantile(values: npt.NDArray[Any], share: float) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, share)) if len(known) else float("nan")
