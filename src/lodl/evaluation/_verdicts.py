"""What would make a learned loss more faithful where predictions are.

The few thresholds were chosen on the paper's domains at a small scale, few seeds, by what the
figures were where a model trained on the loss decided well and where not: four families, 50 to
2,000 samples, scales from a twentieth to five times (Linear Model) and a fifth to twenty times (Web
Advertising) the labels' deviation; of Portfolio one scale only. The tests of the advice repeat some
of it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lodl.evaluation._fidelity import Fidelity
from lodl.evaluation._region import Region
from lodl.losses import FitSummary

# Where the decision quality of predictions is above this, the loss has done its work: its error no
# longer matters, and can be many times what little regret is left.
_GOOD = 0.9

# Errors that cost this many times more, or less, with the other sign. Where a directed family paid
# off it was more than 50 (Linear Model, Web Advertising); in Portfolio, where it made the error at
# predictions larger as often as smaller (12 seeds), 2 to 5.
_ONE_SIDED = 10.0

# Errors of predictions this many times larger or smaller than those sampled. In Web Advertising a
# loss led to good decisions below 1, to worse at 3 and to poor ones from 4 on; in the Linear Model
# to good ones at 2, and in most families at 15 too, so a larger scale is advice, not a must.
_FAR = 3.0

# Errors this many times larger are advised against, too, where nearly all predictions are outside
# the samples. (With many coordinates they soon are: sizes of samples hardly differ then.)
_LARGER = 2.0
_MOST_OUTSIDE = 0.8

# Share of predictions that err in more coordinates at once than any sample. With noise on one
# coordinate instead of all, every family but `WeightedMSE` led to worse decisions in Web
# Advertising (table 2a of results/README.md), `Quadratic` by 0.36.
_MOST_WIDER = 0.5

# A learned loss below this share of the true regret hardly sees it. Small errors alone do no harm:
# Web Advertising was learned with samples seven times as large, where the loss saw at least
# 0.4 of the regret; the Linear Model was not, where it saw 0.04 at most.
_UNSEEN = 0.25


@dataclass(frozen=True)
class Verdict:
    """One thing to do about a learned loss.

    Attributes:
        remedy: One of "nothing", "another problem", "sense or solver", "problem or scale",
            "directed family", "more coordinates at once", "larger scale", "smaller scale",
            "more samples", "another family" and "not known".
        reason: What was seen.
        advice: What to do.
    """

    remedy: str
    reason: str
    advice: str

    def __str__(self) -> str:
        return f"{self.remedy}: {self.reason} {self.advice}"


def in_words(figure: float, digits: str = ".3g") -> str:
    """Returns a figure as text."""
    return "not defined" if math.isnan(figure) else f"{figure:{digits}}"


def judge(fidelity: Fidelity, region: Region | None, fit: FitSummary) -> tuple[Verdict, ...]:
    """Returns what to do, the most telling first; there is always at least one verdict."""
    if fit.remedy in ("sense or solver", "problem or scale"):
        return (Verdict(fit.remedy, fit.advice, "Let `lodl.testing.check_problem` look at it."),)
    if fidelity.regret < 0 or fidelity.foreign_regret < 0:
        return (_better_than_the_label(fidelity),)
    if fidelity.regret == 0 or fidelity.quality > _GOOD:
        return (_good_decisions(fidelity),)
    direction = tuple(_direction(fidelity))
    found = (*direction, *_width(region), *_scale(fidelity, region), *_samples(fit))
    if not direction:
        found = (*found, *_family(fit))
    return found or (_nothing_seen(),)


def another_problem() -> Verdict:
    """Returns what to say where the problem is not the one that the loss was learned from."""
    return Verdict(
        "another problem",
        "The loss was learned from another problem: its code or its parameters were others, or "
        "Python was of another version.",
        "What follows is about the problem given here. Learn the loss again if that is the one.",
    )


def _better_than_the_label(fidelity: Fidelity) -> Verdict:
    return Verdict(
        "sense or solver",
        f"The predictions' mean regret is {fidelity.regret:.3g}, with predictions of other "
        f"instances it is {in_words(fidelity.foreign_regret)}: below 0 is better than the labels.",
        "Is `sense` right, or is the solver a heuristic? Let `lodl.testing.check_problem` look.",
    )


def _good_decisions(fidelity: Fidelity) -> Verdict:
    return Verdict(
        "nothing",
        f"Decisions are near the best: the predictions' mean regret is {fidelity.regret:.3g}, with "
        f"predictions of other instances it is {in_words(fidelity.foreign_regret)}.",
        "Whether they are as good for unseen instances, `lodl.evaluation` tells.",
    )


def _nothing_seen() -> Verdict:
    return Verdict(
        "nothing",
        "Family, scale and number of samples suit these predictions.",
        "If decisions are poor, look at the model: its features, and how long it is trained.",
    )


def _direction(fidelity: Fidelity) -> Iterator[Verdict]:
    low, high = sorted([fidelity.regret, fidelity.reversed_regret])
    if not fidelity.sees_direction and high > _ONE_SIDED * low:
        yield Verdict(
            "directed family",
            f"The errors cost {fidelity.regret:.3g}, with the other sign they would cost "
            f"{fidelity.reversed_regret:.3g}, and this family cannot tell the two apart.",
            "Try `DirectedWeightedMSE` or `ConvexDirectedQuadratic`: they are fitted to the same "
            "samples.",
        )


def _width(region: Region | None) -> Iterator[Verdict]:
    if region is not None and region.share_wider > _MOST_WIDER:
        yield Verdict(
            "more coordinates at once",
            f"Samples are wrong in {region.n_at_once} at most, most predictions in more: how such "
            "errors add up or cancel, the loss has not seen.",
            "Try `AllPerturbed` of the same scale: noise on all coordinates.",
        )


def _scale(fidelity: Fidelity, region: Region | None) -> Iterator[Verdict]:
    if region is None:
        return
    reason = f"The errors are {region.size_ratio:.2g} times as large as those sampled"
    advice = f"Try a scale {region.size_ratio:.2g} times the present one, {region.scale:.2g}."
    are_outside = region.size_ratio > _LARGER and region.share_outside > _MOST_OUTSIDE
    if region.size_ratio > _FAR or (are_outside and region.share_wider <= _MOST_WIDER):
        yield Verdict("larger scale", f"{reason}: the loss has not seen what they cost.", advice)
    elif region.size_ratio < 1 / _FAR and fidelity.loss < _UNSEEN * fidelity.regret:
        seen = f"and of their mean regret, {fidelity.regret:.3g}, the loss sees {fidelity.loss:.3g}"
        yield Verdict("smaller scale", f"{reason}, {seen}.", advice)


def _samples(fit: FitSummary) -> Iterator[Verdict]:
    # More samples lower the held-out error. That at predictions far from samples may stay: in the
    # Linear Model it fell by a third for ConvexDirectedQuadratic, not for DirectedWeightedMSE.
    if not fit.n_judged:
        yield Verdict("not known", fit.advice, "Fit with `holdout` above 0.")
    elif fit.more_samples_would_help:
        yield Verdict(
            "more samples",
            f"On samples kept aside the error is {fit.error_held_out.median:.2f} of the mean regret"
            f", on those fitted to {fit.error_fitted.median:.2f}.",
            f"Try several times the present {fit.n_samples:.0f} an instance, or a family of fewer "
            "parameters.",
        )


def _family(fit: FitSummary) -> Iterator[Verdict]:
    if fit.another_family_would_help:
        yield Verdict(
            "another family",
            "Even on the samples that it was fitted to the error is "
            f"{fit.error_fitted.median:.2f} of the mean regret.",
            "Fit others to the same samples and put them side by side: "
            "`lodl.losses.compare_losses`. If none is better the cost is a step, which no smooth "
            "loss repeats, and a model may do well all the same.",
        )
