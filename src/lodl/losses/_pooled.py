r"""Pooled fits: each instance's parameters, pulled towards common parameters of all instances.

A handful of answers cannot determine the weights of one instance, but all instances together can.
For losses that are linear in their weights (`Family.degrees`), which multiply functions b(d):

1. *One set of weights for all instances*, w0 >= 0, by least squares over all answers, pulled
   towards one weight per parameter for all coordinates (in the label's unit or in units of the
   sampled errors), with the strength and unit that predict left-out instances best.
2. *The weights of each instance* minimise, over w >= 0,

       sum_k (b(d_k) . w - regret_k)^2 + tau sum_j (w_j - w0_j)^2 / w0_j^2

   over its own answers and those about the nearest labels, about 48 in all: whether a budget binds
   depends on the label. All instances have the same tau: a tenth of the value that predicts
   left-out answers best, or infinity (all instances alike) if that is best. Leaving out has a
   closed form: with A = F S F' + tau I, S = diag(w0^2), rows b(d_k) in F and e = regret - F w0, the
   residual of answer k if it is left out is [A^-1 e]_k / [A^-1]_kk. A tenth, because the noise of
   single instances averages out in a model that is trained on all of them, and a pull does not.

All instances are solved at once, by Newton's method on the dual: the optimum is
w = max(0, w0 + S F' a) for the a with tau a + F w = regret, one equation per answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lodl._json import package_version
from lodl._threads import one_blas_thread
from lodl._typing import Array, Index
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, Parameters, check_can_fit, error_scale
from lodl.losses._fit import mean_of, regret_errors
from lodl.losses._learned_loss import FitErrors, FitStatus, LearnedLoss
from lodl.losses._least_squares import solve_nnls_of_gram
from lodl.oracle import Samples

_N_GROUPS = 5  # groups of instances that are left out in turn
_PULLS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3)  # strengths towards one weight per parameter
_STRENGTHS = (np.inf, *(10.0 ** np.arange(5, -3.1, -0.5)).tolist())  # tau over residual variance
_N_ANSWERS = 48  # answers that an instance is fitted to, with those about near labels
_NEAR_SHARE = 0.25  # largest share of the instances that count as near
_N_COMPARED = 4096  # instances among which near labels are searched
_N_JUDGED = 300  # instances that select tau
_TAU_SHARE = 0.1  # of the tau that predicts left-out answers best
_FLOOR = 1e-3  # least pooled weight as a share of the mean, if the family has no `min_weight`
_AT_ONCE = 2**22  # numbers in the largest array of a step
_TOLERANCE = 1e-8  # of the dual equations, relative to the regrets
_MAX_STEPS, _MAX_HALVINGS = 60, 20


def fit_pooled(samples: Samples, family: Family) -> LearnedLoss:
    """Fit a loss to all instances' samples together: weights pulled towards common weights.

    Four samples per instance suffice instead of fifty. The strength of the pull is estimated;
    `ridge` is not used. Held-out errors are those of answers that are left out one at a time. An
    instance without samples has the common weights.

    Args:
        samples: Points with their regrets.
        family: `WeightedMSE`, `DirectedWeightedMSE`, `DirectedWeightedMAE`, or a custom family with
            `degrees`. Others are not linear in their parameters: use `lodl.losses.fit`.

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
    y = np.asarray(samples.y, dtype=np.float64)
    with one_blas_thread():
        phi, held_out, tau = pool(family, d, regret, y.reshape(len(y), -1))
    provenance = {**samples.provenance(), "pooled": tau, "lodl": package_version()}
    return LearnedLoss(family, y, phi, _errors(family, phi, d, regret, held_out), provenance)


