"""What stands in where an instance has nothing to fit."""

from collections.abc import Sequence

import numpy as np

from lodl._typing import Array
from lodl.fitting._instance_fit import InstanceFit
from lodl.losses import Family, FitStatus

_SHARE = 1e-3  # of the typical loss, where the family has no floor
_NEGLIGIBLE = 1e-12  # of the typical loss: regrets that are rounding errors


def with_stand_ins(fits: Sequence[InstanceFit], family: Family) -> list[InstanceFit]:
    """Gives a plain squared error to every instance that has no parameters.

    For errors as large as the samples' it costs a small share of the median loss of the fitted
    instances, of 1 if there is none. An instance whose loss is negligible beside that median counts
    as one without.
    """
    losses = [one.mean_loss for one in fits if one.status == FitStatus.FITTED]
    typical_loss = float(np.median(losses)) if losses else 1.0
    scales = [one.error_scale for one in fits if one.n_fitted] or [fits[0].error_scale]
    scale = np.median(scales, axis=0)
    cost = (family.min_weight or _SHARE) * typical_loss
    phi = family.squared_error(cost=cost, scale=scale)
    return [one if _is_informative(one, typical_loss) else _replaced(one, phi) for one in fits]


def _is_informative(fit: InstanceFit, typical_loss: float) -> bool:
    return fit.status == FitStatus.FITTED and fit.mean_loss > _NEGLIGIBLE * typical_loss


def _replaced(fit: InstanceFit, phi: dict[str, Array]) -> InstanceFit:
    was_fitted = fit.status == FitStatus.FITTED
    return InstanceFit(
        status=FitStatus.NOTHING_TO_DECIDE if was_fitted else fit.status,
        n_fitted=fit.n_fitted,
        n_held_out=fit.n_held_out,
        mean_regret=fit.mean_regret,
        error_scale=fit.error_scale,
        phi=phi,
    )
