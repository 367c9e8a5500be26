"""Default families, samples and rounds, and the schedule of solver calls within a budget."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, prod

from lodl._arrays import check_count
from lodl.errors import InvalidInputError
from lodl.losses import DecisionFamily, DecisionHinges, DecisionRanking, DirectedWeightedMAE, Family
from lodl.losses._family import check_can_fit
from lodl.oracle import ObjectiveKind
from lodl.samplers import AllPerturbed, Sampler, check_sampler

AT_LABELS = AllPerturbed(scale="auto")  # the default sampler of points around labels

_N_SAMPLES = 16  # of each instance with a context, for decision families
_N_SAMPLES_OF_MANY = 6  # the same from `_N_MANY` instances on, which know more together
_N_SAMPLES_TO_FIT = 50  # of each instance, for families that are fitted to its regrets alone
_N_SAMPLES_POOLED, _N_FIRST_POOLED = 10, 4  # for families that are fitted to all instances
_N_ROUNDS = 4
_N_SAMPLES_SHARED = 10  # of each instance if there are no rounds, which teach more
_N_ROUNDS_SHARED = 7  # the most; they end when predictions lead to no new decisions
_N_ROUNDS_NEAR = 3  # if calls bring the decisions next to theirs: five calls in all
_N_PER_ROUND = 2
_MOST_NEIGHBOURS = 250  # decisions of an instance that knows those next to its own
_N_MANY = 500  # instances that need less squared error, and fewer losses to average
_N_TRIED, _N_POINTS = 3, 4  # instances that a first look tries, and points at each, one twice
_FEWEST_SAMPLES = 5  # around a label if the solver scores models
_SAMPLES_PER_PARAMETER = 3  # with fewer, models decided worse than on squared error

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Schedule:
    """The numbers of solver calls.

    Attributes:
        n_samples: Points around each label. If instances share their decisions, defaults to 0, or
            to 10 without rounds. If they do not, defaults to 16 (6 from 500 instances on), or to 0
            with rounds if calls bring the decisions next to theirs (`Problem.neighbours`). If the
            objective is not affine in the label, defaults to 4, or 10 if losses do not predict
            left-out regrets well from 4; 16 with decision families, 50 if one cannot be pooled.
        n_rounds: Rounds of further points where the model predicts. Defaults to 4, to 3 if each
            instance learns from the decisions next to its own, or to 7 if instances share their
            decisions, when two rounds with few new decisions are the last. There are none if all
            losses are pooled: they mislead.
        n_per_round: Points per instance and round. Defaults to 2, or to 1 if decisions are shared
            or known next to others.
        max_calls: Limit on solver calls. Rounds are dropped first, then samples.
        sampler: Draws the points around labels.
        n_first: Points around each label to begin with. The others follow if the loss needs them.
    """

    n_samples: int | None = None
    n_rounds: int | None = None
    n_per_round: int | None = None
    max_calls: int | None = None
    sampler: Sampler = AT_LABELS
    n_first: int | None = None

    def __post_init__(self) -> None:
        least = {"n_samples": 0, "n_rounds": 0, "n_per_round": 1, "max_calls": 1}
        for name, minimum in least.items():
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), minimum=minimum)
        check_sampler(self.sampler)

    def calls_per_instance(self, n_looks: Callable[[int], int]) -> int:
        """Return the most calls about an instance, given models only scored by number of rounds."""
        n_rounds = self.n_rounds or 0
        return 1 + (self.n_samples or 0) + n_rounds * (self.n_per_round or 1) + n_looks(n_rounds)

    def within_budget(self, n_instances: int, n_looks: Callable[[int], int]) -> "Schedule":
        """Return a schedule of at most `max_calls`: first fewer rounds, then fewer samples."""
        plan, limit = self, inf if self.max_calls is None else self.max_calls
        while True:
            n_samples = plan.n_samples or 0
            n_calls = n_instances * plan.calls_per_instance(n_looks)
            n_calls += _N_TRIED * (1 + max(_N_POINTS - n_samples, 0))
            if n_calls <= limit:
                return plan
            if plan.n_rounds:
                plan = replace(plan, n_rounds=plan.n_rounds - 1)
            elif n_samples > _FEWEST_SAMPLES:
                plan = replace(plan, n_samples=n_samples - 1)
            else:
                raise InvalidInputError(
                    f"`max_calls` must be at least {n_calls} for {n_instances} instances, got "
                    f"{self.max_calls}. Fewer families need fewer calls."
                )

    def within_tight_budget(self, n_instances: int, n_spent: int, *, is_shared: bool) -> "Schedule":
        """Return a schedule of at most `max_calls` if models are compared without calls.

        A call for each label comes first, then samples, then rounds, which only known decisions
        are worth. As far as there are more calls, the last ones compare the selected model with
        the baseline, which the first round of shared decisions has already called.
        """
        if self.max_calls is None:
            return self
        n_left = (self.max_calls - n_spent) // n_instances - 1
        if n_left < 0:
            raise InvalidInputError(
                f"`max_calls` must be at least {n_instances + n_spent} for {n_instances} instances "
                f"and {n_spent} checks of the problem, got {self.max_calls}."
            )
        if not is_shared:
            n_samples = min(self.n_samples or 0, max(n_left - 2, n_left // 2))
            return replace(self, n_samples=n_samples, n_rounds=0, n_first=None)
        n_samples = min(self.n_samples or 0, n_left)
        n_left -= n_samples
        n_rounds = min(self.n_rounds or 0, n_left - (n_left > 1))
        return replace(self, n_samples=n_samples, n_rounds=n_rounds)


@dataclass(frozen=True)
class Situation:
    """Facts about a problem and its instances on which defaults depend."""

    kind: ObjectiveKind
    shares: bool  # whether instances may take the decisions of others, as without contexts
    n_instances: int
    has_neighbours: bool = False  # whether a call also brings the decisions next to its own

    @property
    def learns_neighbours(self) -> bool:
        """Whether each instance learns from the decisions next to those that its calls return."""
        return self.is_affine and not self.shares and self.has_neighbours

    @property
    def is_affine(self) -> bool:
        """Whether the objective is affine in the label."""
        return self.kind is ObjectiveKind.AFFINE

    @property
    def is_shared(self) -> bool:
        """Whether every instance can learn from the decisions of all others."""
        return self.is_affine and self.shares

    def schedule(self, given: Schedule, families: Sequence[Family]) -> Schedule:
        """Return a schedule with defaults for what was not given."""
        n_samples, n_rounds, n_first = given.n_samples, given.n_rounds, given.n_first
        all_pooled = bool(families) and all(map(self.is_pooled, families))
        if n_rounds is None:
            n_rounds = _N_ROUNDS_NEAR if self.knows_enough(families) else _N_ROUNDS
            n_rounds = _N_ROUNDS_SHARED if self.is_shared else n_rounds
        n_rounds = 0 if all_pooled or not families else n_rounds
        if n_samples is None:
            n_samples = 0 if self.knows_enough(families) and n_rounds else self._n_samples(families)
            n_first = _N_FIRST_POOLED if all_pooled else n_first
        n_per_round = given.n_per_round or (1 if self.knows_enough(families) else _N_PER_ROUND)
        return replace(
            given, n_samples=n_samples, n_rounds=n_rounds, n_per_round=n_per_round, n_first=n_first
        )

    def knows_enough(self, families: Sequence[Family]) -> bool:
        """Return whether known decisions, shared or next to a call's own, compare all models."""
        knows = self.is_shared or self.learns_neighbours
        return knows and bool(families) and all(isinstance(f, DecisionFamily) for f in families)

    def is_pooled(self, family: Family) -> bool:
        """Return whether a family is fitted to all instances together.

        Not if the objective is affine: which items matter then differs from instance to instance.
        """
        return not self.is_affine and bool(family.degrees)

    def _n_samples(self, families: Sequence[Family]) -> int:
        if not all(family.uses_slopes or self.is_pooled(family) for family in families):
            return _N_SAMPLES_TO_FIT
        if not self.is_affine:
            return _N_SAMPLES if any(f.uses_slopes for f in families) else _N_SAMPLES_POOLED
        if self.is_shared:
            return _N_SAMPLES_SHARED
        return _N_SAMPLES if self.n_instances < _N_MANY else _N_SAMPLES_OF_MANY

    def family(self) -> Family:
        """Return the family for a single loss."""
        if not self.is_affine:
            return DirectedWeightedMAE(squares=True)
        return DecisionHinges(margin=1.0, squared_error=1.0) if self.is_shared else DecisionHinges()

    def families(self) -> tuple[Family, ...]:
        """Return families that did well on paths, knapsacks, assignments and newsvendors.

        They lead the rounds in this order. Squared error keeps models from overfitting the known
        decisions: the fewer are known, the more of it. Margins and rankings err differently, so
        their average is better. A low temperature ranks the best decisions, which shared ones are.
        If the objective is not affine, decision families see it near the label only, so a family
        that sees regrets competes, alone if slopes at the label see one side of a kink only.
        """
        if self.kind is ObjectiveKind.KINKED:
            return (self.family(),)
        if self.is_shared:
            weight = 0.1 if self.n_instances < 6 * _N_MANY else 0.01
            low = DecisionRanking(temperature=0.1, squared_error=weight)
            precise = (DecisionHinges(squared_error=weight), low)
            if self.n_instances >= _N_MANY:
                return precise
            steady = DecisionHinges(margin=1.0, squared_error=3.0)
            return (*precise, DecisionRanking(squared_error=0.1), steady)
        if self.learns_neighbours:  # rankings and small margins did badly on cheap neighbours
            return (DecisionHinges(squared_error=0.1, max_decisions=_MOST_NEIGHBOURS),)
        decisions = (
            DecisionHinges(margin=1.0, squared_error=10.0),
            DecisionHinges(margin=1.0, squared_error=3.0),
            DecisionHinges(squared_error=1.0),
            DecisionRanking(squared_error=1.0),
        )
        return decisions if self.is_affine else (*decisions, self.family())


def check_families(families: Sequence[Family] | None, dim: int) -> None:
    """Check the families that a user gave for labels of `dim` numbers."""
    if families is None:
        return
    if isinstance(families, Family) or not isinstance(families, Sequence):
        got = f"{type(families).__name__}. Use `list(families)`"
        got = f"one: write [{families}]" if isinstance(families, Family) else got
        raise InvalidInputError(f"`families` must be a sequence of families, got {got}.")
    for family in families:
        check_can_fit(family, dim)
    if len(set(map(repr, families))) < len(families):
        raise InvalidInputError("`families` must differ from each other.")


def warn_of_few_samples(family: Family, n_samples: int, dim: int) -> None:
    """Log a warning if a family has too many parameters for the samples of an instance."""
    n_parameters = sum(map(prod, family.parameter_shapes(dim).values()))
    n_needed = _SAMPLES_PER_PARAMETER * n_parameters
    if not family.uses_slopes and n_samples < n_needed:
        _logger.warning(
            "%s has %d parameters per instance, and %d samples are few for them. Use at least %d "
            "samples, a family with fewer parameters, or a family made of decisions "
            "(`DecisionHinges`), which needs about %d.",
            *(family, n_parameters, n_samples, n_needed, _N_SAMPLES),
        )
