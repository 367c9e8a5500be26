"""From what the oracle answered to the parameters of a loss for every instance."""

from lodl.fitting._fit import fit
from lodl.fitting._samples import Samples

__all__ = ["Samples", "fit"]
