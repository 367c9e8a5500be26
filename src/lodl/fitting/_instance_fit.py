"""One instance: its answers split, its parameters, and how well they repeat the regrets."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lodl._answers import Answers
from lodl._rank_correlation import rank_correlation
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses import Family, FitStatus
from lodl.losses._standardised import error_scale

_MIN_SAMPLES = 2  # one says nothing about where the cost grows


@dataclass(frozen=True, eq=False)
class SplitAnswers:
    """The usable answers about one instance, in a fitted and a held-out part."""

    fitted: Answers
    held_out: Answers

    @classmethod
    def of(cls, answers: Answers, holdout: float) -> "SplitAnswers":
        """Split answers, without those that are not finite.

        Held-out samples lie evenly among the others, and a sample's part depends on its place
        only: with more samples later, none changes sides.
        """
        is_held_out = _is_held_out(len(answers.regret), holdout)
        is_usable = np.isfinite(answers.regret) & np.isfinite(answers.d.sum(axis=1))
        return cls(answers.take(is_usable & ~is_held_out), answers.take(is_usable & is_held_out))

    @property
    def status(self) -> FitStatus:
        """Whether there is something to fit."""
        if len(self.fitted.regret) < _MIN_SAMPLES:
            return FitStatus.NO_SAMPLES
        has_cost = self.fitted.regret.any() and self.fitted.d.any()
        return FitStatus.FITTED if has_cost else FitStatus.NOTHING_TO_DECIDE


@dataclass(frozen=True, eq=False)
class InstanceFit:
    """What a worker hands back about one instance.

    Attributes:
        error_scale: Size of each coordinate's error, shape (D,).
        errors: The entries of `FitErrors` that are defined, by name.
        phi: Parameters; none where a stand-in is needed.
        mean_loss: The mean loss of the fitted samples; NaN where a stand-in is needed.
    """

    error_scale: Array
    errors: dict[str, float]
    phi: dict[str, Array] = field(default_factory=dict)
    mean_loss: float = np.nan


def without_fit(answers: SplitAnswers, status: FitStatus) -> InstanceFit:
    """Return the record of an instance that needs a stand-in."""
    return InstanceFit(_error_scale(answers.fitted.d), _counts(answers, status))


def measure(family: Family, phi: dict[str, Array], answers: SplitAnswers) -> InstanceFit:
    """Return the record of a fitted instance.

    Where the loss is zero at every fitted sample (regrets that are not positive) nothing was
    learned, and the instance needs a stand-in.
    """
    fitted, held_out = answers.fitted, answers.held_out
    phi = _check_parameters(family, phi, dim=fitted.d.shape[1])
    rows = {name: value[np.newaxis] for name, value in phi.items()}
    value = family.value(rows, fitted.d[np.newaxis])[0]
    if not value.any():
        return without_fit(answers, FitStatus.NOTHING_TO_DECIDE)
    value_held_out = family.value(rows, held_out.d[np.newaxis])[0]
    errors = _counts(answers, FitStatus.FITTED) | {
        "mae_fitted": _mean(np.abs(value - fitted.regret)),
        "mae_held_out": _mean(np.abs(value_held_out - held_out.regret)),
        "r2_held_out": _r2(value_held_out, held_out.regret),
        "rank_correlation_held_out": rank_correlation(value_held_out, held_out.regret),
    }
    return InstanceFit(_error_scale(fitted.d), errors, phi, _mean(value))


def _counts(answers: SplitAnswers, status: FitStatus) -> dict[str, float]:
    regrets = answers.fitted.regret, answers.held_out.regret
    return {
        "mean_regret": _mean(np.concatenate(regrets)),
        "n_fitted": len(regrets[0]),
        "n_held_out": len(regrets[1]),
        "status": status,
    }


def _error_scale(d: Array) -> Array:
    return error_scale(d) if len(d) else np.ones(d.shape[1])


def _check_parameters(family: Family, phi: dict[str, Array], *, dim: int) -> dict[str, Array]:
    """Return parameters as arrays; a fit may be a user's own."""
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
    """Return the share of the target's variance that is explained; NaN if it has none."""
    if not len(target) or np.ptp(target) == 0:
        return np.nan
    return float(1 - np.square(value - target).mean() / target.var())
