r"""Pooled fits: each instance's parameters, pulled towards those of all instances.

A handful of answers cannot determine the weights of one instance, but those of all instances
together can. For losses that are linear in their weights (`Family.degrees`), with b(d) the
functions that the weights multiply:

1. *One set of weights for all instances*, w0 >= 0, by least squares over all answers, pulled
   towards one weight per parameter for all coordinates. The strength is the one that predicts
   left-out instances best (five groups). "One weight" is meant in the label's unit or in units of
   the sampled errors, whichever predicts better. This keeps weights that the answers hardly see
   off zero.
2. *The weights of each instance* minimise, over w >= 0,

       sum_k (b(d_k) . w - regret_k)^2 + tau sum_j (w_j - w0_j)^2 / w0_j^2

   with one tau for all instances, infinity included (all instances alike): the one that predicts
   left-out answers best. Leaving out has a closed form: with A = F S F' + tau I, S = diag(w0^2),
   rows b(d_k) in F and e = regret - F w0, the residual of answer k if it is left out is
   [A^-1 e]_k / [A^-1]_kk.

All instances are solved at once, by Newton's method on the dual: the optimum is
w = max(0, w0 + S F' a) for the a with tau a + F w = regret, one equation per answer.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lodl._arrays import rank_correlation
from lodl._json import package_version
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, check_can_fit
from lodl.losses._learned_loss import FitErrors, FitStatus, LearnedLoss
from lodl.losses._least_squares import solve_nnls
from lodl.losses._standardised import error_scale
from lodl.oracle import Samples

_N_GROUPS = 5  # groups of instances that are left out in turn
_PULLS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e3)  # strengths towards one weight per parameter
_STRENGTHS = 10.0 ** np.arange(-3, 5.1, 0.5)  # tau, in units of the residuals' variance
_FLOOR = 1e-3  # least pooled weight as a share of the mean, if the family has no `min_weight`
_AT_ONCE = 2**24  # numbers in the largest array of a step
_TOLERANCE = 1e-10  # of the dual equations, relative to the regrets
_MAX_STEPS, _MAX_HALVINGS = 60, 20


def fit_pooled(samples: Samples, family: Family) -> LearnedLoss:
    """Fit a loss to all instances' samples together: weights pulled towards common weights.

    A few samples per instance suffice (four instead of fifty). `WeightedMSE`,
    `DirectedWeightedMSE`, `DirectedWeightedMAE` and custom families with `degrees` can be pooled;
    the others are not linear in their parameters, and are fitted by `lodl.losses.fit`. Their
    `ridge` is not used: the strength of the pull is estimated.

    Held-out errors are those of answers that are left out one at a time, with common weights of
    instances other than their own. An instance without samples has the common weights.

    Args:
        samples: Points with their regrets, as an oracle returns them.
        family: The loss to fit.

    Example:
        >>> def cost(order, demand):
        ...     return float(np.maximum(order - demand, 4 * (demand - order)).sum())
        >>> shop = lodl.problem(lambda y_hat: y_hat, cost, sense="min")
        >>> y = np.random.default_rng(0).normal(size=(40, 3))
        >>> samples = lodl.Oracle(shop).sample(y, n_samples=2)
        >>> loss = lodl.losses.fit_pooled(samples, lodl.DirectedWeightedMAE())
        >>> (loss.phi["w_minus"][0] / loss.phi["w_plus"][0]).round(3)  # from two samples each
        array([4., 4., 4.])
    """
    check_can_fit(family, samples.y[0].size)
    if not family.degrees:
        raise InvalidInputError(
            f"{family} cannot be pooled, because it is not linear in its parameters. Use "
            "`lodl.losses.fit`, or `DirectedWeightedMSE()` or `DirectedWeightedMAE()`."
        )
    d, regret = samples.errors_and_regrets()
    with one_blas_thread():
        phi, held_out, tau = pool(family, d, regret)
    y = np.asarray(samples.y, dtype=np.float64)
    provenance = {**samples.provenance(), "pooled": tau, "lodl": package_version()}
    return LearnedLoss(family, y, phi, _errors(family, phi, d, regret, held_out), provenance)


def pool(family: Family, d: Array, regret: Array) -> tuple[dict[str, Array], Array, float | str]:
    """Return the parameters of all instances, the losses of left-out answers, and the strength.

    Args:
        family: A family with `degrees`.
        d: Errors, shape (n, K, D).
        regret: Their regrets, shape (n, K); NaN if a call failed.

    Returns:
        Parameters by name, each (n, D); predictions of the regrets (n, K) by losses that have not
        seen them; and tau relative to the residuals' variance, "all alike" if it is infinite, or
        "nothing" if no regret is above zero and a squared error takes the place of a fit.
    """
    is_ok = np.isfinite(regret)
    r = np.where(is_ok, regret, 0.0)
    scale = error_scale(d[is_ok]) if is_ok.any() else np.ones(d.shape[-1])
    unit = float(np.sqrt(np.square(r).sum() / max(is_ok.sum(), 1)))
    constant = family.fallback(cost=(family.min_weight or _FLOOR) * (unit or 1.0), scale=scale)
    phi = {name: np.repeat(value[np.newaxis], len(d), axis=0) for name, value in constant.items()}
    if not (r > 0).any() or not d[is_ok].any():
        return phi, np.full_like(regret, np.nan), "nothing"
    powers = np.stack([scale**degree for degree in family.degrees.values()])

    def features(rows: slice) -> Array:
        columns = terms_of(family, np.where(is_ok[rows, :, np.newaxis], d[rows] / scale, 0.0))
        return columns.reshape(*columns.shape[:2], -1)

    n, n_samples = r.shape
    size = max(1, _AT_ONCE // (n_samples * (powers.size + n_samples)))
    chunks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    groups = _groups(n, n_samples)
    common, without = _common_weights(features, r / unit, chunks, groups, powers, family.min_weight)
    tau, held_out = _strength(features, r / unit, is_ok, chunks, groups, common, without)
    weights = np.empty((n, powers.size))
    for rows in chunks:
        weights[rows] = _instance_weights(features(rows), r[rows] / unit, common, tau[0])
    weights = np.maximum(weights, family.min_weight * common.mean())
    weights = weights.reshape(n, *powers.shape) * unit / powers
    phi |= {name: weights[:, g] for g, name in enumerate(family.degrees)}
    return phi, held_out * unit, tau[1] if np.isfinite(tau[1]) else "all alike"


def terms_of(family: Family, d: Array) -> Array:
    """Return the functions of errors (n, m, D) that the weights multiply: (n, m, parameters, D).

    A function of degree q is d times its derivative over q, and the derivative is the family's
    gradient if all other weights are 0.
    """
    dim = d.shape[-1]
    zero = {name: np.zeros((1, *s)) for name, s in family.parameter_shapes(dim).items()}
    one = np.ones((1, dim))
    terms = [d * family.gradient({**zero, p: one}, d) / q for p, q in family.degrees.items()]
    return np.stack(terms, axis=-2)


def _groups(n: int, n_samples: int) -> npt.NDArray[np.intp]:
    """Return the group of each answer, shape (n, K): whole instances, unless these are few."""
    if n < _N_GROUPS:
        return np.arange(n * n_samples).reshape(n, n_samples) % _N_GROUPS
    shuffled = np.random.default_rng(0).permutation(n) % _N_GROUPS
    return np.repeat(shuffled[:, np.newaxis], n_samples, axis=1)


def _common_weights(
    features: Callable[[slice], Array],
    r: Array,
    chunks: list[slice],
    groups: npt.NDArray[np.intp],
    powers: Array,
    min_weight: float,
) -> tuple[Array, Array]:
    """Return weights of all instances, (P,), and of all but each group, (groups, P)."""
    grams = np.zeros((_N_GROUPS, powers.size, powers.size))
    moments = np.zeros((_N_GROUPS, powers.size))
    for rows in chunks:
        f = features(rows)
        for g in range(_N_GROUPS):
            part = f[groups[rows] == g]
            grams[g] += part.T @ part
            moments[g] += part.T @ r[rows][groups[rows] == g]
    gram, moment = grams.sum(axis=0), moments.sum(axis=0)

    def solve(gram: Array, moment: Array, alike: Array, pull: float) -> Array:
        target = _alike(gram, moment, alike, min_weight or _FLOOR)
        scaled = gram * np.outer(target, target)
        strength = pull * float(np.trace(scaled)) / len(scaled)
        w = _solve_gram(scaled, target * moment, strength)
        return np.maximum(target * w, (min_weight or _FLOOR) * target)

    best, best_error = (np.empty(0), np.empty(0)), np.inf
    for unit in (np.ones_like(powers), powers):  # alike in units of errors, in the label's unit
        alike = unit / unit.mean(axis=1, keepdims=True)
        for pull in _PULLS:
            without = np.stack(
                [solve(gram - grams[g], moment - moments[g], alike, pull) for g in range(_N_GROUPS)]
            )
            error = sum(float(w @ grams[g] @ w - 2 * w @ moments[g]) for g, w in enumerate(without))
            if error < best_error:
                best, best_error = (solve(gram, moment, alike, pull), without), error
    return best


def _alike(gram: Array, moment: Array, alike: Array, floor: float) -> Array:
    """Return the best weights that are multiples of `alike` (parameters, D), flat."""
    n_parameters, dim = alike.shape
    columns = np.zeros((alike.size, n_parameters))
    for g in range(n_parameters):
        columns[g * dim : (g + 1) * dim, g] = alike[g]
    w = columns @ _solve_gram(columns.T @ gram @ columns, columns.T @ moment)
    return np.asarray(np.maximum(w, floor * w.mean() if w.any() else 1.0))


def _solve_gram(gram: Array, moment: Array, pull: float = 0.0) -> Array:
    """Return the w >= 0 that minimises w'Gw - 2 m'w + pull |w - 1|^2."""
    rounding = 1e-12 * float(np.trace(gram))
    lower = np.linalg.cholesky(gram + (pull + rounding) * np.eye(len(gram)))
    return solve_nnls(np.asarray(lower.T), np.linalg.solve(lower, moment + pull))


def _strength(
    features: Callable[[slice], Array],
    r: Array,
    is_ok: npt.NDArray[np.bool_],
    chunks: list[slice],
    groups: npt.NDArray[np.intp],
    common: Array,
    without: Array,
) -> tuple[tuple[float, float], Array]:
    """Return tau, absolute and in units of the residuals' variance, and left-out predictions."""
    errors, values, turned = [], [], []
    for rows in chunks:
        f = features(rows)
        e = r[rows] - np.einsum("nkp,nkp->nk", f, without[groups[rows]])
        value, vector = np.linalg.eigh((f * common**2) @ f.swapaxes(1, 2))
        errors.append(e)
        values.append(np.maximum(value, 0.0))
        turned.append(vector)
    e, value, vector = np.concatenate(errors), np.concatenate(values), np.concatenate(turned)
    unit = float(e[is_ok].var()) or 1.0
    along = np.einsum("nkl,nk->nl", vector, e)

    def residual(strength: float) -> Array:
        """Return the residuals of answers if they are left out."""
        if np.isinf(strength):
            return e
        inverse = 1 / (value + strength * unit)
        solution = np.einsum("nkl,nl->nk", vector, along * inverse)
        return np.asarray(solution / np.einsum("nkl,nl->nk", vector**2, inverse))

    strengths = (np.inf, *_STRENGTHS[::-1].tolist())
    rounding = _TOLERANCE * float(np.square(r).sum())
    scores = [max(float(np.square(residual(s)).sum()), rounding) for s in strengths]
    best = strengths[int(np.argmin(scores))]
    return (best * unit, best), np.where(is_ok, r - residual(best), np.nan)


