"""Samplers: candidate predictions around a label."""

from lodl.samplers._around_predictions import AroundPredictions
from lodl.samplers._perturbed import AllPerturbed, OnePerturbed, TwoPerturbed
from lodl.samplers._sampler import Sampler, Scale

__all__ = ["AllPerturbed", "AroundPredictions", "OnePerturbed", "Sampler", "Scale", "TwoPerturbed"]
