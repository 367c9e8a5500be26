"""`fit_shared`: a learned loss from the decisions of all instances, with held-out errors."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_number, check_predictions, rank_correlation
from lodl._json import package_version
from lodl._typing import Array, Flags
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import DecisionFamily, are_explained
from lodl.losses._family import Family, check_can_fit, mse_weights, with_typical
from lodl.losses._fit import FALLBACK, is_held_out, log_missing, mean_of, value_of
from lodl.losses._learned_loss import FitErrors, FitStatus, LearnedLoss
from lodl.losses._shared_slopes import SharedSlopes
from lodl.oracle import DecisionPool, Samples

_N_ALL_TAKEN = 100  # decisions up to which every instance takes all of them: a path on a small grid
_N_NEAREST = 20  # decisions to take at each of three points; twice as many were no better
_ROUNDING = 1e-9  # share of the mean regret below which a regret is a rounding error
_LAST_DIGITS = 1e-12  # share of the largest label below which a deviation is a rounding error
_UNIT = 0.4  # unit of regrets over the typical one: then about the mean regret of noise at labels


def fit_shared(
    samples: Samples, family: Family, *, at: npt.ArrayLike | None = None, holdout: float = 0.2
) -> LearnedLoss:
    """Make the loss of every instance from the decisions of all instances.

    Instances without context can share decisions: the solver sees only the prediction, so any
    decision made for one instance is feasible for all. With contexts they share what
    `LinearProblem.are_feasible` allows. If the objective is affine in the label, the answers also
    determine what each decision costs at every instance, without a solver call. A loss then has
    some hundred decisions instead of twenty, which are stored once for all instances:
    those that are cheapest under the label and, with `at`, under a prediction, or all if they are
    few. The temperature of `DecisionRanking` is a share of the mean regret of all instances.
    Held-out samples evaluate a loss without their own decisions; the returned loss has them all.

    Args:
        samples: Answers with slopes (`Oracle.sample(..., slopes=True)`) of a problem whose
            objective is affine in the label, which `Oracle.is_affine` tests.
        family: `DecisionHinges` or `DecisionRanking`. Its `max_decisions` does not apply.
        at: A prediction for each instance, shape (n, *label_shape). Defaults to none.
        holdout: Share of all samples that are held out to measure the loss, at regular intervals.

    Raises:
        InvalidInputError: The problem does not say what contexts allow, or the family is not a
            decision family.

    Example:
        >>> y = np.random.default_rng(0).normal(size=(20, 4))
        >>> samples = lodl.Oracle(lodl.domains.TopK(1)).sample(y, n_samples=3, slopes=True)
        >>> shared = lodl.losses.fit_shared(samples, lodl.DecisionHinges())
        >>> shared.phi["slope"].shape  # all four decisions, of which one is the best
        (20, 4, 4)
        >>> float(np.nanmean(shared.errors.met_held_out))  # other instances led to them, too
        1.0
    """
    if not isinstance(family, DecisionFamily):
        wanted = "a decision family such as `lodl.DecisionHinges()` to share decisions"
        raise InvalidInputError(f"`family` must be {wanted}, got {family!r}.")
    check_number("holdout", holdout, at_least=0, below=1)
    check_can_fit(family, samples.y[0].size)
    pool = samples.pool()
    n, dim = pool.y.shape
    y_hat = None if at is None else check_predictions(at, samples.y, name="at").reshape(n, dim)
    unit = _unit(pool)
    shared = _Shared(pool, y_hat, unit if unit > 0 else 1.0)
    n_decisions = max(1, len(shared.regret[0]) - family.has_own)
    family = replace(family, max_decisions=n_decisions)  # type: ignore[type-var]
    phi = family.made_of(shared.regret, shared.slope, shared.unit, shared.scale, shared.unit)
    status = np.where(shared.is_known, FitStatus.FITTED, FitStatus.NO_SAMPLES)
    if unit <= 0:
        status[shared.is_known] = FitStatus.NOTHING_TO_DECIDE
    if (is_empty := status != FitStatus.FITTED).any():
        log_missing(int(is_empty.sum()), n)
        weight = (family.min_weight or FALLBACK) * shared.unit
        phi["w"][is_empty] = mse_weights(weight, np.median(shared.scale, axis=0))
    offset = np.arange(n)[:, np.newaxis]  # so that intervals run across instances
    is_out = np.isfinite(pool.regret) & is_held_out(pool.regret.shape[1], holdout, offset=offset)
    errors = {**FitErrors.empty(n).arrays(), **_counts(pool, is_out), "status": status}
    if holdout:
        errors |= _held_out_errors(samples, shared, family, is_out)
    provenance = {**samples.provenance(), "shared": True, "holdout": holdout}
    provenance["lodl"] = package_version()
    return LearnedLoss(family, samples.y, phi, FitErrors(**errors), provenance)


class _Shared:
    """Regrets, slopes and typical errors of the decisions that each instance takes."""

    def __init__(self, pool: DecisionPool, y_hat: Array | None, unit: float) -> None:
        own, self.pool, self.unit = pool.met[:, :1], pool, unit
        self.is_known = own[:, 0] >= 0
        self.scale = _error_scales(pool, y_hat)
        self.decision = None
        if not len(pool):  # every call failed
            self.slope = SharedSlopes(0.0 * pool.y[:1], np.zeros(own.shape, dtype=np.intp))
            self.regret = np.zeros(own.shape)
            return
        are_equal = self.is_known.all() and pool.is_allowed is None
        if len(pool) > _N_ALL_TAKEN or not are_equal:
            n_nearest = _N_NEAREST if len(pool) > _N_ALL_TAKEN else len(pool)
            self.decision = pool.nearest(y_hat, n_nearest).copy()
            self.decision[~self.is_known] = 0
        self.slope = SharedSlopes(pool.gradient, np.maximum(own, 0), self.decision)
        self.regret = pool.regrets(self.decision)
        self.regret[self.regret < _ROUNDING * unit] = 0.0
        if self.decision is not None:  # the label's own decision comes first and pads the others
            self.regret[:, 0] = 0.0
            self.regret[:, 1:][self.decision[:, 1:] == self.decision[:, :1]] = np.inf


def _unit(pool: DecisionPool) -> float:
    """Return the unit of regrets: of typical ones, or of samples if all labels are the same."""
    regret = pool.regret[np.isfinite(pool.regret)]
    of_samples = float(np.maximum(regret, 0.0).mean()) if len(regret) else 0.0
    typical = _UNIT * pool.typical_regret
    return typical if typical > _ROUNDING * of_samples else of_samples


def _counts(pool: DecisionPool, held_out: Flags) -> dict[str, Array]:
    """Return the mean regret of each instance's samples, and how many are fitted and held out."""
    is_answer, n_samples = np.isfinite(pool.regret), pool.regret.shape[1]
    total = np.where(is_answer, np.maximum(pool.regret, 0.0), 0.0).sum(axis=1)
    mean = total / np.maximum(is_answer.sum(axis=1), 1) if n_samples else pool.regrets_of_others
    n_held_out = held_out.sum(axis=1)
    n_fitted = is_answer.sum(axis=1) - n_held_out
    return {"mean_regret": mean, "n_fitted": n_fitted, "n_held_out": n_held_out}


