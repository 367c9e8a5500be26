"""`summarise`: the held-out errors of a learned loss over instances, and the advice they give."""

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._html import notebook_html
from lodl._typing import Array
from lodl.losses import Family, FitStatus, LearnedLoss

ADVICE = {
    "wrong sense": "Check the sense, and that the solver is exact: `lodl.testing.check_problem`.",
    "nothing to decide": "Check the problem with `lodl.testing.check_problem`, and try a larger "
    "scale of the sampler.",
    "scale": "Sample with a scale that matches the errors of the model.",
    "local slopes": "The objective is not affine in the label, or the solver is not exact, so a "
    "decision family is valid near the label only. Also try `DirectedWeightedMAE`, and compare "
    "the decisions of both models on validation instances.",
    "more samples": "Draw several times as many samples, or use a family with fewer parameters.",
}

_SMALL = 0.05  # held-out error, as a share of the mean regret, too small to need more samples
_GAP = 1.25  # ratio of held-out to fitted error above which more samples help

# Decision families, by the numbers of all domains.
_HARDLY_RANKS = 0.05  # rank correlation: the lowest of a loss that trained a good model was 0.1
_LOCAL = 0.9  # share of decisions explained: 0.99 in Web Advertising, where such losses do well


@dataclass(frozen=True)
class Finding:
    """A piece of advice about a learned loss."""

    name: str  #: "wrong sense", "nothing to decide", "scale", "local slopes" or "more samples".
    evidence: str  #: The numbers that led to it, as a sentence.

    @property
    def advice(self) -> str:
        """The action to take."""
        return ADVICE[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.evidence} {self.advice}"


