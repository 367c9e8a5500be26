"""`fit`: samples become a learned loss, one instance at a time, with held-out errors."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import rank_correlation
from lodl._json import package_version
from lodl._progress import progress_bar
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import are_explained, decisions_of
from lodl.losses._family import Family, check_can_fit, pad_rows, shapes_like
from lodl.losses._learned_loss import FitErrors, FitStatus, LearnedLoss
from lodl.losses._standardised import error_scale
from lodl.oracle import Answers, Samples

_CHUNK = 8  # instances per task: hides its overhead; not a function of the number of workers
_MIN_SAMPLES = 2  # one sample does not show where the cost grows
_FALLBACK_SHARE = 1e-3  # cost of a fallback as a share of the typical loss, if `min_weight` is 0
_NEGLIGIBLE = 1e-12  # share of the typical loss below which regrets are rounding errors

_logger = logging.getLogger(__name__)


def fit(
    samples: Samples,
    family: Family,
    *,
    holdout: float = 0.2,
    n_jobs: int | None = None,
    progress: bool = True,
) -> LearnedLoss:
    """Fit a loss to every instance's samples.

    A regret family is fitted to the fitted samples only, so the held-out error is the error of the
    loss that is returned. A decision family is made of all samples, and its held-out samples
    evaluate a loss without their decisions. Failed samples are left out.

    An instance with nothing to fit (no regret above zero, fewer than two samples) gets a fallback:
    a plain squared error, weaker than the other losses by the family's `min_weight` (1e-3 if that
    is 0), so that it does not drown the instances that were fitted. Its fit errors are NaN and its
    status gives the reason.

    Args:
        samples: Points with their regrets.
        family: The loss to fit.
        holdout: Share of each instance's samples that are held out to measure the fit, at regular
            intervals.
        n_jobs: Number of workers, as in joblib. The result does not depend on it.
        progress: Whether to show a progress bar on a terminal.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> samples = lodl.Oracle(lodl.domains.TopK(1)).sample(y, n_samples=50, slopes=True)
        >>> families = (lodl.WeightedMSE(), lodl.DecisionHinges())
        >>> [lodl.losses.fit(samples, family).n_instances for family in families]
        [2, 2]
    """
    from joblib import Parallel, delayed  # slow to import

    check_holdout(holdout)
    builder = LossBuilder(family, samples.y)
    n = samples.n_instances
    chunks = [range(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
    calls = (delayed(_fit_chunk)(samples.select(chunk), family, holdout) for chunk in chunks)
    with (
        one_blas_thread(),  # once for all chunks that are fitted in this process
        progress_bar(n, unit="instances", description="fitting", enabled=progress) as bar,
    ):
        results = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
        for chunk, fits in zip(chunks, results, strict=True):
            for i, instance_fit in zip(chunk, fits, strict=True):
                builder.put(i, instance_fit)
            bar.update(len(chunk))
    return builder.build({**samples.provenance(), "holdout": holdout})


@dataclass(frozen=True, eq=False)
class InstanceFit:
    """Parameters and errors of one instance, as a worker returns them.

    Attributes:
        error_scale: Size of each coordinate's error, shape (D,).
        errors: The fields of `FitErrors` that are defined, by name.
        phi: Parameters. Empty if the instance needs a fallback.
        mean_loss: Mean loss of the samples. NaN if the instance needs a fallback.
    """

    error_scale: Array
    errors: dict[str, float]
    phi: dict[str, Array] = field(default_factory=dict)
    mean_loss: float = np.nan


class LossBuilder:
    """Collects the fits of instances, in any order, into a learned loss."""

    def __init__(self, family: Family, y: npt.ArrayLike) -> None:
        self._family, self._y = family, np.asarray(y, dtype=np.float64)
        n, dim = len(self._y), self._y[0].size
        check_can_fit(family, dim)
        shapes = shapes_like(family, dict.fromkeys(family.padded, (0,)), dim)
        self._phi = {name: np.zeros((n, *shape)) for name, shape in shapes.items()}
        self._errors = FitErrors.empty(n)
        self._columns = self._errors.arrays()
        self._mean_loss = np.full(n, np.nan)
        self._error_scale = np.empty((n, dim))

    def put(self, i: int, fit: InstanceFit) -> None:
        """Set the fit of instance `i`."""
        self._mean_loss[i], self._error_scale[i] = fit.mean_loss, fit.error_scale
        for name, number in fit.errors.items():
            self._columns[name][i] = number
        self._put_parameters(i, fit.phi)

    def build(self, provenance: Mapping[str, Any]) -> LearnedLoss:
        """Return the loss, with fallbacks for instances without parameters."""
        self._put_fallbacks()
        provenance = {**provenance, "lodl": package_version()}
        return LearnedLoss(self._family, self._y, self._phi, self._errors, provenance)

    def _put_parameters(self, rows: Any, phi: Mapping[str, Array]) -> None:
        for name, value in phi.items():
            array = self._phi[name]
            if name not in self._family.padded:
                array[rows] = value
                continue
            padding = self._family.padded[name]
            if len(value) > array.shape[1]:
                array = self._phi[name] = pad_rows([array, np.empty((0, *value.shape))], padding)
            array[rows] = padding
            array[rows, : len(value)] = value

    def _put_fallbacks(self) -> None:
        """Give a plain squared error to every instance without parameters.

        At errors of the samples' size it costs a small share of the median loss of the fitted
        instances (of 1 if there are none). Instances whose loss is negligible compared with that
        median count as not fitted.
        """
        errors, is_fitted = self._errors, self._errors.status == FitStatus.FITTED
        typical_loss = float(np.median(self._mean_loss[is_fitted])) if is_fitted.any() else 1.0
        is_negligible = is_fitted & ~(self._mean_loss > _NEGLIGIBLE * typical_loss)
        errors.status[is_negligible] = FitStatus.NOTHING_TO_DECIDE
        for name in errors.of_fits:
            self._columns[name][is_negligible] = np.nan
        is_missing = ~is_fitted | is_negligible
        has_samples = errors.n_fitted + errors.n_held_out > 0
        scales = self._error_scale[has_samples] if has_samples.any() else self._error_scale[:1]
        cost = (self._family.min_weight or _FALLBACK_SHARE) * typical_loss
        phi = self._family.fallback(cost=cost, scale=np.median(scales, axis=0))
        self._put_parameters(is_missing, phi)
        _log_fallbacks(int(is_missing.sum()), len(is_missing))


def _log_fallbacks(n_missing: int, n_instances: int) -> None:
    if n_missing:
        is_most = 2 * n_missing > n_instances
        _logger.log(
            logging.WARNING if is_most else logging.INFO,
            "%d of %d instances have nothing to fit and get a plain squared error.%s",
            n_missing,
            n_instances,
            " Is the sampler's scale too small to change a decision?" if is_most else "",
        )


def check_holdout(holdout: float) -> None:
    """Check that `holdout` is a share below 1."""
    if not 0 <= holdout < 1:
        raise InvalidInputError(f"`holdout` must be at least 0 and below 1, got {holdout!r}.")


def is_held_out(n_samples: int, holdout: float, *, offset: int = 0) -> npt.NDArray[np.bool_]:
    """Return which of an instance's samples are held out, at regular intervals, shape (K,).

    A sample's part depends on its position only, so later samples do not change it.
    """
    n_held_out_before = np.floor((offset + np.arange(n_samples + 1)) * holdout)
    return np.asarray(np.diff(n_held_out_before) > 0)


def _fit_chunk(samples: Samples, family: Family, holdout: float) -> list[InstanceFit]:
    """Fit a few instances in a worker, on one BLAS thread so that sums have one order."""
    with one_blas_thread():
        splits = [_Split.of(samples.instance(i), holdout) for i in range(samples.n_instances)]
        learned = [split.usable if family.uses_slopes else split.fitted for split in splits]
        status = [_status_of(answers) for answers in learned]
        is_fitted = [value == FitStatus.FITTED for value in status]
        phis = iter(family.fit_many(list(compress(learned, is_fitted))))
        return [
            _measure(family, next(phis), split) if fitted else _without_fit(split, reason)
            for split, fitted, reason in zip(splits, is_fitted, status, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Split:
    """The finite answers of one instance: all of them, the fitted and the held-out part."""

    usable: Answers
    fitted: Answers
    held_out: Answers

    @classmethod
    def of(cls, answers: Answers, holdout: float) -> "_Split":
        is_usable = np.isfinite(answers.regret) & np.isfinite(answers.d.sum(axis=1))
        held_out = is_held_out(len(answers.regret), holdout)
        parts = (is_usable, is_usable & ~held_out, is_usable & held_out)
        return cls(*(answers.take(part) for part in parts))


def _status_of(answers: Answers) -> FitStatus:
    """Return whether there is something to fit."""
    if len(answers.regret) < _MIN_SAMPLES:
        return FitStatus.NO_SAMPLES
    has_cost = answers.regret.any() and answers.d.any()
    return FitStatus.FITTED if has_cost else FitStatus.NOTHING_TO_DECIDE


def _without_fit(split: _Split, status: FitStatus) -> InstanceFit:
    d = split.fitted.d
    scale = error_scale(d) if len(d) else np.ones(d.shape[1])
    return InstanceFit(scale, _counts(split, status))


def _measure(family: Family, phi: dict[str, Array], split: _Split) -> InstanceFit:
    """Return the fit of an instance, without parameters if the loss is zero at every sample."""
    learned = split.usable if family.uses_slopes else split.fitted
    phi = _check_parameters(family, phi, dim=learned.d.shape[1])
    value = value_of(family, phi, learned.d)
    if not value.any():
        return _without_fit(split, FitStatus.NOTHING_TO_DECIDE)
    errors = _counts(split, FitStatus.FITTED)
    if family.uses_slopes:
        errors |= _decision_errors(family, split)
    else:
        errors |= _regret_errors(value, value_of(family, phi, split.held_out.d), split)
    return InstanceFit(error_scale(learned.d), errors, phi, mean_of(value))


def value_of(family: Family, phi: dict[str, Array], d: Array) -> Array:
    """Return the loss of one instance at errors (K, D), shape (K,)."""
    rows = {name: value[np.newaxis] for name, value in phi.items()}
    return np.asarray(family.value(rows, d[np.newaxis])[0])


def _regret_errors(value: Array, value_held_out: Array, split: _Split) -> dict[str, float]:
    held_out = split.held_out.regret
    residual = value_held_out - held_out
    has_variance = len(held_out) and np.ptp(held_out) > 0
    return {
        "mae_fitted": mean_of(np.abs(value - split.fitted.regret)),
        "mae_held_out": mean_of(np.abs(residual)),
        "r2_held_out": 1 - np.square(residual).mean() / held_out.var() if has_variance else np.nan,
        "rank_correlation_held_out": rank_correlation(value_held_out, held_out),
    }


def _decision_errors(family: Family, split: _Split) -> dict[str, float]:
    """Evaluate a loss made of the fitted samples only."""
    fitted, held_out = split.fitted, split.held_out
    errors = {}
    if fitted.decision is not None and held_out.decision is not None:
        costly = held_out.decision[held_out.regret > 0]
        errors["met_held_out"] = mean_of(np.isin(costly, fitted.decision))
        taken, known = decisions_of(held_out)[1], decisions_of(fitted)[1]
        explained = are_explained(held_out.d, held_out.regret, taken, fitted.regret, known)
        errors["explained_held_out"] = mean_of(explained)
    if _status_of(fitted) == FitStatus.FITTED:
        value = value_of(family, family.fit(fitted), held_out.d)
        errors["rank_correlation_held_out"] = rank_correlation(value, held_out.regret)
    return errors


def _counts(split: _Split, status: FitStatus) -> dict[str, float]:
    regrets = split.fitted.regret, split.held_out.regret
    return {
        "mean_regret": mean_of(np.concatenate(regrets)),
        "n_fitted": len(regrets[0]),
        "n_held_out": len(regrets[1]),
        "status": status,
    }


def _check_parameters(family: Family, phi: dict[str, Array], *, dim: int) -> dict[str, Array]:
    """Return parameters as arrays, after a check for custom families."""
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in phi.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    expected = shapes_like(family, arrays, dim)
    if shapes != expected:
        raise InvalidInputError(
            f"The fit of {family} must return parameters of the shapes {expected}, got {shapes}."
        )
    return arrays


def mean_of(values: npt.NDArray[Any]) -> float:
    """Return the mean, or NaN without values."""
    return float(values.mean()) if values.size else np.nan
