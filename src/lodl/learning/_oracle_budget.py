"""How many oracle calls a fit takes, and how to keep within a budget."""

from dataclasses import dataclass, replace

from lodl._validation import check_count
from lodl.errors import InvalidInputError

_FEWEST_SAMPLES = 5
_SHRINKS = 3  # the most that are tried


@dataclass(frozen=True)
class Plan:
    """What is asked of the oracle about each instance.

    Attributes:
        n_samples: Candidates around the label.
        n_rounds: Rounds of candidates around predictions, the first at those of 2-stage.
        n_per_round: Candidates in a round; the first is the prediction itself.
        n_families: Losses to try besides 2-stage.
        has_second_baseline: Whether 2-stage is also trained without early stopping.
        n_extra: Further models whose decisions are looked at: averages and shrunk predictions.
    """

    n_samples: int
    n_rounds: int
    n_per_round: int
    n_families: int
    has_second_baseline: bool = False
    n_extra: int = 1 + _SHRINKS

    @property
    def calls_per_instance(self) -> int:
        """The most calls about an instance, that for its label included."""
        two_stage = (self.n_rounds == 0) + self.has_second_baseline
        rounds = self.n_rounds * self.n_per_round
        return 1 + self.n_samples + two_stage + rounds + self.n_families + self.n_extra

    def within(self, max_calls: int | None, n_instances: int) -> "Plan":
        """Return a plan of at most so many calls: first fewer rounds, then fewer samples.

        Raises:
            InvalidInputError: Not even the least plan fits.
        """
        if max_calls is None:
            return self
        affordable = check_count("max_calls", max_calls) // n_instances
        plan = self
        while plan.calls_per_instance > affordable and plan.n_rounds > 0:
            plan = replace(plan, n_rounds=plan.n_rounds - 1)
        excess = plan.calls_per_instance - affordable
        if excess > 0:
            fewest = min(_FEWEST_SAMPLES, plan.n_samples)
            least = replace(plan, n_samples=fewest)
            if plan.n_samples - excess < fewest:
                raise InvalidInputError(
                    f"`max_calls` must be at least {least.calls_per_instance * n_instances} for "
                    f"{n_instances} instances and {self.n_families} families, got {max_calls}. "
                    "Fewer `families` need fewer calls."
                )
            plan = replace(plan, n_samples=plan.n_samples - excess)
        return plan
