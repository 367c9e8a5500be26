"""Samplers: where the points lie at which the solver is called."""

from lodl.samplers._at_predictions import AtPredictions
from lodl.samplers._perturbed import AllPerturbed, OnePerturbed, TwoPerturbed
from lodl.samplers._sampler import Sampler, Scale

__all__ = [
    "AllPerturbed",
    "AtPredictions",
    "OnePerturbed",
    "Sampler",
    "Scale",
    "TwoPerturbed",
]
