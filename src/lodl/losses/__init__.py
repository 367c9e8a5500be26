"""Loss families, and losses learned from them."""

from lodl.losses._family import Family, Parameters, Tensor
from lodl.losses._weighted_mse import WeightedMSE

__all__ = ["Family", "Parameters", "Tensor", "WeightedMSE"]