def _instance_weights(f: Array, r: Array, common: Array, tau: float) -> Array:
    """Return each instance's weights (n, P) from features (n, K, P) and regrets (n, K)."""
    n, n_samples, _ = f.shape
    if np.isinf(tau):
        return np.repeat(common[np.newaxis], n, axis=0)
    variance, transposed = common**2, f.swapaxes(1, 2)
    a, size = np.zeros((n, n_samples)), max(float(np.abs(r).max()), 1e-300)

    def unbounded(a: Array) -> Array:
        return np.asarray(common + variance * (transposed @ a[..., np.newaxis])[..., 0])

    def dual(a: Array) -> Array:
        w = np.maximum(unbounded(a), 0.0)
        squares = np.square(w) / variance
        return np.asarray((tau * a**2 / 2 - r * a).sum(axis=1) + squares.sum(axis=1) / 2)

    for _ in range(_MAX_STEPS):
        w = unbounded(a)
        slope = tau * a + (f @ np.maximum(w, 0.0)[..., np.newaxis])[..., 0] - r
        if np.abs(slope).max() <= _TOLERANCE * size:
            break
        bend = (f * (variance * (w > 0))[:, np.newaxis]) @ transposed + tau * np.eye(n_samples)
        step = np.linalg.solve(bend, slope[..., np.newaxis])[..., 0]
        share, before = np.ones((n, 1)), dual(a)
        descent = np.einsum("nk,nk->n", slope, step)
        for _ in range(_MAX_HALVINGS):
            rounding = 1e-12 * (1 + np.abs(before))
            is_bad = dual(a - share * step) > before - 1e-4 * share[:, 0] * descent + rounding
            if not is_bad.any():
                break
            share[is_bad] /= 2
        a = a - share * step
    return np.maximum(unbounded(a), 0.0)


