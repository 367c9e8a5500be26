"""How well learned losses fit, for a person to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family
from lodl.losses._fit_errors import FitStatus

if TYPE_CHECKING:
    from lodl.losses._learned_loss import LearnedLoss

_POOR = 0.5  # an error of half the mean regret
_SMALL = 0.05  # an error that more samples need not lower
_GAP = 1.25  # a held-out error this many times the fitted one

_ADVICE = {
    "problem or scale": "No instance could be fitted: look at the problem and the sampler's scale.",
    "sense or solver": (
        "Most mean regrets are below 0, as if other predictions led to better decisions than the "
        "labels: is `sense` right, or is the solver a heuristic?"
    ),
    "not known": "No samples were held out, so whether more would help is not known.",
    "another family": (
        "Large on fitted and held-out samples alike: try another family, or a sampler that stays "
        "closer to the label. If none is better the cost is a step, which no smooth loss repeats, "
        "and a model may do well all the same."
    ),
    "more samples": (
        f"Held-out error over {_GAP} times the fitted error: more samples would help, or a family "
        "of fewer parameters."
    ),
    "nothing": "Fitted and held-out errors agree: more samples would change little.",
}


@dataclass(frozen=True)
class Spread:
    """A figure over instances: the median, and the one that the worst tenth begins with.

    NaN where no instance has the figure.
    """

    median: float
    worst: float

    def __str__(self) -> str:
        return f"{self.median:.2f} (worst tenth {self.worst:.2f})"


@dataclass(frozen=True)
class FitSummary:
    """How well a learned loss repeats the regrets it was fitted to.

    Errors are mean absolute errors divided by the instance's mean regret, so 1 is an error as large
    as the regret itself. Unless said otherwise figures are of fitted instances only.
    `str(summary)` is the text.

    Attributes:
        family: The parametric loss.
        n_instances: Number of instances.
        n_parameters: Number of parameters of each.
        n_by_status: How many were fitted, and how many fell back for which reason.
        n_samples: Median number of samples of a fitted instance, held-out ones included.
        error_fitted: Relative error on the samples fitted to.
        error_held_out: Relative error on the samples kept aside.
        r2: R2 on the samples kept aside.
        rank_correlation: Rank correlation on the samples kept aside.
        n_judged: How many fitted instances have a relative error on samples kept aside.
        n_poor: How many of these have one above half the mean regret.
        n_negative: How many instances, fitted or not, have a mean regret below 0. With an exact
            solver and the right sense there are none.
    """

    family: Family
    n_instances: int
    n_parameters: int
    n_by_status: dict[FitStatus, int]
    n_samples: float
    error_fitted: Spread
    error_held_out: Spread
    r2: Spread
    rank_correlation: Spread
    n_judged: int
    n_poor: int
    n_negative: int

    @property
    def more_samples_would_help(self) -> bool:
        """Whether the held-out error is much larger than the fitted error."""
        held_out, fitted = self.error_held_out.median, self.error_fitted.median
        return held_out > max(_GAP * fitted, _SMALL)

    @property
    def another_family_would_help(self) -> bool:
        """Whether the error is large on fitted and held-out samples alike."""
        return min(self.error_held_out.median, self.error_fitted.median) > _POOR

    @property
    def remedy(self) -> str:
        """What would make the fit better, in a word or two: a key of the advice."""
        n_sampled = self.n_instances - self.n_by_status[FitStatus.NO_SAMPLES]
        if 2 * self.n_negative > n_sampled:
            return "sense or solver"
        if not self.n_by_status[FitStatus.FITTED]:
            return "problem or scale"
        if not self.n_judged:
            return "not known"
        if self.another_family_would_help:
            return "another family"
        return "more samples" if self.more_samples_would_help else "nothing"

    @property
    def advice(self) -> str:
        """What would make the fit better."""
        return _ADVICE[self.remedy]

    def __str__(self) -> str:
        reasons = ", ".join(
            f"{count} {status.name.lower().replace('_', ' ')}"
            for status, count in self.n_by_status.items()
            if count or status is FitStatus.FITTED
        )
        return "\n".join(
            [
                f"{self.family}, {self.n_parameters} parameters an instance",
                f"  instances         {self.n_instances}: {reasons}",
                f"  samples           {self.n_samples:.0f} an instance (median)",
                f"  error, fitted     {self.error_fitted} of the mean regret",
                f"  error, held out   {self.error_held_out} of the mean regret",
                f"  R2                {self.r2}",
                f"  rank correlation  {self.rank_correlation}",
                f"  poor fits         {self.n_poor} of {self.n_judged} "
                f"(held-out error above {_POOR} of the mean regret)",
                f"  {self.advice}",
            ]
        )


def summarise(loss: "LearnedLoss") -> FitSummary:
    """Returns how well a learned loss repeats the regrets it was fitted to."""
    errors = {name: np.asarray(rows) for name, rows in loss.errors.arrays().items()}
    status = errors["status"]
    fitted = {name: rows[status == FitStatus.FITTED] for name, rows in errors.items()}
    regret = np.where(fitted["mean_regret"] > 0, fitted["mean_regret"], np.nan)
    held_out = fitted["mae_held_out"] / regret
    shapes = loss.family.parameter_shapes(loss.dim).values()
    return FitSummary(
        family=loss.family,
        n_instances=loss.n_instances,
        n_parameters=sum(prod(shape) for shape in shapes),
        n_by_status={member: int(np.sum(status == member)) for member in FitStatus},
        n_samples=_quantile(fitted["n_fitted"] + fitted["n_held_out"], 0.5),
        error_fitted=_spread(fitted["mae_fitted"] / regret, worst=0.9),
        error_held_out=_spread(held_out, worst=0.9),
        r2=_spread(fitted["r2_held_out"], worst=0.1),
        rank_correlation=_spread(fitted["rank_correlation_held_out"], worst=0.1),
        n_judged=int(np.isfinite(held_out).sum()),
        n_poor=int(np.sum(held_out > _POOR)),
        n_negative=int(np.sum(errors["mean_regret"] < 0)),
    )


def compare_losses(losses: Sequence["LearnedLoss"]) -> str:
    """Returns a table of learned losses of the same instances, a row for each.

    Raises:
        InvalidInputError: They are of other instances.
    """
    if not losses:
        raise InvalidInputError("`losses` must hold at least one learned loss, got none.")
    for loss in losses[1:]:
        loss.check_labels(np.asarray(losses[0].y))
    rows = [_COLUMNS, *(_cells(summarise(loss)) for loss in losses)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    note = "Medians over fitted instances; errors as shares of the mean regret; held-out samples "
    return "\n".join([*lines, note + f"but for the first; poor is a held-out error above {_POOR}."])


_COLUMNS = [
    "family",
    "parameters",
    "fitted error",
    "held-out error",
    "R2",
    "rank corr.",
    "poor",
    "would help",
]


def _cells(summary: FitSummary) -> list[str]:
    spreads = (summary.error_fitted, summary.error_held_out, summary.r2, summary.rank_correlation)
    return [
        str(summary.family),
        str(summary.n_parameters),
        *(f"{spread.median:.2f}" for spread in spreads),
        f"{summary.n_poor}/{summary.n_judged}",
        summary.remedy,
    ]


def _spread(values: Array, *, worst: float) -> Spread:
    return Spread(_quantile(values, 0.5), _quantile(values, worst))


def _quantile(values: Array, share: float) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, share)) if len(known) else float("nan")
