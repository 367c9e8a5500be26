"""What a fit asks and tries: what the user gave, and defaults for the rest."""

from dataclasses import replace
from typing import Any, Protocol

from lodl._arrays import check_count
from lodl.errors import InvalidInputError
from lodl.learning._candidates import Candidate, candidates
from lodl.learning._data import Data
from lodl.learning._defaults import Situation
from lodl.learning._fitted import Asker
from lodl.learning._oracle_budget import Plan
from lodl.training import Learner


class Planner(Asker, Protocol):
    """The parameters of `lodl.DecisionFocusedRegressor` that a plan depends on."""

    n_samples: int | None
    n_rounds: int | None
    n_per_round: int
    max_calls: int | None


def check_parameters(model: Planner, dim: int) -> None:
    """Check parameters before any model is trained or the solver is called."""
    candidates(model.families or (), dim)
    for name in ("n_samples", "max_calls"):
        if getattr(model, name) is not None:
            check_count(name, getattr(model, name))
    if model.n_rounds is not None:
        check_count("n_rounds", model.n_rounds, minimum=0)
    check_count("n_per_round", model.n_per_round)
    if model.judge not in ("solver", "pool"):
        raise InvalidInputError(f'`judge` must be "solver" or "pool", got {model.judge!r}.')


def planned(
    model: Planner, data: Data, learner: Learner, *, is_affine: bool
) -> tuple[Plan, tuple[Candidate, ...], bool]:
    """Return what to ask, what to try, and whether instances share their decisions."""
    dim = data.y[0].size
    situation = Situation(is_affine, data.context is not None, len(data.y), dim)
    default = situation.n_samples(model.families or ())
    n_samples = _or(model.n_samples, default)
    n_rounds = _or(model.n_rounds, situation.n_rounds)
    families = _or(model.families, situation.families(n_samples))
    plan = Plan(n_samples, n_rounds, model.n_per_round, len(families), learner.stops_early)
    if _is_judged_by_pool(model.judge, situation):
        plan = replace(plan, has_looks=False)
    within = plan.within(model.max_calls, len(data.y))
    return within, candidates(families, dim), situation.is_shared


def _is_judged_by_pool(judge: str, situation: Situation) -> bool:
    """Return whether decisions that are known already judge models."""
    if judge == "pool" and not situation.is_shared:
        why = "have a `context`"
        if not situation.has_context:
            why = "have an objective that was not found to be affine in the label"
        raise InvalidInputError(
            '`judge="pool"` needs instances that share their decisions, but these '
            f'{why}. Use `judge="solver"`.'
        )
    return judge == "pool"


def _or(given: Any, default: Any) -> Any:
    """Return what the user gave, or the default."""
    return default if given is None else given
