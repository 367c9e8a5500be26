"""What stands in where an instance has nothing to fit."""

from collections.abc import Sequence

import numpy as np

from lodl.fitting._instance_fit import InstanceFit
from lodl.losses import Family, FitStatus
from lodl.typing import Array

_SHARE = 1e-3  # of the typical weight, where the family has no floor
_NEGLIGIBLE = 1e-12  # of the typical weight: regrets that are rounding errors


def with_stand_ins(fits: Sequence[InstanceFit], family: Family, *, dim: int) -> list[InstanceFit]:
    """Gives a plain squared error to every instance that has no parameters.

    Its weight is a small share of the median weight of the fitted instances, 1 if there is none.
    An instance whose fitted weight is negligible beside that median counts as one without.
    """
    weights = [one.weight for one in fits if one.status == FitStatus.FITTED]
    sizes = [one.error_size for one in fits if one.error_size > 0]
    typical_weight = float(np.median(weights)) if weights else 1.0
    scale = float(np.median(sizes)) if sizes else 1.0
    weight = (getattr(family, "min_weight", 0.0) or _SHARE) * typical_weight
    phi = family.squared_error(dim, cost=weight * dim * scale**2, scale=scale)
    return [one if _is_informative(one, typical_weight) else _replaced(one, phi) for one in fits]


def _is_informative(fit: InstanceFit, typical_weight: float) -> bool:
    return fit.status == FitStatus.FITTED and fit.weight > _NEGLIGIBLE * typical_weight


def _replaced(fit: InstanceFit, phi: dict[str, Array]) -> InstanceFit:
    was_fitted = fit.status == FitStatus.FITTED
    return InstanceFit(
        status=FitStatus.NOTHING_TO_DECIDE if was_fitted else fit.status,
        n_fitted=fit.n_fitted,
        n_held_out=fit.n_held_out,
        mean_regret=fit.mean_regret,
        error_size=fit.error_size,
        phi=phi,
    )
