"""Every verdict on a learned loss: when it is given, and what to do then."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WIDTH = 88


@dataclass(frozen=True)
class Verdict:
    """A kind of finding about a learned loss.

    Attributes:
        name: The verdict in a few words.
        condition: When it is given.
        advice: What to do.
    """

    name: str
    condition: str
    advice: str


ANOTHER_PROBLEM = Verdict(
    "another problem",
    "The loss was learned from a different problem.",
    "All else here is about the problem you passed; if it is the right one, learn the loss again.",
)
SENSE_OR_SOLVER = Verdict(
    "sense or solver",
    "Predictions lead to better decisions than the labels do.",
    "Check that `sense` is right and that the solver is exact, with `lodl.testing.check_problem`.",
)
PROBLEM_OR_SCALE = Verdict(
    "problem or scale",
    "No instance could be fitted.",
    "Check the problem with `lodl.testing.check_problem`, and the sampler's scale.",
)
GOOD_DECISIONS = Verdict(
    "good decisions",
    "Decisions are close to the best ones, so the error of the loss no longer matters.",
    "Nothing to do here; measure the regret on unseen instances with `lodl.evaluation.regret`.",
)
DIRECTED_FAMILY = Verdict(
    "directed family",
    "What an error costs depends on its sign, and the family cannot tell the two signs apart.",
    "Fit `DirectedWeightedMSE` or `ConvexDirectedQuadratic` to the same samples.",
)
SAMPLES_AT_LABELS = Verdict(
    "samples at labels",
    "All samples were drawn where a model predicts, so the family, which is fitted to regrets, has "
    "seen each coordinate from one side of the label only.",
    "Sample around the labels too, with `AllPerturbed`, and fit `samples.union(...)` of both.",
)
MORE_COORDINATES = Verdict(
    "more coordinates at once",
    "Predictions are wrong in more coordinates at once than any sample.",
    "Sample with `AllPerturbed` of the same scale, which puts noise on every coordinate.",
)
LARGER_SCALE = Verdict(
    "larger scale",
    "Errors of predictions are larger than those sampled, so the loss has not seen their cost.",
    "Sample with a larger scale.",
)
SMALLER_SCALE = Verdict(
    "smaller scale",
    "Errors of predictions are smaller than those sampled, and the loss hardly sees their cost.",
    "Sample with a smaller scale.",
)
HELD_OUT_SAMPLES = Verdict(
    "held-out samples",
    "No samples were held out, so the fit cannot be judged.",
    "Fit with `holdout` above 0; a loss of shared decisions is judged by the model's decisions.",
)
ANOTHER_FAMILY = Verdict(
    "another family",
    "The error is large on fitted and on held-out samples, and the loss hardly ranks them.",
    "Compare other families on the same samples with `lodl.losses.compare_losses`, or sample "
    "closer to the label. If none is better, the cost is a step, which no smooth loss can follow; "
    "a model may still decide well.",
)
LOCAL_SLOPES = Verdict(
    "local slopes",
    "The objective is not affine in the label, or the solver is not exact, so a decision family is "
    "only valid near the label.",
    "Also try `ConvexDirectedQuadratic`, which is fitted to regrets, and compare the decisions of "
    "both models on validation instances.",
)
MORE_SAMPLES = Verdict(
    "more samples",
    "Held-out samples have much larger errors than fitted ones, or are hardly ranked.",
    "Take several times as many samples, or a family with fewer parameters.",
)
ROUNDS = Verdict(
    "rounds",
    "There are so many decisions that samples around a label rarely lead to the same one twice.",
    "Train on the loss, then ask again where the model predicts: "
    "`lodl.learning.learn_in_rounds` does both.",
)
NO_CHANGE = Verdict(
    "no change suggested",
    "No other verdict applies.",
    "If a model trained on this loss decides poorly, look at its features and its training.",
)

VERDICTS = (
    ANOTHER_PROBLEM,
    SENSE_OR_SOLVER,
    PROBLEM_OR_SCALE,
    GOOD_DECISIONS,
    DIRECTED_FAMILY,
    SAMPLES_AT_LABELS,
    MORE_COORDINATES,
    LARGER_SCALE,
    SMALLER_SCALE,
    HELD_OUT_SAMPLES,
    ANOTHER_FAMILY,
    LOCAL_SLOPES,
    MORE_SAMPLES,
    ROUNDS,
    NO_CHANGE,
)
"""All verdicts, those that matter most first."""


@dataclass(frozen=True)
class Finding:
    """A verdict on one learned loss, and the numbers that led to it.

    Attributes:
        verdict: The verdict.
        evidence: The numbers, in a sentence.
    """

    verdict: Verdict
    evidence: str

    def __str__(self) -> str:
        return f"{self.verdict.name}: {self.evidence} {self.verdict.advice}"


def finding_text(title: str, findings: Sequence[Finding], numbers: Mapping[str, str]) -> str:
    """Return a title, what to do, and the numbers by name, as lines for a terminal."""
    return "\n".join(
        [
            title,
            *(_wrap(f"- {finding}", indent=2) for finding in findings),
            *(_wrap(f"  {name:<18}{text}", indent=20) for name, text in numbers.items()),
        ]
    )


def _wrap(text: str, *, indent: int) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent=" " * indent)
