"""Learn, from your own solver, a loss that knows what prediction errors cost.

`DecisionFocusedRegressor` leads from data to decisions, `learn_loss` from a solver to a loss, and
`Oracle` determines how the solver is called. The steps are the sub-packages `problems`, `samplers`,
`oracle`, `losses`, `training` and `evaluation`, loaded when used; `testing` checks custom parts.
"""

import importlib
from typing import TYPE_CHECKING, Any

from lodl._json import package_version
from lodl.learning import learn_loss
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedQuadratic,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    LearnedLoss,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
    load_loss,
)
from lodl.oracle import Oracle
from lodl.problems import LinearProblem, Problem, problem
from lodl.samplers import AdjacentVertices, AllPerturbed, AtPredictions, OnePerturbed, TwoPerturbed

if TYPE_CHECKING:
    from lodl.learning import DecisionFocusedRegressor, load_model

__all__ = [
    "AdjacentVertices",
    "AllPerturbed",
    "AtPredictions",
    "DecisionFocusedRegressor",
    "DecisionHinges",
    "DecisionRanking",
    "DirectedQuadratic",
    "DirectedWeightedMAE",
    "DirectedWeightedMSE",
    "LearnedLoss",
    "LinearProblem",
    "NeuralLoss",
    "OnePerturbed",
    "Oracle",
    "Problem",
    "Quadratic",
    "TwoPerturbed",
    "WeightedMSE",
    "learn_loss",
    "load_loss",
    "load_model",
    "problem",
]

_SUB_PACKAGES = (
    "domains",
    "errors",
    "evaluation",
    "learning",
    "losses",
    "oracle",
    "problems",
    "report",
    "samplers",
    "testing",
    "training",
)


__version__: str  # looked up on first use: `importlib.metadata` is slow to import


def __getattr__(name: str) -> Any:
    """Load on first use what needs an extra or is slow to import."""
    if name == "__version__":
        return package_version()
    if name in ("DecisionFocusedRegressor", "load_model"):
        module = importlib.import_module("lodl.learning")
        return globals().setdefault(name, getattr(module, name))
    if name in _SUB_PACKAGES:
        return importlib.import_module(f"lodl.{name}")
    raise AttributeError(f"module 'lodl' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, but not what this module imports for itself."""
    return sorted({*__all__, *_SUB_PACKAGES, "__version__"})
