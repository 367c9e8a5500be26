"""One instance: its answers split, its parameters, and how well they repeat the regrets."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._rank_correlation import rank_correlation
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import are_explained
from lodl.losses._family import Family, shapes_like
from lodl.losses._fit_errors import FitStatus
from lodl.losses._standardised import error_scale
from lodl.oracle import Answers

_MIN_SAMPLES = 2  # one says nothing about where the cost grows


@dataclass(frozen=True, eq=False)
class SplitAnswers:
    """The answers about one instance, those that are finite in a fitted and a held-out part."""

    answers: Answers
    is_usable: npt.NDArray[np.bool_]
    is_held_out: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, answers: Answers, holdout: float) -> "SplitAnswers":
        """Split answers.

        Held-out samples lie evenly among the others, and a sample's part depends on its place
        only: with more samples later, none changes sides.
        """
        is_usable = np.isfinite(answers.regret) & np.isfinite(answers.d.sum(axis=1))
        return cls(answers, is_usable, _is_held_out(len(answers.regret), holdout))

    @cached_property
    def fitted(self) -> Answers:
        """The part that a family is fitted to."""
        return self.answers.take(self.is_usable & ~self.is_held_out)

    @cached_property
    def held_out(self) -> Answers:
        """The part that judges the fit."""
        return self.answers.take(self.is_usable & self.is_held_out)

    def learned_by(self, family: Family) -> Answers:
        """Return what the final parameters come from: all answers where nothing is fitted."""
        return self.answers.take(self.is_usable) if family.uses_slopes else self.fitted


def status_of(answers: Answers) -> FitStatus:
    """Return whether there is something to fit."""
    if len(answers.regret) < _MIN_SAMPLES:
        return FitStatus.NO_SAMPLES
    has_cost = answers.regret.any() and answers.d.any()
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

    Where the loss is zero at every sample (regrets that are not positive) nothing was learned, and
    the instance needs a stand-in.
    """
    learned = answers.learned_by(family)
    phi = _check_parameters(family, phi, dim=learned.d.shape[1])
    value = _value(family, phi, learned)
    if not value.any():
        return without_fit(answers, FitStatus.NOTHING_TO_DECIDE)
    errors = _counts(answers, FitStatus.FITTED)
    if family.uses_slopes:
        errors |= _decision_errors(family, answers.fitted, answers.held_out)
    else:
        errors |= _regret_errors(value, learned, _value(family, phi, answers.held_out), answers)
    return InstanceFit(_error_scale(learned.d), errors, phi, _mean(value))


def _value(family: Family, phi: dict[str, Array], answers: Answers) -> Array:
    rows = {name: value[np.newaxis] for name, value in phi.items()}
    return np.asarray(family.value(rows, answers.d[np.newaxis])[0])


def _regret_errors(
    value: Array, fitted: Answers, value_held_out: Array, answers: SplitAnswers
) -> dict[str, float]:
    held_out = answers.held_out.regret
    return {
        "mae_fitted": _mean(np.abs(value - fitted.regret)),
        "mae_held_out": _mean(np.abs(value_held_out - held_out)),
        "r2_held_out": _r2(value_held_out, held_out),
        "rank_correlation_held_out": rank_correlation(value_held_out, held_out),
    }


def _decision_errors(family: Family, fitted: Answers, held_out: Answers) -> dict[str, float]:
    """Judge, by the held-out samples, a loss made of the fitted ones only."""
    errors = {}
    if fitted.decision is not None and held_out.decision is not None:
        costly = held_out.decision[held_out.regret > 0]
        errors["met_held_out"] = _mean(np.isin(costly, fitted.decision))
        errors["explained_held_out"] = _mean(are_explained(held_out, fitted))
    if status_of(fitted) == FitStatus.FITTED:
        value = _value(family, family.fit(fitted), held_out)
        errors["rank_correlation_held_out"] = rank_correlation(value, held_out.regret)
    return errors


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
    expected = shapes_like(family, arrays, dim)
    if shapes != expected:
        raise InvalidInputError(
            f"The fit of {family} must return parameters of the shapes {expected}, got {shapes}."
        )
    return arrays


def _is_held_out(n_samples: int, holdout: float) -> npt.NDArray[np.bool_]:
    n_held_out_before = np.floor(np.arange(n_samples + 1) * holdout)
    return np.asarray(np.diff(n_held_out_before) > 0)


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else np.nan


def _r2(value: Array, target: Array) -> float:
    """Return the share of the target's variance that is explained; NaN if it has none."""
    if not len(target) or np.ptp(target) == 0:
        return np.nan
    return float(1 - np.square(value - target).mean() / target.var())
