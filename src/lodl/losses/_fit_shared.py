"""`fit_shared`: a learned loss from the decisions of all instances, with held-out errors."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_predictions, rank_correlation
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import DecisionFamily, are_explained
from lodl.losses._family import Family, check_can_fit, with_typical
from lodl.losses._fit import InstanceFit, build_loss, check_holdout, is_held_out, mean_of, value_of
from lodl.losses._learned_loss import FitStatus, LearnedLoss
from lodl.oracle import DecisionPool, Samples

_N_ALL_TAKEN = 100  # decisions up to which every instance takes all of them: a path on a small grid
_N_NEAREST = 20  # decisions to take at each of three points; twice as many were no better
_MAX_NUMBERS = 5e7  # numbers in the slopes of all instances: 400 MB
_ROUNDING = 1e-9  # share of the mean regret below which a regret is a rounding error
_LAST_DIGITS = 1e-12  # share of the largest label below which a deviation is a rounding error
_MIN_STAKE = 0.1  # least regret at stake at an instance, as a share of the mean of all instances


def fit_shared(
    samples: Samples, family: Family, *, at: npt.ArrayLike | None = None, holdout: float = 0.2
) -> LearnedLoss:
    """Make the loss of every instance from the decisions of all instances.

    Instances without context can share decisions: the solver sees only the prediction, so any
    decision made for one instance is feasible for all. If the objective is affine in the label, the
    answers also determine what each decision costs at every instance, without a solver call. A loss
    then has some hundred decisions instead of twenty: those that are cheapest under the label and,
    with `at`, under a prediction. The temperature of `DecisionRanking` is a share of the mean
    regret of all instances. Held-out samples evaluate a loss without the decisions that only they
    led to; the loss that is returned has all decisions.

    Args:
        samples: Answers with slopes (`Oracle.sample(..., slopes=True)`) of a problem whose
            objective is affine in the label, which `Oracle.is_affine` tests.
        family: `DecisionHinges` or `DecisionRanking`. Its `max_decisions` does not apply.
        at: A prediction for each instance, shape (n, *label_shape). By default, only decisions near
            the labels are taken.
        holdout: Share of all samples that are held out to measure the loss, at regular intervals.

    Raises:
        InvalidInputError: The instances have contexts, or the family is not a decision family.

    Example:
        >>> y = np.random.default_rng(0).normal(size=(20, 4))
        >>> samples = lodl.Oracle(lodl.domains.TopK(1)).sample(y, n_samples=3, slopes=True)
        >>> shared = lodl.losses.fit_shared(samples, lodl.DecisionHinges())
        >>> shared.phi["slope"].shape  # all three decisions that are not the best decision
        (20, 3, 4)
        >>> float(np.nanmean(shared.errors.met_held_out))  # other instances led to them, too
        1.0
    """
    if not isinstance(family, DecisionFamily):
        raise InvalidInputError(
            "`family` must be a decision family such as `lodl.DecisionHinges()` to share "
            f"decisions, got {family!r}."
        )
    check_holdout(holdout)
    check_can_fit(family, samples.y[0].size)
    pool = samples.pool()
    n, dim = pool.y.shape
    y_hat = None if at is None else check_predictions(at, samples.y, name="at").reshape(n, dim)
    n_answers = np.isfinite(pool.regret).sum(axis=1)
    means = np.nansum(np.maximum(pool.regret, 0.0), axis=1) / np.maximum(n_answers, 1)
    unit = float(means[n_answers > 0].mean()) if n_answers.any() else 0.0
    taken = pool.nearest(y_hat, _n_nearest(pool)) if unit else [np.empty(0, dtype=np.intp)] * n
    n_decisions = max(1, *map(len, taken))
    family = replace(family, max_decisions=n_decisions)  # type: ignore[type-var]  # a dataclass
    scales = _error_scales(pool, y_hat)
    held_out = _HeldOut(samples, pool, holdout)
    fits = []
    for i in range(n):
        counts = {"mean_regret": float(means[i]), **held_out.counts(i)}
        if not n_answers[i] or not unit:
            status = FitStatus.NOTHING_TO_DECIDE if n_answers[i] else FitStatus.NO_SAMPLES
            fits.append(InstanceFit(scales[i], counts, status))
            continue
        regret = pool.regrets(i, taken[i])
        regret[regret < _ROUNDING * unit] = 0.0
        slope = pool.gradient[taken[i]] - pool.gradient[pool.met[i, 0]]
        stake = max(float(means[i]), _MIN_STAKE * unit)
        phi = family.made_of(regret, slope, stake, scales[i], unit)
        errors = {}
        if held_out.mask[i].any():
            known = held_out.is_known[taken[i]]
            regret, slope = regret[known], slope[known]
            reduced = family.made_of(regret, slope, stake, scales[i], unit)
            errors = held_out.errors(i, family, reduced, regret, slope)
        fits.append(InstanceFit(scales[i], counts, FitStatus.FITTED, errors, phi, stake))
    provenance = {**samples.provenance(), "shared": True, "holdout": holdout}
    return build_loss(family, samples.y, fits, provenance)


class _HeldOut:
    """The held-out samples, at intervals that run across instances: each may have one sample."""

    def __init__(self, samples: Samples, pool: DecisionPool, holdout: float) -> None:
        self._pool = pool
        n, n_samples = pool.regret.shape
        self._is_answer = np.isfinite(pool.regret)
        held_out = [is_held_out(n_samples, holdout, offset=i) for i in range(n)]
        self.mask = self._is_answer & np.array(held_out)
        is_fitted = np.column_stack([np.ones(n, dtype=bool), ~self.mask]) & (pool.met >= 0)
        self.is_known = np.zeros(len(pool), dtype=bool)  # by the labels and the fitted samples
        self.is_known[pool.met[is_fitted]] = True
        self._d = samples.errors_and_regrets()[0] if self.mask.any() else np.empty((0, 0, 0))

    def counts(self, i: int) -> dict[str, float]:
        """Return the numbers of fitted and held-out answers of instance `i`."""
        n_held_out = int(self.mask[i].sum())
        return {"n_fitted": int(self._is_answer[i].sum()) - n_held_out, "n_held_out": n_held_out}

    def errors(
        self, i: int, family: Family, phi: dict[str, Array], regret: Array, slope: Array
    ) -> dict[str, float]:
        """Return the errors of a loss made of decisions with given regrets and slopes."""
        pool, rows = self._pool, np.flatnonzero(self.mask[i])
        d, cost, decision = self._d[i, rows], pool.regret[i, rows], pool.met[i, 1 + rows]
        taken = pool.gradient[decision] - pool.gradient[pool.met[i, 0]]
        return {
            "met_held_out": mean_of(self.is_known[decision[cost > 0]]),
            "explained_held_out": mean_of(are_explained(d, cost, taken, regret, slope)),
            "rank_correlation_held_out": rank_correlation(value_of(family, phi, d), cost),
        }


def _n_nearest(pool: DecisionPool) -> int:
    """Return the number of decisions to take at each of three points, limited by memory."""
    n, dim = pool.y.shape
    wanted = len(pool) if len(pool) <= _N_ALL_TAKEN else _N_NEAREST
    room = _MAX_NUMBERS / (n * dim) - pool.met.shape[1]
    return max(2, min(wanted, int(room / 3)))  # one of them may be the label's decision


def _error_scales(pool: DecisionPool, y_hat: Array | None) -> Array:
    """Return the root mean square (n, D) of labels' deviation, residual and twice the residual."""
    deviation = pool.y.std(axis=0)
    deviation[deviation < _LAST_DIGITS * np.abs(pool.centre).max()] = 0.0  # labels are all the same
    deviation = with_typical(deviation)
    if y_hat is None:
        return np.broadcast_to(deviation, pool.y.shape)
    residual = y_hat - pool.centre - pool.y
    return np.asarray(np.sqrt((deviation**2 + 5 * residual**2) / 3))
