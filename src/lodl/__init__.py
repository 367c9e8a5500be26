"""Learn, from your own solver, a loss that knows what prediction errors cost.

The whole path is one call, `learn_loss`; its parts are the sub-packages `problems`, `samplers`,
`oracle`, `losses`, `fitting`, `training` and `evaluation`.
"""

from lodl.learn import learn_loss
from lodl.losses import (
    ConvexDirectedQuadratic,
    DirectedQuadratic,
    DirectedWeightedMSE,
    LearnedLoss,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
    load_loss,
)
from lodl.problems import Problem, problem
from lodl.samplers import AllPerturbed, AroundPredictions, OnePerturbed, TwoPerturbed

__all__ = [
    "AllPerturbed",
    "AroundPredictions",
    "ConvexDirectedQuadratic",
    "DirectedQuadratic",
    "DirectedWeightedMSE",
    "LearnedLoss",
    "NeuralLoss",
    "OnePerturbed",
    "Problem",
    "Quadratic",
    "TwoPerturbed",
    "WeightedMSE",
    "learn_loss",
    "load_loss",
    "problem",
]
