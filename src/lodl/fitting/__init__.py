"""Fits that are solved: from samples of errors and regrets to the parameters of a loss."""

from lodl.fitting._fit import fit
from lodl.fitting._methods import check_can_fit, fit_instance
from lodl.fitting._samples import InstanceSamples, Samples

__all__ = ["InstanceSamples", "Samples", "check_can_fit", "fit", "fit_instance"]
