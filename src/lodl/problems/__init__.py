"""Problems: a solver, an objective, a sense."""

from lodl.problems._problem import Problem, problem, sign_of
from lodl.problems._regret import decision_losses, regrets

__all__ = ["Problem", "decision_losses", "problem", "regrets", "sign_of"]
