"""Which verdicts apply to a learned loss where a model predicts.

The few thresholds were chosen on the paper's domains, on small data and few seeds, by comparing
the numbers where a model trained on the loss decided well with those where it did not: four
families, 50 to 2,000 samples, scales from 1/20 to 5 times (Linear Model) and from 1/5 to 20 times
(Web Advertising) the labels' deviation, one scale for Portfolio. The tests of the advice repeat
some of it.
"""

import math
from collections.abc import Iterator

from lodl.evaluation._fidelity import Fidelity
from lodl.evaluation._region import Region
from lodl.losses import FitSummary
from lodl.losses._verdicts import (
    ANOTHER_FAMILY,
    DIRECTED_FAMILY,
    GOOD_DECISIONS,
    LARGER_SCALE,
    MORE_COORDINATES,
    NO_CHANGE,
    PROBLEM_OR_SCALE,
    SAMPLES_AT_LABELS,
    SENSE_OR_SOLVER,
    SMALLER_SCALE,
    Finding,
)

# Above this decision quality of the predictions the loss has done its work: its error no longer
# matters, and can be many times the little regret that is left.
_GOOD = 0.9

# Ratio of what errors cost with either sign. Where a directed family paid off, it was above 50
# (Linear Model, Web Advertising). In Portfolio it was 2 to 5, and a directed family made the error
# at predictions larger as often as smaller (12 seeds).
_ONE_SIDED = 10.0

# Ratio of the errors of predictions to those sampled. In Web Advertising a loss led to good
# decisions below 1, to worse ones at 3 and to poor ones from 4 on. In the Linear Model decisions
# were good at 2, and for most families at 15 too, so a larger scale is advised, not demanded.
_FAR = 3.0

# A smaller ratio is enough where nearly all predictions lie outside the samples. (With many
# coordinates they soon do, because the sizes of samples then hardly differ.)
_LARGER = 2.0
_MOST_OUTSIDE = 0.8

# Share of predictions that are wrong in more coordinates at once than any sample. With noise on one
# coordinate instead of all, every family but `WeightedMSE` led to worse decisions in Web
# Advertising (table 2a of results/README.md), `Quadratic` by 0.36.
_MOST_WIDER = 0.5

# Ratio of the learned loss to the true regret below which the loss hardly sees it. Small errors
# alone do no harm: in Web Advertising, with samples seven times as large, the loss saw at least
# 0.4 of the regret and was learned; in the Linear Model it saw 0.04 at most and was not.
_UNSEEN = 0.25


def judge(
    fidelity: Fidelity, region: Region | None, fit: FitSummary, *, is_one_sided: bool = False
) -> tuple[Finding, ...]:
    """Return what to do, the most important first; at least one finding.

    Args:
        fidelity: Learned loss compared with true regret at the predictions.
        region: The predictions compared with the samples, if the sampler is known.
        fit: How well the loss repeats its samples.
        is_one_sided: Whether all samples lie where a model predicts.
    """
    of_fit = fit.findings
    if of_fit[0].verdict in (SENSE_OR_SOLVER, PROBLEM_OR_SCALE):
        return of_fit
    regrets = (
        f"The mean regret of the predictions is {fidelity.regret:.3g}; with the predictions of "
        f"other instances it is {number_text(fidelity.foreign_regret)}."
    )
    if fidelity.regret < 0 or fidelity.foreign_regret < 0:
        return (Finding(SENSE_OR_SOLVER, regrets),)
    if fidelity.regret == 0 or fidelity.quality > _GOOD:
        return (Finding(GOOD_DECISIONS, regrets),)
    direction = tuple(_judge_direction(fidelity))
    unwanted = {NO_CHANGE, ANOTHER_FAMILY} if direction else {NO_CHANGE}
    found = (
        *direction,
        *_judge_side(fit, is_one_sided),
        *_judge_width(region),
        *_judge_scale(fidelity, region),
        *(finding for finding in of_fit if finding.verdict not in unwanted),
    )
    suits = "Family, scale and number of samples suit the predictions."
    return found or (Finding(NO_CHANGE, suits),)


def number_text(number: float, digits: str = ".3g") -> str:
    """Return a number as text."""
    return "not defined" if math.isnan(number) else f"{number:{digits}}"


def _judge_direction(fidelity: Fidelity) -> Iterator[Finding]:
    low, high = sorted([fidelity.regret, fidelity.reversed_regret])
    if not fidelity.sees_direction and high > _ONE_SIDED * low:
        yield Finding(
            DIRECTED_FAMILY,
            f"The errors cost {fidelity.regret:.3g}, but {fidelity.reversed_regret:.3g} with the "
            "opposite sign, and this family treats both alike.",
        )


def _judge_side(fit: FitSummary, is_one_sided: bool) -> Iterator[Finding]:
    if is_one_sided and not fit.family.uses_slopes:
        yield Finding(SAMPLES_AT_LABELS, "The loss was learned around predictions only.")


def _judge_width(region: Region | None) -> Iterator[Finding]:
    if region is not None and region.share_wider > _MOST_WIDER:
        yield Finding(
            MORE_COORDINATES,
            f"Samples have noise on at most {region.n_at_once} coordinates, but most predictions "
            "are wrong in more: the loss has not seen how such errors add up or cancel.",
        )


def _judge_scale(fidelity: Fidelity, region: Region | None) -> Iterator[Finding]:
    if region is None:
        return
    sizes = (
        f"The errors are {region.size_ratio:.2g} times as large as those sampled with scale "
        f"{region.scale:.2g}, so a scale of {region.size_ratio * region.scale:.2g} would match them"
    )
    are_outside = region.size_ratio > _LARGER and region.share_outside > _MOST_OUTSIDE
    if region.size_ratio > _FAR or (are_outside and region.share_wider <= _MOST_WIDER):
        yield Finding(LARGER_SCALE, f"{sizes}.")
    elif region.size_ratio < 1 / _FAR and fidelity.loss < _UNSEEN * fidelity.regret:
        seen = f"the loss is {fidelity.loss:.3g} where the regret is {fidelity.regret:.3g}"
        yield Finding(SMALLER_SCALE, f"{sizes}; {seen}.")
