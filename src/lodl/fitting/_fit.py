"""From samples to a learned loss."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import tee

import numpy as np
from joblib import Parallel, delayed

from lodl._progress import progress_bar
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.fitting._instance_fit import InstanceFit, SplitSamples, measure, without_fit
from lodl.fitting._methods import FitOne, check_can_fit, fit_batch, fit_instance
from lodl.fitting._samples import Samples
from lodl.fitting._stand_in import with_stand_ins
from lodl.losses import Family, FitErrors, FitStatus, LearnedLoss

_CHUNK = 8  # instances a task: enough to hide its overhead, the same for any number of workers

_logger = logging.getLogger(__name__)


def fit(
    samples: Samples,
    family: Family,
    *,
    holdout: float = 0.2,
    n_jobs: int | None = None,
    progress: bool = True,
) -> LearnedLoss:
    """Fits a loss to every instance's samples.

    Parameters come from the fitted samples only, also after the held-out error is known: it is then
    the error of the very loss that is returned, and nothing is fitted twice. Samples whose oracle
    call failed are left out.

    Where an instance has nothing to fit (no regret above zero, hardly a sample) a plain squared
    error stands in: weaker than the others by the family's `min_weight` (1e-3 where that is zero),
    so that it says "any error is bad" without drowning the instances that know better. Its fit
    errors are NaN, its status says why.

    Args:
        samples: Candidates with their regrets, as `lodl.oracle` gives them.
        family: The loss to fit.
        holdout: Share of each instance's samples kept aside to measure the fit, spread evenly over
            them; 0 for none.
        n_jobs: Number of workers, as in joblib. The result does not depend on it.
        progress: Whether to show a progress bar on a terminal.
    """
    if not 0 <= holdout < 1:
        raise InvalidInputError(f"`holdout` must be at least 0 and below 1, got {holdout!r}.")
    check_can_fit(family, samples.y[0].size)
    fit_one = fit_instance.dispatch(type(family))  # here: a worker may not know the user's own
    chunks = [
        range(start, min(start + _CHUNK, samples.n_instances))
        for start in range(0, samples.n_instances, _CHUNK)
    ]
    calls = (
        delayed(_fit_chunk)(samples.select(chunk), family, fit_one, holdout) for chunk in chunks
    )
    fits: list[InstanceFit] = []
    with progress_bar(
        samples.n_instances, unit="instances", description="fitting", enabled=progress
    ) as bar:
        for chunk_fits in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
            fits.extend(chunk_fits)
            bar.update(len(chunk_fits))
    return _learned_loss(samples, family, fits, holdout)


def _fit_chunk(
    samples: Samples, family: Family, fit_one: FitOne, holdout: float
) -> list[InstanceFit]:
    """Fits a few instances in a worker, on one BLAS thread: sums have one order."""
    with one_blas_thread():
        return list(_fit_each(_split_each(samples, holdout), family, fit_one))


def _split_each(samples: Samples, holdout: float) -> Iterator[SplitSamples]:
    for i in range(samples.n_instances):
        record = samples.instance(i)
        d = np.asarray(record.y_hat - samples.y[i], dtype=np.float64)
        regret = np.asarray(record.regret, dtype=np.float64)
        yield SplitSamples.of(d.reshape(len(regret), samples.y[i].size), regret, holdout)


def _fit_each(
    instances: Iterable[SplitSamples], family: Family, fit_one: FitOne
) -> Iterator[InstanceFit]:
    # A method that fits one by one has one instance in memory at a time, a batched one has all.
    ahead, instances = tee(instances)
    parameters = fit_batch(
        family,
        ((part.d, part.regret) for part in ahead if part.status == FitStatus.FITTED),
        fit_one,
    )
    for part in instances:
        if part.status == FitStatus.FITTED:
            yield measure(family, next(parameters), part)
        else:
            yield without_fit(part, part.status)


def _learned_loss(
    samples: Samples, family: Family, fits: Sequence[InstanceFit], holdout: float
) -> LearnedLoss:
    y = np.asarray(samples.y, dtype=np.float64)
    complete = with_stand_ins(fits, family)
    n_standing_in = sum(one.status != FitStatus.FITTED for one in complete)
    if n_standing_in:
        is_most = 2 * n_standing_in > len(complete)
        _logger.log(
            logging.WARNING if is_most else logging.INFO,
            "%d of %d instances have nothing to fit: a plain squared error stands in.%s",
            n_standing_in,
            len(complete),
            " Is the sampler's scale too small to change a decision?" if is_most else "",
        )
    phi = {name: np.stack([one.phi[name] for one in complete]) for name in complete[0].phi}
    provenance = {**samples.provenance(), "holdout": holdout, "lodl": version("lodl")}
    return LearnedLoss(family, y, phi, _fit_errors(complete), provenance)


def _fit_errors(fits: Sequence[InstanceFit]) -> FitErrors:
    def column(name: str, dtype: type = np.float64) -> Array:
        return np.array([getattr(one, name) for one in fits], dtype=dtype)

    return FitErrors(
        mae_fitted=column("mae_fitted"),
        mae_held_out=column("mae_held_out"),
        r2_held_out=column("r2_held_out"),
        rank_correlation_held_out=column("rank_correlation_held_out"),
        mean_regret=column("mean_regret"),
        n_fitted=column("n_fitted", np.int64),
        n_held_out=column("n_held_out", np.int64),
        status=column("status", np.int8),
    )
