"""What the learner chooses from: 2-stage, and the losses that may decide better."""

from collections.abc import Sequence
from dataclasses import dataclass

from lodl._validation import check_count
from lodl.errors import InvalidInputError
from lodl.fitting import fit
from lodl.learning._enough_samples import largest_family
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedWeightedMSE,
    Family,
    LearnedLoss,
    WeightedMSE,
    squared_error_loss,
)
from lodl.losses._family import check_can_fit
from lodl.losses._short_name import short_name
from lodl.oracle import OracleSamples

TWO_STAGE = "2-stage"

_N_SAMPLES = 16  # with the label more than half of all calls, which serve a second model too
_N_SAMPLES_OF_MANY = 6  # many instances know together what few must be asked about
_MANY = 500
_N_SAMPLES_TO_FIT = 50  # for a family that is fitted to regrets


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
        name = TWO_STAGE if self.family is None else short_name(self.family)
        return name if self.stops else f"{name}, not stopped"

    def learn(self, samples: OracleSamples) -> LearnedLoss:
        """Return the loss of every instance."""
        if self.family is None:
            return squared_error_loss(samples.y)
        return fit(samples, self.family, holdout=0.0, progress=False)


def candidates(families: Sequence[Family], dim: int) -> tuple[Candidate, ...]:
    """Return 2-stage, then a candidate for each family."""
    if isinstance(families, Family):
        raise InvalidInputError(
            f"`families` must be a sequence of families, got one: write [{short_name(families)}]."
        )
    for family in families:
        check_can_fit(family, dim)
    if len(set(map(repr, families))) < len(families):
        raise InvalidInputError("`families` must differ from each other.")
    return (Candidate(None), *map(Candidate, families))


def default_families(*, is_affine: bool, n_samples: int, dim: int) -> tuple[Family, ...]:
    """Return families that did well on paths, knapsacks and assignments.

    The first leads the rounds. All have a squared error beside the decisions, which keeps models
    from fitting the few decisions that were met; how much of it is best depends on the instances
    and on the size of the label. Margins and rankings err differently, so that averages of them are
    often better than each. Where the objective is not affine in the label, decision families see it
    near the label only, so one that sees regrets competes, with weights for either side of the
    label at least.
    """
    decisions = (
        DecisionHinges(margin=1.0, squared_error=10.0),
        DecisionHinges(margin=1.0, squared_error=3.0),
        DecisionHinges(squared_error=1.0),
        DecisionRanking(squared_error=1.0),
    )
    if is_affine:
        return decisions
    largest = largest_family(n_samples, dim)
    return (*decisions, DirectedWeightedMSE() if largest == WeightedMSE() else largest)


def resolve_n_samples(n_samples: int | None, *, is_affine: bool, n_instances: int) -> int:
    """Return the number of samples at each label."""
    if n_samples is not None:
        return check_count("n_samples", n_samples)
    if not is_affine:
        return _N_SAMPLES_TO_FIT
    return _N_SAMPLES if n_instances < _MANY else _N_SAMPLES_OF_MANY
