"""`Finding`: advice about a learned loss, and the text that leads with it."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
"""Advice for each kind of finding, the most important kind first."""


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
        """The action to take."""
        return ADVICE[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.evidence} {self.advice}"


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
