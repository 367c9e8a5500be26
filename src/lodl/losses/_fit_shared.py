"""From the samples of instances that share their decisions to a learned loss."""

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_predictions
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._decision_family import DecisionFamily
from lodl.losses._family import Family
from lodl.losses._fit import InstanceFit, LossBuilder
from lodl.losses._learned_loss import FitStatus, LearnedLoss
from lodl.losses._standardised import with_typical
from lodl.oracle import DecisionPool, Samples

_FEW = 100  # decisions that are all taken: a path on a small grid
_N_NEAREST = 20  # decisions at each of three points; twice as many were no better
_MOST_NUMBERS = 5e7  # in the slopes of all instances: 400 MB
_ROUNDING = 1e-9  # of the mean regret
_LAST_DIGITS = 1e-12  # of the labels
_LEAST_SHARE = 0.1  # of the mean regret of all instances: what is at stake at any of them


def fit_shared(samples: Samples, family: Family, *, at: npt.ArrayLike | None = None) -> LearnedLoss:
    """Make the loss of every instance from the decisions of all of them.

    `fit` gives an instance the decisions that its own candidates met. Without a context, what the
    solver decided for one instance is possible for every other, and if the objective is affine in
    the label, what it would cost there follows from the answers: no call is made. The loss of an
    instance then knows some hundred decisions instead of twenty. Those that matter most are taken:
    the cheapest under its label and, with `at`, under a prediction. Decisions of held-out instances
    are shared too: they are possible decisions, and tell nothing about a label's features.

    All instances count in one unit: the temperature of `DecisionRanking` is a share of the mean
    regret of all of them, so that instances with much at stake do not drown the others. Averaged,
    models of such losses had 3 % less regret than SPO+ on 14 tasks (results/learner/choices.md),
    models of each instance's own decisions as much as it.

    Args:
        samples: Candidates with their answers, as `Oracle.sample(..., slopes=True)` gives
            them, of a problem whose objective is affine in the label (`check_problem` says
            whether it is).
        family: `DecisionHinges` or `DecisionRanking`; its `max_decisions` does not apply.
        at: A prediction for each instance, shape (n, *label_shape): where a model predicts that is
            to be improved. None takes decisions near the labels only.

    Raises:
        InvalidInputError: The instances have contexts, or the family is not made of decisions.

    Example:
        >>> y = np.random.default_rng(0).normal(size=(20, 4))
        >>> samples = lodl.Oracle(lodl.domains.TopK(1)).sample(y, n_samples=3, slopes=True)
        >>> shared = lodl.losses.fit_shared(samples, lodl.DecisionHinges())
        >>> shared.phi["slope"].shape  # all three decisions that are not the best one
        (20, 3, 4)
    """
    if not isinstance(family, DecisionFamily):
        raise InvalidInputError(
            "`family` must be a decision family such as `lodl.DecisionHinges()` to share "
            f"decisions, got {family!r}."
        )
    made = family
    pool = samples.pool()
    n, dim = pool.y.shape
    y_hat = None if at is None else check_predictions(at, samples.y, name="at").reshape(n, dim)
    own, n_answers = pool.regret, np.isfinite(pool.regret).sum(axis=1)
    means = np.nansum(np.maximum(own, 0.0), axis=1) / np.maximum(n_answers, 1)
    unit = float(means[n_answers > 0].mean()) if n_answers.any() else 0.0
    chosen = pool.nearest(y_hat, _n_nearest(pool)) if unit else [np.empty(0, dtype=np.intp)] * n
    made = made.with_room_for(max(map(len, chosen)))
    scales = _error_scales(pool, y_hat)
    builder = LossBuilder(made, samples.y)
    # The longest first, so that no array has to grow.
    for i in sorted(range(n), key=lambda i: -len(chosen[i])):
        errors = {"mean_regret": means[i], "n_fitted": int(n_answers[i]), "n_held_out": 0}
        if not n_answers[i] or not unit:
            why = FitStatus.NOTHING_TO_DECIDE if n_answers[i] else FitStatus.NO_SAMPLES
            builder.put(i, InstanceFit(scales[i], {**errors, "status": why}))
            continue
        regret = pool.regrets(i, chosen[i])
        regret[regret < _ROUNDING * unit] = 0.0
        slope = pool.gradient[chosen[i]] - pool.gradient[pool.met[i, 0]]
        stake = max(float(means[i]), _LEAST_SHARE * unit)
        phi = made.made_of(regret, slope, stake, scales[i], unit)
        builder.put(i, InstanceFit(scales[i], {**errors, "status": FitStatus.FITTED}, phi, stake))
    return builder.build({**samples.provenance(), "shared": True})


def _n_nearest(pool: DecisionPool) -> int:
    """Return how many decisions to take at each of three points: few enough for the memory."""
    n, dim = pool.y.shape
    wanted = len(pool) if len(pool) <= _FEW else _N_NEAREST
    room = _MOST_NUMBERS / (n * dim) - pool.met.shape[1]
    return max(2, min(wanted, int(room / 3)))  # one of them may be the label's own


def _error_scales(pool: DecisionPool, y_hat: Array | None) -> Array:
    """Return the error that is typical of each instance and coordinate, shape (n, D).

    It is the root mean square of the points that decisions are taken at: the labels' spread, the
    residual, and twice the residual. An instance that no model predicts well has a large one, and
    the squared error of its loss counts less.
    """
    spread = pool.y.std(axis=0)
    spread[spread < _LAST_DIGITS * np.abs(pool.centre).max()] = 0.0  # labels that are all the same
    spread = with_typical(spread)
    if y_hat is None:
        return np.broadcast_to(spread, pool.y.shape)
    residual = y_hat - pool.centre - pool.y
    return np.asarray(np.sqrt((spread**2 + 5 * residual**2) / 3))
