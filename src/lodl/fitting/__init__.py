"""From what the oracle answered to the parameters of a loss for every instance."""

from lodl.fitting._fit import fit
from lodl.fitting._fit_shared import SharingSamples, fit_shared
from lodl.fitting._samples import Samples

__all__ = ["Samples", "SharingSamples", "fit", "fit_shared"]