def _errors(
    family: Family, phi: dict[str, Array], d: Array, regret: Array, held_out: Array
) -> FitErrors:
    """Return how well losses repeat their regrets, and those of answers left out."""
    is_ok = np.isfinite(regret)
    value = family.value(phi, np.where(is_ok[..., np.newaxis], d, 0.0))
    n_ok, is_fitted = is_ok.sum(axis=1), np.isfinite(held_out).any(axis=1)
    mean_regret = _mean(np.where(is_ok, regret, 0.0), n_ok)
    residual = np.where(is_ok, held_out - regret, 0.0)
    variance = _mean(np.where(is_ok, np.square(regret - mean_regret[:, np.newaxis]), 0.0), n_ok)
    errors = FitErrors.empty(len(d))
    columns = errors.arrays()
    columns["mean_regret"][:] = mean_regret
    columns["n_fitted"][:] = columns["n_held_out"][:] = n_ok
    columns["status"][:] = np.where(
        n_ok == 0,
        FitStatus.NO_SAMPLES,
        np.where(is_fitted, FitStatus.FITTED, FitStatus.NOTHING_TO_DECIDE),
    )
    columns["mae_fitted"][:] = _mean(np.where(is_ok, np.abs(value - regret), 0.0), n_ok)
    columns["mae_held_out"][:] = _mean(np.abs(residual), n_ok)
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = 1 - _mean(np.square(residual), n_ok) / variance
    columns["r2_held_out"][:] = np.where(variance > 0, r2, np.nan)
    for i in np.flatnonzero(is_fitted):
        ok = is_ok[i]
        columns["rank_correlation_held_out"][i] = rank_correlation(held_out[i, ok], regret[i, ok])
    for name in FitErrors.of_fits:
        columns[name][~is_fitted] = np.nan
    return errors


def _mean(values: Array, count: npt.NDArray[np.intp]) -> Array:
    """Return the mean of each row's `count` values that are not padding, NaN if there are none."""
    return np.where(count > 0, values.sum(axis=1) / np.maximum(count, 1), np.nan)
