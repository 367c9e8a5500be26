"""Samplers: candidate predictions around a label."""

from lodl.samplers._around_predictions import AroundPredictions
from lodl.samplers._at_predictions import AtPredictions
from lodl.samplers._perturbed import AllPerturbed, OnePerturbed, TwoPerturbed
from lodl.samplers._sampler import Sampler, Scale

__all__ = [
    "AllPerturbed",
    "AroundPredictions",
    "AtPredictions",
    "OnePerturbed",
    "Sampler",
    "Scale",
    "TwoPerturbed",
]
