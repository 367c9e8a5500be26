"""Problems: a solver, an objective, a sense."""

from lodl.problems._function_problem import problem
from lodl.problems._portfolio import Portfolio
from lodl.problems._problem import (
    Problem,
    VectorisedProblem,
    check_problem_type,
    projected,
    sign_of,
)
from lodl.problems._regret import decision_losses, regret_of, regrets
from lodl.problems._top_k import TopK
from lodl.problems._web_advertising import WebAdvertising

__all__ = [
    "Portfolio",
    "Problem",
    "TopK",
    "VectorisedProblem",
    "WebAdvertising",
    "check_problem_type",
    "decision_losses",
    "problem",
    "projected",
    "regret_of",
    "regrets",
    "sign_of",
]