def pool(
    family: Family, d: Array, regret: Array, y: Array
) -> tuple[dict[str, Array], Array, float | str]:
    """Return the parameters of all instances, the losses of left-out answers, and the strength.

    The arguments have shapes (n, K, D), (n, K) with NaN if a call failed, and (n, D). The strength
    is tau over the residuals' variance, "all alike" if it is infinite, or "nothing" if no regret is
    above zero and a squared error takes the place of a fit.
    """
    is_ok = np.isfinite(regret)
    r = np.where(is_ok, regret, 0.0)
    scale = error_scale(d[is_ok]) if is_ok.any() else np.ones(d.shape[-1])
    unit = float(np.sqrt(np.square(r).sum() / max(is_ok.sum(), 1)))
    floor = family.min_weight or _FLOOR
    constant = family.fallback(cost=floor * (unit or 1.0), scale=scale)
    phi = {name: np.repeat(value[np.newaxis], len(d), axis=0) for name, value in constant.items()}
    if not (r > 0).any() or not d[is_ok].any():
        return phi, np.full_like(regret, np.nan), "nothing"
    d = np.where(is_ok[..., np.newaxis], d / scale, 0.0)
    answers = _Answers(family, d, r / unit, _groups(*r.shape), _nearest(y, r.shape[1]))
    powers = np.stack([scale**degree for degree in family.degrees.values()])
    common, without = _common_weights(answers, powers, floor)
    variance, strength = _strength(answers, common, without)
    tau = _TAU_SHARE * (strength * variance)
    weights, held_out = np.empty((len(d), powers.size)), np.empty_like(r)
    for rows in answers.chunks():
        f, regrets, e = answers.near(rows, without)
        weights[rows] = _instance_weights(f, regrets, common, tau)
        held_out[rows] = (r[rows] / unit) - next(_left_out(f, e, common, [tau]))[:, : r.shape[1]]
    weights = np.maximum(weights, family.min_weight * common.mean())
    weights = weights.reshape(len(d), *powers.shape) * unit / powers
    phi |= {name: weights[:, g] for g, name in enumerate(family.degrees)}
    held_out = np.where(is_ok, held_out * unit, np.nan)
    return phi, held_out, strength if np.isfinite(strength) else "all alike"


