"""What the learner asks and tries by default, which depends on what it can know."""

from collections.abc import Sequence
from dataclasses import dataclass

from lodl.learning._enough_samples import largest_family
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedWeightedMSE,
    Family,
    WeightedMSE,
)

_N_SAMPLES = 16  # with the label more than half of all calls, which serve a second model too
_N_SAMPLES_OF_MANY = 6  # many instances know together what few must be asked about
_MANY = 500
_N_SAMPLES_TO_FIT = 50  # for a family that is fitted to regrets
_N_ROUNDS = 4
_N_SAMPLES_SHARED, _N_ROUNDS_SHARED = 10, 2  # 16 and 6 decided no better


@dataclass(frozen=True)
class Situation:
    """What is known about the problem and its data before the first question.

    Attributes:
        is_affine: Whether the objective is affine in the label.
        has_context: Whether the solver sees more than the prediction.
        n_instances: Number of instances.
        dim: How many numbers a label has.
    """

    is_affine: bool
    has_context: bool
    n_instances: int
    dim: int

    @property
    def is_shared(self) -> bool:
        """Whether what was decided for one instance is known at all others."""
        return self.is_affine and not self.has_context

    def n_samples(self, families: Sequence[Family]) -> int:
        """Return the number of samples at each label; `families` are those that the user gave."""
        if not self.is_affine or not all(family.uses_slopes for family in families):
            return _N_SAMPLES_TO_FIT
        if self.is_shared:
            return _N_SAMPLES_SHARED
        return _N_SAMPLES if self.n_instances < _MANY else _N_SAMPLES_OF_MANY

    @property
    def n_rounds(self) -> int:
        """Rounds of samples at predictions."""
        return _N_ROUNDS_SHARED if self.is_shared else _N_ROUNDS

    def families(self, n_samples: int) -> tuple[Family, ...]:
        """Return families that did well on paths, knapsacks and assignments.

        The first leads the rounds. All have a squared error beside the decisions, which keeps
        models from fitting the decisions that were met; the fewer were met, the more of it is
        needed. Margins and rankings err differently, so that their average is better than each. A
        low temperature ranks only the best decisions, and needs to know them: it is for instances
        that share theirs. If the objective is not affine in the label, decision families see it
        near the label only, so one that sees regrets competes, with weights for either side of the
        label at least.

        Args:
            n_samples: Samples at each label.
        """
        if self.is_shared:
            precise = (
                DecisionHinges(squared_error=0.1),
                DecisionRanking(temperature=0.1, squared_error=0.1),
            )
            if self.n_instances >= _MANY:  # which need less squared error, and fewer averages
                return precise
            steady = DecisionHinges(margin=1.0, squared_error=3.0)
            return (steady, *precise, DecisionRanking(squared_error=0.1))
        decisions = (
            DecisionHinges(margin=1.0, squared_error=10.0),
            DecisionHinges(margin=1.0, squared_error=3.0),
            DecisionHinges(squared_error=1.0),
            DecisionRanking(squared_error=1.0),
        )
        if self.is_affine:
            return decisions
        largest = largest_family(n_samples, self.dim)
        return (*decisions, DirectedWeightedMSE() if largest == WeightedMSE() else largest)
