"""`fit`: samples become a learned loss, one instance at a time, with held-out errors."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_number, rank_correlation
from lodl._json import package_version
from lodl._progress import progress_bar
from lodl._threads import one_blas_thread
from lodl._typing import Array, Flags, Index
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import DecisionFamily, are_explained, decisions_of
from lodl.losses._family import Family, check_can_fit, error_scale, shapes_like, stack_parameters
from lodl.losses._learned_loss import FitErrors, FitStatus, LearnedLoss
from lodl.oracle import Answers, Samples

_CHUNK = 8  # instances per task: hides its overhead; not a function of the number of workers
MIN_SAMPLES = 2  # one sample does not show where the cost grows
FALLBACK = 1e-3  # cost of a fallback as a share of the typical loss, if `min_weight` is 0
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

    A regret family is fitted without the held-out samples. A decision family is made of all
    samples, and held-out samples evaluate a loss without their decisions.

    An instance with nothing to fit (no regret above zero, fewer than two samples) gets a plain
    squared error, weaker than the other losses by the family's `min_weight` (1e-3 if that is 0).
    Its fit errors are NaN and its status gives the reason.

    Args:
        samples: Points with their regrets.
        family: The loss to fit.
        holdout: Share of each instance's samples, at regular intervals, that measure the fit.
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

    check_number("holdout", holdout, at_least=0, below=1)
    check_can_fit(family, samples.y[0].size)
    n, answers = samples.n_instances, iter(samples)
    chunks = [range(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
    calls = (delayed(_fit_chunk)(samples.select(chunk), family, holdout) for chunk in chunks)
    fits: list[InstanceFit] = []
    with (
        one_blas_thread(),  # once for all chunks that are fitted in this process
        progress_bar(n, unit="instances", description="fitting", enabled=progress) as bar,
    ):
        parts = iter(lambda: _fit_chunk(islice(answers, _CHUNK), family, holdout), [])
        if n_jobs not in (None, 1) or not isinstance(family, DecisionFamily):  # something is fitted
            parts = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
        for part in parts:
            fits += part
            bar.update(len(part))
    return build_loss(family, samples.y, fits, {**samples.provenance(), "holdout": holdout})


@dataclass(frozen=True, eq=False)
class InstanceFit:
    """Parameters and errors of one instance. An instance that is not fitted has neither."""

    error_scale: Array  # size of each coordinate's error, shape (D,)
    counts: dict[str, float]  # mean_regret, n_fitted and n_held_out of `FitErrors`
    status: FitStatus
    errors: dict[str, float] = field(default_factory=dict)  # other fields that are defined
    phi: dict[str, Array] = field(default_factory=dict)
    mean_loss: float = np.nan  # mean loss of the samples


def build_loss(
    family: Family, y: npt.ArrayLike, fits: Sequence[InstanceFit], provenance: Mapping[str, Any]
) -> LearnedLoss:
    """Return the loss of all instances: a weak squared error for those that are not fitted."""
    losses = [fit.mean_loss for fit in fits if fit.phi]
    typical_loss = float(np.median(losses)) if losses else 1.0
    scales = [fit.error_scale for fit in fits if fit.counts["n_fitted"] + fit.counts["n_held_out"]]
    fallback = family.fallback(
        cost=(family.min_weight or FALLBACK) * typical_loss,
        scale=np.median(scales or [fits[0].error_scale], axis=0),
    )
    phi, errors, n_missing = [], [], 0
    for fit in fits:
        if fit.mean_loss > _NEGLIGIBLE * typical_loss:
            phi.append(fit.phi)
            errors.append({**fit.counts, **fit.errors, "status": fit.status})
        else:
            phi.append(fallback)
            status = FitStatus.NOTHING_TO_DECIDE if fit.phi else fit.status
            errors.append({**fit.counts, "status": status})
            n_missing += 1
    log_missing(n_missing, len(fits))
    labels, provenance = np.asarray(y, dtype=np.float64), {**provenance, "lodl": package_version()}
    rows = stack_parameters(family, phi)
    return LearnedLoss(family, labels, rows, FitErrors.of(errors), provenance)


def log_missing(n_missing: int, n_instances: int) -> None:
    """Log how many instances get a plain squared error, as a warning if most do."""
    is_most = 2 * n_missing > n_instances
    message = "%d of %d instances have nothing to fit and get a plain squared error."
    if is_most:
        message += " Is the sampler's scale too small to change a decision?"
    if n_missing:
        level = logging.WARNING if is_most else logging.DEBUG  # again for every family
        _logger.log(level, message, n_missing, n_instances)


def is_held_out(n: int, holdout: float, *, offset: int | Index = 0) -> Flags:
    """Return which of `n` samples are held out: by position, at regular intervals."""
    n_held_out_before = np.floor((offset + np.arange(n + 1)) * holdout)
    return np.asarray(np.diff(n_held_out_before) > 0)


@one_blas_thread()  # so that sums have one order
def _fit_chunk(few: Iterable[Answers], family: Family, holdout: float) -> list[InstanceFit]:
    splits = [_Split(answers, family, holdout) for answers in few]
    learned = [split.learned for split in splits if split.status == FitStatus.FITTED]
    phis = iter(family.fit_many(learned))
    return [
        _measure(family, next(phis), split) if split.status == FitStatus.FITTED else split.unfitted
        for split in splits
    ]


class _Split:
    """The finite answers of one instance: the fitted, the held-out, and those to learn from."""

    def __init__(self, answers: Answers, family: Family, holdout: float) -> None:
        is_usable = np.isfinite(answers.regret) & np.isfinite(answers.d.sum(axis=1))
        held_out = is_held_out(len(answers.regret), holdout)
        usable = answers if is_usable.all() else answers.take(is_usable)
        is_fitted = ~held_out[is_usable]
        self.fitted = usable if is_fitted.all() else usable.take(is_fitted)
        self.held_out = usable.take(~is_fitted)
        self.learned = usable if family.uses_slopes else self.fitted
        self.status = _status_of(self.learned)
        regrets = self.fitted.regret, self.held_out.regret
        self.counts: dict[str, float] = {
            "mean_regret": mean_of(np.concatenate(regrets)),
            "n_fitted": len(regrets[0]),
            "n_held_out": len(regrets[1]),
        }

    @property
    def unfitted(self) -> InstanceFit:
        d = self.fitted.d
        scale = error_scale(d) if len(d) else np.ones(d.shape[1])
        return InstanceFit(scale, self.counts, self.status)


def _status_of(answers: Answers) -> FitStatus:
    """Return whether there is something to fit."""
    if len(answers.regret) < MIN_SAMPLES:
        return FitStatus.NO_SAMPLES
    has_cost = answers.regret.any() and answers.d.any()
    return FitStatus.FITTED if has_cost else FitStatus.NOTHING_TO_DECIDE


def _measure(family: Family, phi: dict[str, Array], split: _Split) -> InstanceFit:
    """Return the fit of an instance, without parameters if the loss is zero at every sample."""
    d = split.learned.d
    phi = {name: np.asarray(value, dtype=np.float64) for name, value in phi.items()}
    shapes = {name: array.shape for name, array in phi.items()}
    expected = shapes_like(family, shapes, d.shape[1])
    if shapes != expected:  # a custom family may return anything
        wanted = f"parameters of the shapes {expected}"
        raise InvalidInputError(f"The fit of {family} must return {wanted}, got {shapes}.")
    value = value_of(family, phi, d)
    if not value.any():
        return replace(split.unfitted, status=FitStatus.NOTHING_TO_DECIDE)
    if family.uses_slopes:
        errors = _decision_errors(family, split) if split.counts["n_held_out"] else {}
    else:
        held_out = value_of(family, phi, split.held_out.d)
        errors = regret_errors(value, split.fitted.regret, held_out, split.held_out.regret)
    return InstanceFit(error_scale(d), split.counts, split.status, errors, phi, mean_of(value))


def value_of(family: Family, phi: dict[str, Array], d: Array) -> Array:
    """Return the loss of one instance at errors (K, D), shape (K,)."""
    rows = {name: value[np.newaxis] for name, value in phi.items()}
    return np.asarray(family.value(rows, d[np.newaxis])[0])


def regret_errors(
    value: Array, regret: Array, value_held_out: Array, regret_held_out: Array
) -> dict[str, float]:
    """Return how well the losses of one instance repeat fitted and held-out regrets."""
    residual = value_held_out - regret_held_out
    has_variance = len(regret_held_out) and np.ptp(regret_held_out) > 0
    r2 = 1 - np.square(residual).mean() / regret_held_out.var() if has_variance else np.nan
    return {
        "mae_fitted": mean_of(np.abs(value - regret)),
        "mae_held_out": mean_of(np.abs(residual)),
        "r2_held_out": r2,
        "rank_correlation_held_out": rank_correlation(value_held_out, regret_held_out),
    }


def _decision_errors(family: Family, split: _Split) -> dict[str, float]:
    """Evaluate a loss made of the fitted samples only."""
    fitted, held_out = split.fitted, split.held_out
    (known, slopes), (taken, slope) = decisions_of(fitted), decisions_of(held_out)
    costly = taken[held_out.regret > 0]
    explained = are_explained(held_out.d, held_out.regret, slope, fitted.regret, slopes)
    errors = {"met_held_out": mean_of(np.isin(costly, known))}
    errors["explained_held_out"] = mean_of(explained)
    if _status_of(fitted) == FitStatus.FITTED:
        value = value_of(family, family.fit(fitted), held_out.d)
        errors["rank_correlation_held_out"] = rank_correlation(value, held_out.regret)
    return errors


def mean_of(values: npt.NDArray[Any]) -> float:
    """Return the mean, or NaN without values."""
    return float(values.mean()) if values.size else np.nan
