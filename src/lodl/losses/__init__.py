"""Loss families, and losses learned from them."""

from lodl.losses._convex_directed_quadratic import ConvexDirectedQuadratic
from lodl.losses._directed_quadratic import DirectedQuadratic
from lodl.losses._directed_weighted_mse import DirectedWeightedMSE
from lodl.losses._family import Family, Parameters, Tensor
from lodl.losses._neural import NeuralLoss
from lodl.losses._quadratic import Quadratic
from lodl.losses._weighted_mse import WeightedMSE

__all__ = [
    "ConvexDirectedQuadratic",
    "DirectedQuadratic",
    "DirectedWeightedMSE",
    "Family",
    "NeuralLoss",
    "Parameters",
    "Quadratic",
    "Tensor",
    "WeightedMSE",
]
