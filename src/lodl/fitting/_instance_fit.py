"""One instance: its samples split, its parameters, and how well they repeat the regrets."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.fitting._standardised import error_scale
from lodl.losses import Family, FitStatus

_MIN_SAMPLES = 2  # one says nothing about where the cost grows


@dataclass(frozen=True, eq=False)
class SplitSamples:
    """The usable samples of one instance, as flat errors, in a fitted and a held-out part."""

    d: Array
    regret: Array
    d_held_out: Array
    regret_held_out: Array

    @classmethod
    def of(cls, d: Array, regret: Array, holdout: float) -> "SplitSamples":
        """Splits errors (k, D) and regrets (k,), without those that are not finite.

        Held-out samples lie evenly among the others, and a sample's part depends on its place
        only: with more samples later, none changes sides.
        """
        is_held_out = _is_held_out(len(regret), holdout)
        is_usable = np.isfinite(regret) & np.isfinite(d.sum(axis=1))
        fitted, held_out = is_usable & ~is_held_out, is_usable & is_held_out
        return cls(d[fitted], regret[fitted], d[held_out], regret[held_out])

    @property
    def status(self) -> FitStatus:
        """Tells whether there is something to fit."""
        if len(self.regret) < _MIN_SAMPLES:
            return FitStatus.NO_SAMPLES
        has_cost = self.regret.any() and self.d.any()
        return FitStatus.FITTED if has_cost else FitStatus.NOTHING_TO_DECIDE


@dataclass(frozen=True)
class InstanceFit:
    """What a worker hands back about one instance; figures that are not defined are NaN.

    Attributes:
        phi: Parameters; none where a stand-in is needed.
        mean_loss: The loss of the fitted samples, on average.
        error_scale: Size of each coordinate's error, shape (D,).
    """

    status: FitStatus
    n_fitted: int
    n_held_out: int
    mean_regret: float
    error_scale: Array
    phi: dict[str, Array] = field(default_factory=dict)
    mean_loss: float = np.nan
    mae_fitted: float = np.nan
    mae_held_out: float = np.nan
    r2_held_out: float = np.nan
    rank_correlation_held_out: float = np.nan


def without_fit(samples: SplitSamples, status: FitStatus) -> InstanceFit:
    """Returns the record of an instance that needs a stand-in."""
    regret = np.concatenate([samples.regret, samples.regret_held_out])
    return InstanceFit(
        status=status,
        n_fitted=len(samples.regret),
        n_held_out=len(samples.regret_held_out),
        mean_regret=_mean(regret),
        error_scale=error_scale(samples.d) if len(samples.d) else np.ones(samples.d.shape[1]),
    )


def measure(family: Family, phi: dict[str, Array], samples: SplitSamples) -> InstanceFit:
    """Returns the record of a fitted instance.

    Where the loss is zero at every fitted sample (regrets that are not positive) nothing was
    learned, and the instance needs a stand-in.
    """
    phi = _check_parameters(family, phi, dim=samples.d.shape[1])
    rows = {name: value[np.newaxis] for name, value in phi.items()}
    value = family.value(rows, samples.d[np.newaxis])[0]
    if not value.any():
        return without_fit(samples, FitStatus.NOTHING_TO_DECIDE)
    held_out = family.value(rows, samples.d_held_out[np.newaxis])[0]
    return replace(
        without_fit(samples, FitStatus.FITTED),
        phi=phi,
        mean_loss=_mean(value),
        mae_fitted=_mean(np.abs(value - samples.regret)),
        mae_held_out=_mean(np.abs(held_out - samples.regret_held_out)),
        r2_held_out=_r2(held_out, samples.regret_held_out),
        rank_correlation_held_out=_rank_correlation(held_out, samples.regret_held_out),
    )


def _check_parameters(family: Family, phi: dict[str, Array], *, dim: int) -> dict[str, Array]:
    """Returns parameters as arrays; a fit may be a user's own."""
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in phi.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if shapes != family.parameter_shapes(dim):
        raise InvalidInputError(
            f"The fit of {family} must return parameters of the shapes "
            f"{family.parameter_shapes(dim)}, got {shapes}."
        )
    return arrays


def _is_held_out(n_samples: int, holdout: float) -> npt.NDArray[np.bool_]:
    n_held_out_before = np.floor(np.arange(n_samples + 1) * holdout)
    return np.asarray(np.diff(n_held_out_before) > 0)


def _mean(values: Array) -> float:
    return float(values.mean()) if values.size else np.nan


def _r2(value: Array, target: Array) -> float:
    """Returns the share of the target's variance that is explained; NaN if it has none."""
    if not len(target) or np.ptp(target) == 0:
        return np.nan
    return float(1 - np.square(value - target).mean() / target.var())


def _rank_correlation(value: Array, target: Array) -> float:
    """Returns Spearman's correlation; NaN where one side is constant."""
    if not len(target) or np.ptp(value) == 0 or np.ptp(target) == 0:
        return np.nan
    return float(np.corrcoef(_ranks(value), _ranks(target))[0, 1])


def _ranks(values: Array) -> Array:
    """Returns ranks, the mean of them for ties."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place])