class WithFindings:
    """Text and HTML of a title, findings, and named numbers."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Advice that follows from the numbers, the most important first."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[Finding]:
        raise NotImplementedError

    def _content(self) -> tuple[str, Mapping[str, str]]:
        """Return the title and the named numbers."""
        raise NotImplementedError

    def _advice(self) -> list[str]:
        return list(map(str, self.findings)) or ["No change suggested."]

    def __str__(self) -> str:
        title, numbers = self._content()
        fill = partial(textwrap.fill, width=88)
        lines = [fill(f"- {line}", subsequent_indent="  ") for line in self._advice()]
        named = (f"  {name:<18}{text}" for name, text in numbers.items())
        lines += (fill(line, subsequent_indent=" " * 20) for line in named)
        return "\n".join([title, *lines])

    def _repr_html_(self) -> str:
        title, numbers = self._content()
        return notebook_html(title, self._advice(), numbers.items())


@dataclass(frozen=True)
class Quantiles:
    """The median of a number over instances, and its value at the worst tenth; NaN if undefined."""

    median: float
    worst: float

    @classmethod
    def of(cls, values: Array, worst: float) -> "Quantiles":
        """Return the median of known values, and their quantile `worst`."""
        return cls(*(over_known(np.quantile, values, share) for share in (0.5, worst)))

    def __str__(self) -> str:
        return f"{self.median:.2f} (worst tenth {self.worst:.2f})"


@dataclass(frozen=True)
class LossSummary(WithFindings):
    """Errors of a learned loss. `str(summary)` is the text.

    Errors are mean absolute errors divided by the instance's mean regret. Numbers are of fitted
    instances unless noted, and NaN if they are not defined. Decision families do not repeat
    regrets: they have shares of decisions instead of errors and R2.
    """

    family: Family
    n_instances: int  #: Number of instances, fitted or not.
    n_parameters: int  #: Number of parameters per instance.
    n_by_status: dict[FitStatus, int]  #: Number of instances by status of the fit.
    n_samples: float  #: Median number of samples per instance, held-out samples included.
    rank_correlation: float  #: With the regret on held-out samples, mean over instances.
    #: Share of the costly held-out samples that led to a known decision, mean over instances: low
    #: if there are many decisions, and 0 if they are continuous.
    decisions_met: float
    #: Share of the held-out samples whose decision is the cheapest of the known decisions by its
    #: slope: 1 for an affine objective and an exact solver.
    decisions_explained: float
    error_held_out: Quantiles  #: Relative error on held-out samples.
    error_fitted: Quantiles  #: Relative error on fitted samples.
    r2: Quantiles  #: R2 on held-out samples.
    n_negative: int  #: Instances whose mean regret is below 0: none with the right sense.

    def _findings(self) -> Iterator[Finding]:
        n_sampled = self.n_instances - self.n_by_status[FitStatus.NO_SAMPLES]
        n_unfitted = self.n_instances - self.n_by_status[FitStatus.FITTED]
        if 2 * self.n_negative > n_sampled:
            negative = f"The mean regret is below 0 for {self.n_negative} of {n_sampled} instances."
            yield Finding("wrong sense", negative)
            return
        if 2 * n_unfitted > self.n_instances:
            unfitted = f"{n_unfitted} of {self.n_instances} instances could not be fitted."
            yield Finding("nothing to decide", unfitted)
        ranks = f"The rank correlation with the regret is {self.rank_correlation:.2f}"
        if self.family.uses_slopes:
            if self.decisions_explained < _LOCAL:
                explained = f"Slopes explain {self.decisions_explained:.0%} of the decisions taken."
                yield Finding("local slopes", explained)
            if self.rank_correlation < _HARDLY_RANKS:
                yield Finding("more samples", f"{ranks}.")
            return
        held_out, fitted = self.error_held_out.median, self.error_fitted.median
        if held_out > max(_GAP * fitted, _SMALL):
            errors = f"the error {held_out:.2f} of the mean regret on held-out samples"
            yield Finding("more samples", f"{ranks}, {errors}, but {fitted:.2f} on fitted samples.")

    def _content(self) -> tuple[str, Mapping[str, str]]:
        by_status = ", ".join(
            f"{count} {status.name.lower().replace('_', ' ')}"
            for status, count in self.n_by_status.items()
            if count or status is FitStatus.FITTED
        )
        ranks = f"{self.rank_correlation:.2f} on held-out samples (mean)"
        if math.isnan(self.rank_correlation):
            ranks = "not defined: too few held-out samples with a cost"
        numbers, met, explained = {}, self.decisions_met, self.decisions_explained
        if not self.family.uses_slopes:
            numbers["error, held out"] = f"{self.error_held_out} of the mean regret"
            numbers["error, fitted"] = f"{self.error_fitted} of the mean regret"
            numbers["R2"] = f"{self.r2}"
            met = explained = math.nan
        if not math.isnan(met):
            numbers["known decisions"] = f"{met:.0%} of the costly ones in held-out samples (mean)"
        if explained == 1:
            numbers["slopes"] = "exact: they explain all held-out decisions"
        elif not math.isnan(explained):
            numbers["slopes"] = f"local: they explain {explained:.1%} of decisions"
        return f"{self.family}, {self.n_parameters} parameters per instance", {
            "rank correlation": ranks,
            **numbers,
            "samples": f"{self.n_samples:.0f} per instance (median)",
            "instances": f"{self.n_instances}: {by_status}",
        }


def summarise(loss: LearnedLoss) -> LossSummary:
    """Return how well a learned loss agrees with its held-out samples. It calls no solver.

    Example:
        >>> y = np.random.default_rng(0).normal(size=(20, 4))
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y)
        >>> lodl.evaluation.summarise(loss).decisions_explained  # an objective linear in the label
        1.0
    """
    errors = loss.errors
    fitted = errors.take(errors.status == FitStatus.FITTED)
    regret = np.where(fitted.mean_regret > 0, fitted.mean_regret, np.nan)
    return LossSummary(
        family=loss.family,
        n_instances=loss.n_instances,
        n_parameters=sum(math.prod(rows.shape[1:]) for rows in loss.phi.values()),
        n_by_status={status: int(np.sum(errors.status == status)) for status in FitStatus},
        n_samples=over_known(np.median, fitted.n_fitted + fitted.n_held_out),
        rank_correlation=over_known(np.mean, fitted.rank_correlation_held_out),
        decisions_met=over_known(np.mean, fitted.met_held_out),
        decisions_explained=over_known(np.mean, fitted.explained_held_out),
        error_held_out=Quantiles.of(fitted.mae_held_out / regret, worst=0.9),
        error_fitted=Quantiles.of(fitted.mae_fitted / regret, worst=0.9),
        r2=Quantiles.of(fitted.r2_held_out, worst=0.1),
        n_negative=int(np.sum(errors.mean_regret < 0)),
    )


def over_known(statistic: Callable[..., Any], values: npt.NDArray[Any], *options: float) -> float:
    """Return a statistic of the finite values, or NaN without any."""
    known = values[np.isfinite(values)]
    return float(statistic(known, *options)) if len(known) else math.nan
