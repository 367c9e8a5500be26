"""What the learner chooses from: 2-stage, and the losses that may decide better."""

from collections.abc import Sequence
from dataclasses import dataclass

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import Family, LearnedLoss, fit, fit_shared, squared_error_loss
from lodl.losses._decision_family import DecisionFamily
from lodl.losses._family import check_can_fit
from lodl.oracle import Samples

TWO_STAGE = "2-stage"


@dataclass(frozen=True)
class Candidate:
    """A loss to try: squared error where `family` is None.

    Attributes:
        family: The parametric loss.
        stops: Whether training stops early, on the loss of held-out instances.
    """

    family: Family | None
    stops: bool = True

    @property
    def name(self) -> str:
        """What the user could type for it."""
        name = TWO_STAGE if self.family is None else str(self.family)
        return name if self.stops else f"{name}, not stopped"

    def learn(self, samples: Samples, at: Array | None = None) -> LearnedLoss:
        """Return the loss of every instance.

        Args:
            samples: All answers.
            at: Predictions near which instances share their decisions; None if they do not.
        """
        if self.family is None:
            return squared_error_loss(samples.y)
        if at is not None and isinstance(self.family, DecisionFamily):
            return fit_shared(samples, self.family, at=at)
        return fit(samples, self.family, holdout=0.0, progress=False)


def candidates(families: Sequence[Family], dim: int) -> tuple[Candidate, ...]:
    """Return 2-stage, then a candidate for each family."""
    if isinstance(families, Family):
        raise InvalidInputError(
            f"`families` must be a sequence of families, got one: write [{families}]."
        )
    if not isinstance(families, Sequence):
        raise InvalidInputError(
            f"`families` must be a sequence of families, got {type(families).__name__}. Use "
            "`list(families)`."
        )
    for family in families:
        check_can_fit(family, dim)
    if len(set(map(repr, families))) < len(families):
        raise InvalidInputError("`families` must differ from each other.")
    return (Candidate(None), *map(Candidate, families))
