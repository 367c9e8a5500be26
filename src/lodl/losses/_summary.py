"""How well learned losses fit, for a person to read."""

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
    NOTHING,
    PROBLEM_OR_SCALE,
    SENSE_OR_SOLVER,
    Finding,
    finding_text,
)

_POOR = 0.5  # an error of half the mean regret
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
    correlation and the coverage count.

    Attributes:
        family: The parametric loss.
        n_instances: Number of instances, fitted or not.
        n_parameters: Number of parameters per instance.
        n_by_status: Number of instances that were fitted, and that were not for which reason.
        n_samples: Median number of samples per instance, held-out ones included.
        rank_correlation: Rank correlation with the regret on held-out samples.
        coverage: Share of the costly decisions of held-out samples that fitted samples met too;
            None for other families.
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
    coverage: Spread | None
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
        if self.coverage is not None:
            return (_judge_coverage(self.coverage.median, self.rank_correlation.median),)
        if not self.n_judged:
            return (Finding(HELD_OUT_SAMPLES, "No samples were held out to judge the fit by."),)
        errors = (
            f"{self.error_held_out.median:.2f} of the mean regret on held-out samples and "
            f"{self.error_fitted.median:.2f} on fitted ones."
        )
        return tuple(self._judge_errors(errors)) or (
            Finding(NOTHING, f"The errors agree: {errors}"),
        )

    def _judge_errors(self, errors: str) -> Iterator[Finding]:
        held_out, fitted = self.error_held_out.median, self.error_fitted.median
        if min(held_out, fitted) > _POOR:
            yield Finding(ANOTHER_FAMILY, f"The error is {errors}")
        if held_out > max(_GAP * fitted, _SMALL):
            yield Finding(MORE_SAMPLES, f"The error is {errors}")

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
        if self.coverage is not None:
            errors = {"coverage": f"{self.coverage} of the decisions of held-out samples"}
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
        coverage=_spread(fitted.coverage_held_out, worst=0.1) if family.uses_slopes else None,
        error_held_out=_spread(held_out, worst=0.9),
        error_fitted=_spread(fitted.mae_fitted / regret, worst=0.9),
        r2=_spread(fitted.r2_held_out, worst=0.1),
        n_judged=int(np.isfinite(held_out).sum()),
        n_negative=int(np.sum(errors.mean_regret < 0)),
    )


def _judge_coverage(covered: float, rank_correlation: float) -> Finding:
    """Judge a loss made of decisions; where these are continuous, none is met twice."""
    if np.isnan(covered):
        return Finding(HELD_OUT_SAMPLES, "No costly samples were held out to judge the loss by.")
    evidence = (
        f"Of the costly decisions that held-out samples led to, {covered:.0%} were among those of "
        f"the other samples, and the rank correlation is {rank_correlation:.2f}."
    )
    return Finding(NOTHING if max(covered, rank_correlation) > _POOR else MORE_SAMPLES, evidence)


def _spread(values: Array, *, worst: float) -> Spread:
    return Spread(_quantile(values, 0.5), _quantile(values, worst))


def _quantile(values: npt.NDArray[Any], share: float) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, share)) if len(known) else float("nan")
