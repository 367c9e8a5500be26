"""Findings: advice about a learned loss, from its held-out errors and from a diagnosis.

The thresholds were selected on the paper's domains, with small data and few seeds, by comparing the
numbers of losses whose models decided well with those of losses whose models did not.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lodl.losses import FitStatus

if TYPE_CHECKING:
    from lodl.evaluation._diagnosis import Diagnosis
    from lodl.evaluation._loss_summary import LossSummary

WRONG_SENSE = "wrong sense"
NOTHING_TO_DECIDE = "nothing to decide"
SCALE = "scale"
LOCAL_SLOPES = "local slopes"
MORE_SAMPLES = "more samples"

ADVICE = {
    WRONG_SENSE: "Check that `sense` is right and that the solver is exact, with "
    "`lodl.testing.check_problem`.",
    NOTHING_TO_DECIDE: "Check the problem with `lodl.testing.check_problem`, and try a larger "
    "scale of the sampler.",
    SCALE: "Sample with a scale that matches the errors of the model.",
    LOCAL_SLOPES: "The objective is not affine in the label, or the solver is not exact, so a "
    "decision family is valid near the label only. Also try `ConvexDirectedQuadratic`, and compare "
    "the decisions of both models on validation instances.",
    MORE_SAMPLES: "Draw several times as many samples, or use a family with fewer parameters.",
}
"""What to do about each kind of finding, the most important kind first."""

_SMALL = 0.05  # held-out error, as a share of the mean regret, too small to need more samples
_GAP = 1.25  # ratio of held-out to fitted error above which more samples help

# Decision families; results/decision_summaries.md has the numbers of all domains.
_HARDLY_RANKS = 0.05  # rank correlation: the lowest of a loss that trained a good model was 0.1
_LOCAL = 0.9  # share of decisions explained: 0.99 in Web Advertising, where such losses do well

# Decision quality above which the loss has done its work: its error, which can be many times the
# little regret that is left, no longer matters.
_GOOD = 0.9

# Ratio of the errors of predictions to those sampled. In Web Advertising a loss led to good
# decisions below 1, to worse decisions at 3 and to poor decisions from 4 on. In the Linear Model
# decisions were good at 2, and for most families at 15, too.
_FAR = 3.0

# Ratio of learned loss to true regret below which the loss hardly sees the regret. Small errors
# alone do no harm: in Web Advertising, with samples seven times as large, the loss saw at least
# 0.4 of the regret and was learned; in the Linear Model it saw 0.04 at most and was not.
_UNSEEN = 0.25


@dataclass(frozen=True)
class Finding:
    """A piece of advice about a learned loss.

    Attributes:
        name: The kind of finding: "wrong sense", "nothing to decide", "scale", "local slopes" or
            "more samples".
        evidence: The numbers that led to it, as a sentence.
    """

    name: str
    evidence: str

    @property
    def advice(self) -> str:
        """What to do."""
        return ADVICE[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.evidence} {self.advice}"


def findings_of_fit(summary: LossSummary) -> Iterator[Finding]:
    """Yield the findings that follow from held-out errors, the most important first."""
    n_sampled = summary.n_instances - summary.n_by_status[FitStatus.NO_SAMPLES]
    n_unfitted = summary.n_instances - summary.n_by_status[FitStatus.FITTED]
    if 2 * summary.n_negative > n_sampled:
        negative = f"The mean regret is below 0 for {summary.n_negative} of {n_sampled} instances."
        yield Finding(WRONG_SENSE, negative)
        return
    if 2 * n_unfitted > summary.n_instances:
        unfitted = f"{n_unfitted} of {summary.n_instances} instances could not be fitted."
        yield Finding(NOTHING_TO_DECIDE, unfitted)
    ranks = f"The rank correlation with the regret is {summary.rank_correlation:.2f}"
    if summary.family.uses_slopes:
        explained = summary.decisions_explained
        if explained < _LOCAL:
            yield Finding(LOCAL_SLOPES, f"Slopes explain {explained:.0%} of the decisions taken.")
        if summary.rank_correlation < _HARDLY_RANKS:
            yield Finding(MORE_SAMPLES, f"{ranks}.")
        return
    held_out, fitted = summary.error_held_out.median, summary.error_fitted.median
    if held_out > max(_GAP * fitted, _SMALL):
        errors = f"the error {held_out:.2f} of the mean regret on held-out samples"
        yield Finding(MORE_SAMPLES, f"{ranks}, {errors}, but {fitted:.2f} on fitted samples.")


def findings_at_predictions(diagnosis: Diagnosis) -> Iterator[Finding]:
    """Yield the findings about a loss where a model predicts, the most important first."""
    of_fit = diagnosis.summary.findings
    if of_fit and of_fit[0].name in (WRONG_SENSE, NOTHING_TO_DECIDE):
        yield from of_fit
    elif diagnosis.regret < 0 or diagnosis.foreign_regret < 0:
        yield Finding(
            WRONG_SENSE,
            f"The mean regret of the predictions is {diagnosis.regret:.3g}; with the predictions "
            f"of other instances it is {diagnosis.foreign_regret:.3g}.",
        )
    elif not (diagnosis.regret == 0 or diagnosis.quality > _GOOD):
        yield from _findings_of_scale(diagnosis)
        yield from of_fit


def _findings_of_scale(diagnosis: Diagnosis) -> Iterator[Finding]:
    ratio, scale = diagnosis.size_ratio, diagnosis.scale
    is_unseen = ratio < 1 / _FAR and diagnosis.loss < _UNSEEN * diagnosis.regret
    if ratio > _FAR or is_unseen:
        yield Finding(
            SCALE,
            f"The errors of predictions are {ratio:.2g} times as large as those sampled with scale "
            f"{scale:.2g}, so a scale of {ratio * scale:.2g} would match them. The loss is "
            f"{diagnosis.loss:.3g}, the regret {diagnosis.regret:.3g}.",
        )


def finding_text(title: str, findings: Sequence[Finding], numbers: Mapping[str, str]) -> str:
    """Return a title, the findings, and named numbers, as lines for a terminal."""
    lines = [f"- {finding}" for finding in findings] or ["- No change suggested."]
    return "\n".join(
        [
            title,
            *(_wrap(line, indent=2) for line in lines),
            *(_wrap(f"  {name:<18}{text}", indent=20) for name, text in numbers.items()),
        ]
    )


def _wrap(text: str, *, indent: int) -> str:
    return textwrap.fill(text, 88, subsequent_indent=" " * indent)
