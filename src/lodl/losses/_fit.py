"""From samples to a learned loss."""

from itertools import compress

import numpy as np

from lodl._progress import progress_bar
from lodl._threads import one_blas_thread
from lodl._version import package_version
from lodl.errors import InvalidInputError
from lodl.losses._all_fits import AllFits
from lodl.losses._family import Family, check_can_fit
from lodl.losses._fit_errors import FitStatus
from lodl.losses._instance_fit import (
    InstanceFit,
    SplitAnswers,
    measure,
    status_of,
    without_fit,
)
from lodl.losses._learned_loss import LearnedLoss
from lodl.oracle import Samples

_CHUNK = 8  # instances a task: enough to hide its overhead, the same for any number of workers


def fit(
    samples: Samples,
    family: Family,
    *,
    holdout: float = 0.2,
    n_jobs: int | None = None,
    progress: bool = True,
) -> LearnedLoss:
    """Fit a loss to every instance's samples.

    Parameters come from the fitted samples only, also after the held-out error is known: it is then
    the error of the very loss that is returned, and nothing is fitted twice. A family made of
    decisions is not fitted: all decisions are in its loss, and the held-out samples judge a loss
    without theirs. Samples whose solver call failed are left out.

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

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> samples = lodl.Oracle(lodl.domains.TopK(1)).sample(y, n_samples=50, slopes=True)
        >>> losses = [
        ...     lodl.losses.fit(samples, family)
        ...     for family in (lodl.WeightedMSE(), lodl.DecisionHinges())
        ... ]
        >>> [loss.n_instances for loss in losses]
        [2, 2]
    """
    from joblib import Parallel, delayed  # slow to import: only where a fit is made

    if not 0 <= holdout < 1:
        raise InvalidInputError(f"`holdout` must be at least 0 and below 1, got {holdout!r}.")
    n_instances, dim = samples.n_instances, samples.y[0].size
    check_can_fit(family, dim)
    chunks = [
        range(start, min(start + _CHUNK, n_instances)) for start in range(0, n_instances, _CHUNK)
    ]
    calls = (delayed(_fit_chunk)(samples.select(chunk), family, holdout) for chunk in chunks)
    fits = AllFits(family, n_instances, dim)
    with (
        one_blas_thread(),  # here once for all chunks that are fitted in this process
        progress_bar(n_instances, unit="instances", description="fitting", enabled=progress) as bar,
    ):
        results = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
        for chunk, chunk_fits in zip(chunks, results, strict=True):
            fits.put(chunk, chunk_fits)
            bar.update(len(chunk))
    fits.stand_in()
    provenance = {**samples.provenance(), "holdout": holdout, "lodl": package_version()}
    y = np.asarray(samples.y, dtype=np.float64)
    return LearnedLoss(family, y, fits.phi, fits.errors, provenance)


def _fit_chunk(samples: Samples, family: Family, holdout: float) -> list[InstanceFit]:
    """Fit a few instances in a worker, on one BLAS thread: sums have one order."""
    with one_blas_thread():
        parts = [SplitAnswers.of(samples.instance(i), holdout) for i in range(samples.n_instances)]
        learned = [part.learned_by(family) for part in parts]
        status = [status_of(answers) for answers in learned]
        is_fitted = [one == FitStatus.FITTED for one in status]
        phis = iter(family.fit_many(list(compress(learned, is_fitted))))
        return [
            measure(family, next(phis), part) if fitted else without_fit(part, why)
            for part, fitted, why in zip(parts, is_fitted, status, strict=True)
        ]