@dataclass(frozen=True, eq=False)
class _Answers:
    """All answers, errors and regrets in units of their size; failed answers are zeros."""

    family: Family
    d: Array  # errors, shape (n, K, D)
    r: Array  # regrets, shape (n, K)
    groups: Index  # group of each answer, shape (n, K)
    nearest: Index  # instances with the nearest labels, the instance itself first, shape (n, m)

    def chunks(self) -> list[Index]:
        """Return the instances in parts that fit into memory together with their near answers."""
        n, n_answers = len(self.d), self.nearest.shape[1] * self.r.shape[1]
        size = n_answers * max(n_answers, len(self.family.degrees) * self.d.shape[2])
        return np.array_split(np.arange(n), -(-n * size // _AT_ONCE))

    def features(self, rows: Index) -> Array:
        """Return what the weights multiply, shape (len(rows), K, P)."""
        terms = terms_of(self.family, self.d[rows])
        return terms.reshape(*terms.shape[:2], -1)

    def near(self, rows: Index, without: Array) -> tuple[Array, Array, Array]:
        """Return features, regrets and residuals (of `without`) of own and near answers."""
        n, near = len(rows), self.nearest[rows]
        f = self.features(near.reshape(-1)).reshape(n, near.shape[1] * self.r.shape[1], -1)
        r = self.r[near].reshape(n, -1)
        seen = without[self.groups[near].reshape(n, -1)]
        return f, r, r - np.einsum("nkp,nkp->nk", f, seen)


def terms_of(family: Family, d: Array) -> Array:
    """Return the functions of errors (n, m, D) that the weights multiply: (n, m, parameters, D).

    One of degree q is d / q times its derivative, the gradient if all other weights are 0.
    """
    dim = d.shape[-1]
    zero = {name: np.zeros((1, *s)) for name, s in family.parameter_shapes(dim).items()}
    one = np.ones((1, dim))
    terms = [d * family.gradient({**zero, p: one}, d) / q for p, q in family.degrees.items()]
    return np.stack(terms, axis=-2)


def _groups(n: int, n_samples: int) -> Index:
    """Return the group of each answer, shape (n, K): whole instances, unless these are few."""
    if n < _N_GROUPS:
        return np.arange(n * n_samples).reshape(n, n_samples) % _N_GROUPS
    shuffled = np.random.default_rng(0).permutation(n) % _N_GROUPS
    return np.tile(shuffled[:, np.newaxis], n_samples)


def _nearest(y: Array, n_samples: int) -> Index:
    """Return the instances with the nearest labels, in units of the labels' deviation."""
    n = len(y)
    m = min(-(-_N_ANSWERS // n_samples), max(1, int(_NEAR_SHARE * min(n, _N_COMPARED))))
    scaled, nearest = y / error_scale(y - y.mean(axis=0)), np.empty((n, m), dtype=np.intp)
    order = np.random.default_rng(0).permutation(n) if n > _N_COMPARED else np.arange(n)
    for part in np.array_split(order, -(-n // _N_COMPARED)):
        z = scaled[part]
        distance = np.square(z).sum(axis=1) / 2 - z @ z.T
        distance[np.diag_indices(len(part))] = -np.inf  # itself first, also among copies
        near = np.argpartition(distance, m - 1, axis=1)[:, :m]
        order_of_near = np.argsort(np.take_along_axis(distance, near, axis=1), axis=1)
        nearest[part] = part[np.take_along_axis(near, order_of_near, axis=1)]
    return nearest


def _common_weights(answers: _Answers, powers: Array, floor: float) -> tuple[Array, Array]:
    """Return weights of all instances, (P,), and of all but each group, (groups, P).

    `powers` are error scales to the power of each degree, `floor` is the least share of a weight.
    """
    grams = np.zeros((_N_GROUPS, powers.size, powers.size))
    moments = np.zeros((_N_GROUPS, powers.size))
    for rows in answers.chunks():
        f, r, groups = answers.features(rows), answers.r[rows], answers.groups[rows]
        for g in range(_N_GROUPS):
            part = f[groups == g]
            grams[g] += part.T @ part
            moments[g] += part.T @ r[groups == g]
    gram, moment = grams.sum(axis=0), moments.sum(axis=0)

    def solve(gram: Array, moment: Array, columns: Array, pull: float) -> Array:
        w = columns @ _solve_gram(columns.T @ gram @ columns, columns.T @ moment)
        target = np.maximum(w, floor * w.mean() if w.any() else 1.0)
        scaled = gram * np.outer(target, target)
        strength = pull * float(np.trace(scaled)) / len(scaled)
        w = _solve_gram(scaled, target * moment, strength)
        return np.maximum(target * w, floor * target)

    best, best_error = (np.empty(0), np.empty(0)), np.inf
    for unit in (np.ones_like(powers), powers):  # alike in units of errors, in the label's unit
        alike = unit / unit.mean(axis=1, keepdims=True)
        columns = np.einsum("gd,gh->gdh", alike, np.eye(len(alike))).reshape(unit.size, -1)
        for pull in _PULLS:
            parts = zip(gram - grams, moment - moments, strict=True)
            without = np.stack([solve(*part, columns, pull) for part in parts])
            error = sum(float(w @ grams[g] @ w - 2 * w @ moments[g]) for g, w in enumerate(without))
            if error < best_error:
                best, best_error = (solve(gram, moment, columns, pull), without), error
    return best


def _solve_gram(gram: Array, moment: Array, pull: float = 0.0) -> Array:
    """Return the w >= 0 that minimises w'Gw - 2 m'w + pull |w - 1|^2."""
    pulled = gram + pull * np.eye(len(gram))
    diagonal = pulled.diagonal()
    is_seen = diagonal > 0
    length = np.sqrt(np.square(moment + pull)[is_seen] / diagonal[is_seen]).max(initial=0.0)
    return solve_nnls_of_gram(pulled, moment + pull, float(length) or 1.0)


def _left_out(f: Array, e: Array, common: Array, taus: Sequence[float]) -> Iterator[Array]:
    """Yield, for each tau, the residuals (n, K) of answers that are left out one at a time."""
    if np.isinf(taus[0]):
        yield e
        taus = taus[1:]
    if not taus:
        return
    value, vector = np.linalg.eigh((f * common**2) @ f.swapaxes(1, 2))
    along = _times(vector.swapaxes(1, 2), e)
    for tau in taus:
        inverse = 1 / (np.maximum(value, 0.0) + tau)
        yield _times(vector, along * inverse) / _times(vector**2, inverse)


def _times(matrix: Array, column: Array) -> Array:
    """Return each instance's matrix (n, i, j) times its column (n, j), shape (n, i)."""
    return np.asarray((matrix @ column[..., np.newaxis])[..., 0])


def _strength(answers: _Answers, common: Array, without: Array) -> tuple[float, float]:
    """Return the residuals' variance, and the tau over it that predicts left-out answers best."""
    n, n_samples = answers.r.shape
    judges = np.random.default_rng(1).permutation(n)[:_N_JUDGED]
    r, seen = answers.r[judges], without[answers.groups[judges]]
    e = r - np.einsum("nkp,nkp->nk", answers.features(judges), seen)
    variance = float(np.square(e).sum() / answers.d[judges].any(axis=-1).sum()) or 1.0
    errors = np.zeros(len(_STRENGTHS))
    for rows in answers.chunks():
        judged = np.intersect1d(rows, judges)
        if len(judged):
            f, _, e = answers.near(judged, without)
            left_out = _left_out(f, e, common, [strength * variance for strength in _STRENGTHS])
            errors += [np.square(residuals[:, :n_samples]).sum() for residuals in left_out]
    best = int(np.argmin(np.maximum(errors, _TOLERANCE * np.square(r).sum())))
    return variance, _STRENGTHS[best]


def _instance_weights(f: Array, r: Array, common: Array, tau: float) -> Array:
    """Return each instance's weights (n, P) from features (n, K, P) and regrets (n, K)."""
    n, n_samples, _ = f.shape
    if np.isinf(tau):
        return np.repeat(common[np.newaxis], n, axis=0)
    variance, transposed = common**2, f.swapaxes(1, 2)
    a, size = np.zeros((n, n_samples)), max(float(np.abs(r).max()), 1e-300)

    def unbounded(a: Array) -> Array:
        return np.asarray(common + variance * _times(transposed, a))

    def dual(a: Array) -> Array:
        squares = np.square(np.maximum(unbounded(a), 0.0)) / variance
        return np.asarray((tau * a**2 / 2 - r * a).sum(axis=1) + squares.sum(axis=1) / 2)

    for _ in range(_MAX_STEPS):
        w = unbounded(a)
        slope = tau * a + _times(f, np.maximum(w, 0.0)) - r
        if np.abs(slope).max() <= _TOLERANCE * size:
            break
        bend = (f * (variance * (w > 0))[:, np.newaxis]) @ transposed + tau * np.eye(n_samples)
        step = np.linalg.solve(bend, slope[..., np.newaxis])[..., 0]
        share, before = np.ones((n, 1)), dual(a)
        descent, rounding = np.einsum("nk,nk->n", slope, step), 1e-12 * (1 + np.abs(before))
        for _ in range(_MAX_HALVINGS):
            is_bad = dual(a - share * step) > before - 1e-4 * share[:, 0] * descent + rounding
            if not is_bad.any():
                break
            share[is_bad] /= 2
        a = a - share * step
    return np.maximum(unbounded(a), 0.0)


def _errors(family: Family, phi: Parameters, d: Array, regret: Array, held_out: Array) -> FitErrors:
    """Return how well losses repeat their regrets, and those of answers left out."""
    value = family.value(phi, np.where(np.isfinite(regret)[..., np.newaxis], d, 0.0))
    rows: list[dict[str, float]] = []
    for values, regrets, left_out in zip(value, regret, held_out, strict=True):
        is_ok = np.isfinite(regrets)
        own, known = regrets[is_ok], left_out[is_ok]
        errors: dict[str, float] = {"status": FitStatus.NOTHING_TO_DECIDE}
        if not is_ok.any():
            errors["status"] = FitStatus.NO_SAMPLES
        elif np.isfinite(known).any():
            errors = {"status": FitStatus.FITTED, **regret_errors(values[is_ok], own, known, own)}
        counts = {"mean_regret": mean_of(own), "n_fitted": len(own), "n_held_out": len(own)}
        rows.append({**errors, **counts})
    return FitErrors.of(rows)
