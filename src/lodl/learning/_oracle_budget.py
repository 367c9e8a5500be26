"""How many solver calls a fit takes, what they cost, and how to keep within a budget."""

import logging
from dataclasses import dataclass, replace

from lodl._arrays import check_count
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle

_FEWEST_SAMPLES = 5
_N_REPEATED = 3  # calls that are made twice, to see whether the solver repeats its answers
_AVERAGES, _SHRINKS = 2, 3  # the most that are tried

_logger = logging.getLogger(__name__)


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
        has_looks: Whether the solver makes the decisions that models are compared by; if not, it
            makes those of the model that is kept, and of 2-stage.
    """

    n_samples: int
    n_rounds: int
    n_per_round: int
    n_families: int
    has_second_baseline: bool = False
    n_extra: int = _AVERAGES + _SHRINKS
    has_looks: bool = True

    @property
    def calls_per_instance(self) -> int:
        """The most calls about an instance, that for its label included."""
        two_stage = (self.n_rounds == 0) + self.has_second_baseline
        looks = two_stage + self.n_families + self.n_extra if self.has_looks else 2
        return 1 + self.n_samples + self.n_rounds * self.n_per_round + looks

    @property
    def n_losses(self) -> int:
        """How many losses models are trained on, one after another."""
        rounds = max(self.n_rounds - 1, 0) if self.n_families else 0
        return 1 + self.has_second_baseline + rounds + self.n_families

    def within(self, max_calls: int | None, n_instances: int) -> "Plan":
        """Return a plan of at most so many calls: first fewer rounds, then fewer samples.

        Raises:
            InvalidInputError: Not even the least plan fits.
        """
        if max_calls is None:
            return self
        affordable = (check_count("max_calls", max_calls) - _N_REPEATED) // n_instances
        plan = self
        while plan.calls_per_instance > affordable and plan.n_rounds > 0:
            plan = replace(plan, n_rounds=plan.n_rounds - 1)
        excess = plan.calls_per_instance - affordable
        if excess > 0:
            fewest = min(_FEWEST_SAMPLES, plan.n_samples)
            least = replace(plan, n_samples=fewest)
            if plan.n_samples - excess < fewest:
                raise InvalidInputError(
                    "`max_calls` must be at least "
                    f"{least.calls_per_instance * n_instances + _N_REPEATED} for "
                    f"{n_instances} instances and {self.n_families} families, got {max_calls}. "
                    + ("Fewer `families` need fewer calls." if self.has_looks else "")
                )
            plan = replace(plan, n_samples=plan.n_samples - excess)
        return plan


def say_cost(plan: Plan, oracle: Oracle, *, n_instances: int, n_models: int) -> None:
    """Log what a fit will cost at most: solver calls, their time, and models to train.

    Args:
        plan: The plan of the fit.
        oracle: Has made some calls, unless the store knew their answers.
        n_instances: Number of instances.
        n_models: Number of models to train.
    """
    n_calls = plan.calls_per_instance * n_instances
    cost = "the first answers are in the store already"
    if oracle.n_calls:
        from joblib import effective_n_jobs  # slow to import

        per_call = oracle.seconds / oracle.n_calls
        total = per_call * n_calls / effective_n_jobs(1 if oracle.n_jobs is None else oracle.n_jobs)
        cost = f"about {1e3 * per_call:.3g} ms each, {total:.3g} s in all"
    _logger.info(
        "Up to %d solver calls, %d for each of %d instances: %s. Then %d models are trained.",
        n_calls,
        plan.calls_per_instance,
        n_instances,
        cost,
        n_models,
    )