def _held_out_errors(
    samples: Samples, shared: _Shared, family: DecisionFamily, held_out: Flags
) -> dict[str, Array]:
    """Return errors of losses without the decisions that only held-out samples led to."""
    pool = shared.pool
    is_fitted = np.column_stack([np.ones(len(held_out), dtype=bool), ~held_out]) & (pool.met >= 0)
    is_known = np.zeros(len(pool), dtype=bool)  # by the labels and the fitted samples
    is_known[pool.met[is_fitted]] = True
    names = "met_held_out", "explained_held_out", "rank_correlation_held_out"
    errors = {name: np.full(len(held_out), np.nan) for name in names}
    d = samples.errors_and_regrets()[0]
    for i in np.flatnonzero(held_out.any(axis=1) & shared.is_known):
        rows = np.flatnonzero(held_out[i])
        known = is_known if shared.decision is None else is_known[shared.decision[i]]
        regret, slope = shared.regret[i][known], np.asarray(shared.slope[i : i + 1])[0][known]
        phi = family.made_of(regret, slope, shared.unit, shared.scale[i], shared.unit)
        cost, decision = pool.regret[i, rows], pool.met[i, 1 + rows]
        taken = pool.gradient[decision] - pool.gradient[pool.met[i, 0]]
        finite = np.isfinite(regret)
        explained = are_explained(d[i, rows], cost, taken, regret[finite], slope[finite])
        ranks = rank_correlation(value_of(family, phi, d[i, rows]), cost)
        met = mean_of(is_known[decision[cost > 0]])
        for name, value in zip(names, (met, mean_of(explained), ranks), strict=True):
            errors[name][i] = value
    return errors


def _error_scales(pool: DecisionPool, y_hat: Array | None) -> Array:
    """Return the root mean square (n, D) of labels' deviation, residual and twice the residual."""
    deviation = pool.y.std(axis=0)
    deviation[deviation < _LAST_DIGITS * np.abs(pool.centre).max()] = 0.0  # labels are all the same
    deviation = with_typical(deviation)
    if y_hat is None:
        return np.broadcast_to(deviation, pool.y.shape)
    residual = y_hat - pool.centre - pool.y
    return np.asarray(np.sqrt((deviation**2 + 5 * residual**2) / 3))
