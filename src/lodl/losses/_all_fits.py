"""The parameters of all instances, and what stands in where there is nothing to fit."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lodl._typing import Array
from lodl.losses._family import Family, pad_rows, shapes_like
from lodl.losses._fit_errors import FitErrors, FitStatus
from lodl.losses._instance_fit import InstanceFit

_SHARE = 1e-3  # of the typical loss, where the family has no floor
_NEGLIGIBLE = 1e-12  # of the typical loss: regrets that are rounding errors

_logger = logging.getLogger(__name__)


class AllFits:
    """Arrays with a row per instance, filled as workers hand back their instances.

    Attributes:
        phi: The parameters, each of shape (n_instances, *shape of the parameter).
        errors: How well the regrets are repeated.
    """

    def __init__(self, family: Family, n_instances: int, dim: int) -> None:
        self._family = family
        self.phi = {
            name: np.zeros((n_instances, *shape))
            for name, shape in shapes_like(family, dict.fromkeys(family.padded, (0,)), dim).items()
        }
        self.errors = FitErrors.empty(n_instances)
        self._columns = self.errors.arrays()
        self._mean_loss = np.full(n_instances, np.nan)
        self._error_scale = np.empty((n_instances, dim))

    def put(self, instances: Iterable[int], fits: Iterable[InstanceFit]) -> None:
        """Fill the rows of some instances."""
        for i, fit in zip(instances, fits, strict=True):
            self._mean_loss[i] = fit.mean_loss
            self._error_scale[i] = fit.error_scale
            for name, number in fit.errors.items():
                self._columns[name][i] = number
            self._put_parameters(i, fit.phi)

    def _put_parameters(self, rows: Any, phi: Mapping[str, Array]) -> None:
        for name, value in phi.items():
            array = self.phi[name]
            if name not in self._family.padded:
                array[rows] = value
                continue
            padding = self._family.padded[name]
            if len(value) > array.shape[1]:
                array = self.phi[name] = pad_rows([array, np.empty((0, *value.shape))], padding)
            array[rows] = padding
            array[rows, : len(value)] = value

    def stand_in(self) -> None:
        """Give a plain squared error to every instance that has no parameters.

        For errors as large as the samples' it costs a small share of the median loss of the fitted
        instances, of 1 if there is none. An instance whose loss is negligible beside that median
        counts as one without.
        """
        errors, is_fitted = self.errors, self.errors.status == FitStatus.FITTED
        typical_loss = float(np.median(self._mean_loss[is_fitted])) if is_fitted.any() else 1.0
        is_negligible = is_fitted & ~(self._mean_loss > _NEGLIGIBLE * typical_loss)
        errors.status[is_negligible] = FitStatus.NOTHING_TO_DECIDE
        for name in errors.of_fits:
            self._columns[name][is_negligible] = np.nan
        is_missing = ~is_fitted | is_negligible
        has_samples = errors.n_fitted > 0
        scales = self._error_scale[has_samples] if has_samples.any() else self._error_scale[:1]
        cost = (self._family.min_weight or _SHARE) * typical_loss
        phi = self._family.stand_in(cost=cost, scale=np.median(scales, axis=0))
        self._put_parameters(is_missing, phi)
        _log_stand_ins(int(is_missing.sum()), len(is_missing))


def _log_stand_ins(n_missing: int, n_instances: int) -> None:
    if n_missing:
        is_most = 2 * n_missing > n_instances
        _logger.log(
            logging.WARNING if is_most else logging.INFO,
            "%d of %d instances have nothing to fit: a plain squared error stands in.%s",
            n_missing,
            n_instances,
            " Is the sampler's scale too small to change a decision?" if is_most else "",
        )
