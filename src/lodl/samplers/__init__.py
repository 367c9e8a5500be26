"""Samplers: candidate predictions around a label."""

from lodl.samplers._around_predictions import AroundPredictions
from lodl.samplers._perturbed import AllPerturbed, OnePerturbed, TwoPerturbed
from lodl.samplers._sampler import BLOCK_SIZE, Sampler, Scale, check_sampler

__all__ = [
    "BLOCK_SIZE",
    "AllPerturbed",
    "AroundPredictions",
    "OnePerturbed",
    "Sampler",
    "Scale",
    "TwoPerturbed",
    "check_sampler",
]
