"""Samplers: where the points lie at which the solver is called."""

from lodl.samplers._samplers import (
    AllPerturbed,
    AtPredictions,
    OnePerturbed,
    Sampler,
    Scale,
    TwoPerturbed,
)

__all__ = ["AllPerturbed", "AtPredictions", "OnePerturbed", "Sampler", "Scale", "TwoPerturbed"]
