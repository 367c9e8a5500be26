"""Selection of the model with the best validation decisions: pure functions over contenders."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lodl._typing import Array, Index, Masks
from lodl.errors import OracleError
from lodl.losses import LearnedLoss
from lodl.report import Estimate, Trial
from lodl.training import Predictor
from lodl.training._features import Scaling

_SHRINKAGES = (0.5, 0.75, 1.0)  # shares of the way to the mean label, tried in this order
N_EXTRA = 2 + len(_SHRINKAGES)  # contenders that `select` scores at most; two are averages
OVER_CONSTANT = 3.0  # standard errors that a loss must gain if features hardly predict labels
_MOST_PRODUCTS = 500  # quadratic terms; if there are more, only powers are added
_N_TRIED = 20  # pairs of instances that show whether a model is linear
_LINEAR = -1.0  # standard errors below which a linear model is right
_PENALTY = 1.0  # ridge penalty on standardised terms

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class Contender:
    """A trained model with its predictions and the regret of its decisions."""

    name: str  # the loss it was trained on, or the models it averages
    round: int  # rounds of points at predictions that its loss had learned from
    y_hat: Array  # predictions, shape (n, *label_shape)
    parts: tuple[tuple[LearnedLoss, Any], ...] = ()  # losses and models that are averaged
    regret: Array = field(default_factory=lambda: np.empty(0))  # NaN if the solver failed
    is_baseline: bool = False  # whether all of its models were trained on squared error
    shift: Array | None = None  # added to the predictions of its models
    shrinkage: float = 0.0  # share of the way from the predictions to the mean label
    n_calls: int = 0  # so far
    seconds: float = 0.0  # so far

    @property
    def is_corrected(self) -> bool:
        """Whether predictions are shifted or shrunk."""
        return self.shift is not None or self.shrinkage > 0

    @property
    def loss(self) -> LearnedLoss:
        return self.parts[0][0]

    @property
    def model(self) -> Any:
        return self.parts[0][1]


@dataclass(eq=False)
class Scoreboard:
    """Contenders compared on the same validation instances.

    A failed decision counts as the worst of the first contender, so that no model wins because the
    solver failed on its hard instances. Instances on which every model failed are left out.
    """

    validation: Index  # positions of the validation instances
    scored: Callable[..., Contender] = lambda contender: contender  # returns it with its regrets
    contenders: list[Contender] = field(default_factory=list)

    def score(self, contender: Contender, *how: Any) -> Contender:
        """Compute the regrets of a contender, add it, log its mean regret, and return it."""
        added = self.add(self.scored(contender, *how))
        mean = self.mean(added)
        _logger.info("%s, round %d: validation regret %.4g", added.name, added.round, mean)
        return added

    def add(self, contender: Contender) -> Contender:
        """Add a contender whose regrets are known, and return it."""
        if not self.contenders and not np.isfinite(contender.regret[self.validation]).any():
            raise OracleError(
                "The solver failed at the model's predictions for every validation instance "
                f"({len(self.validation)} of them), so that models cannot be compared. The answers "
                "so far are in the store, if there is one."
            )
        self.contenders.append(contender)
        return contender

    @property
    def index(self) -> Index:
        """Positions of the instances that contenders are compared on."""
        regrets = np.stack([contender.regret[self.validation] for contender in self.contenders])
        return self.validation[np.isfinite(regrets).any(axis=0)]

    def regret(self, contender: Contender) -> Array:
        """Return the regrets of a contender on these instances, all of them finite."""
        first, regret = self.contenders[0].regret[self.validation], contender.regret[self.index]
        worst = first[np.isfinite(first)].max(initial=0.0)
        return np.where(np.isfinite(regret), regret, worst)

    def mean(self, contender: Contender) -> float:
        return float(self.regret(contender).mean())

    def is_clear(self, before: Contender, after: Contender, n_errors: float = 1.0) -> bool:
        """Return whether decisions got better by more than `n_errors` standard errors."""
        gain = Estimate.of(self.regret(before) - self.regret(after))
        return gain.mean > n_errors * gain.standard_error

    def trials(self) -> tuple[Trial, ...]:
        return tuple(
            Trial(model.name, model.round, self.mean(model), model.n_calls, model.seconds)
            for model in self.contenders
        )


def average(contenders: Sequence[Contender]) -> Contender:
    """Return the contender that predicts the mean of several, without its regrets."""
    if len(contenders) == 1:
        return contenders[0]
    losses = [contender.name for contender in contenders if not contender.is_baseline]
    baselines = [contender.name for contender in contenders if contender.is_baseline]
    named = losses if len(contenders) == 2 else [f"{len(losses)} losses"]
    shifts = [contender.shift for contender in contenders if contender.shift is not None]
    return Contender(
        f"average of {' and '.join([*named, *baselines])}",
        max(contender.round for contender in contenders),
        np.mean([contender.y_hat for contender in contenders], axis=0),
        tuple(part for contender in contenders for part in contender.parts),
        shift=np.asarray(sum(shifts)) / len(contenders) if shifts else None,
    )


def shrunk(contender: Contender, shrinkage: float, means: Array) -> Contender:
    """Return a contender whose predictions are moved towards mean labels, without its regrets."""
    name = f"{contender.name}, {shrinkage:.0%} of the way to the mean"
    y_hat = means + (1 - shrinkage) * (contender.y_hat - means)
    return replace(contender, name=name, y_hat=y_hat, shrinkage=shrinkage)


def predicts(y_hat: Array, y: Array, means: Array) -> bool:
    """Return whether predictions are clearly closer to the labels than the mean labels are."""
    unit = np.where(y.std(axis=0) > 0, y.std(axis=0), 1.0)
    squares = (np.square((values - y) / unit).reshape(len(y), -1) for values in (means, y_hat))
    of_mean, error = (square.sum(axis=1) for square in squares)
    return Estimate.of(of_mean - error).low > 0


def select(
    board: Scoreboard,
    baseline: Contender,
    others: Sequence[Contender],
    *,
    y: Array,
    means: Array,
    corrected: Callable[[Contender], Contender | None] | None = None,
    ensemble: bool = True,
    is_late: Callable[[], bool] = lambda: False,
    is_worth: Callable[[Contender, Contender], bool] = lambda _, __: True,
    n_errors: float = 0.0,
) -> Contender:
    """Return the average of all models, or the best one if it is clearly better.

    Chance decides which of several good models is the best on a few hundred instances, and their
    average is better than most. The baseline joins if the gain over it is not clear, unless that
    decides no better than the baseline, which stays if nothing gains `n_errors` standard errors. If
    it does not clearly predict better than the mean label, most of what validation shows is chance:
    the mean (`corrected`, if costs are uneven) or the baseline is selected unless the best model
    decides better by far. At last, predictions are shrunk while validation regret clearly improves.

    `means` are mean training labels. Nothing is scored once it `is_late`, and shrunk predictions
    only if it `is_worth` the solver calls, given the model before and after.
    """
    best = min([baseline, *others], key=board.mean)
    if ensemble and others and not is_late():
        best = _averaged(board, baseline, sorted(others, key=board.mean))
    if not board.is_clear(baseline, best, n_errors):
        best = baseline
    rows = board.validation
    if not is_late() and not predicts(baseline.y_hat[rows], y[rows], means[rows]):
        constant = shrunk(best, 1.0, means)
        constant = board.score((corrected and corrected(constant)) or constant)
        simple = min(constant, baseline, key=board.mean)
        best = best if board.is_clear(simple, best, OVER_CONSTANT) else simple
        if best is constant:
            return constant
    whole = best
    for shrinkage in _SHRINKAGES:
        moved = shrunk(whole, shrinkage, means)
        moved = best if is_late() or not is_worth(best, moved) else board.score(moved)
        if not board.is_clear(best, moved, max(1.0, n_errors)):
            break
        best = moved
    return best


def _averaged(board: Scoreboard, baseline: Contender, others: Sequence[Contender]) -> Contender:
    """Return the average of contenders, the best first, or one that is clearly better."""
    best, members = min(baseline, others[0], key=board.mean), others
    mean = board.score(average(others)) if len(others) > 1 else others[0]
    if board.is_clear(mean, best):
        members = [best]
    else:
        best = mean
    if baseline in members or board.is_clear(baseline, best):
        return best
    blend = board.score(average([*members, baseline]))
    return blend if board.mean(blend) < board.mean(baseline) else best


# Is a linear model right? ------------------------------------------------------------------------


def is_right(model: Predictor, x: Any, y: Array, masks: Masks) -> bool:
    """Return whether a model is linear in its features, and curved terms would not improve it.

    Then no loss can improve on squared error by much, and most of what validation shows is chance.
    """
    return is_linear(model, x) and z_of_curvature(x, y, masks) < _LINEAR


def is_linear(model: Predictor, x: Any) -> bool:
    """Return whether a model predicts for means of features the means of its predictions."""
    if not isinstance(x, np.ndarray) or not np.isfinite(x).all():
        return False
    first, second = x[:_N_TRIED], x[::-1][:_N_TRIED]
    between, *ends = (model.predict(rows) for rows in ((first + second) / 2, first, second))
    spread = max(float(np.abs(end - between).max()) for end in ends)
    return bool(np.abs(sum(ends) / 2 - between).max() <= 1e-4 * spread)


def z_of_curvature(x: Array, y: Array, masks: Masks) -> float:
    """Return by how many standard errors curved terms lower the held-out squared error.

    Negative if a linear model is right, and zero if the data cannot show it.
    """
    n_items = x.shape[1] if x.ndim == 3 else 1  # one model of all items
    rows, labels = (values.reshape(len(x) * n_items, -1) for values in (x, y))
    scale = labels.std(axis=0)
    labels = labels[:, scale > 0] / scale[scale > 0]
    linear = Scaling.of_features(rows).scaled(rows)
    first, second = np.triu_indices(rows.shape[1])
    if len(first) > _MOST_PRODUCTS:
        first = second = np.arange(rows.shape[1])
    curved = (linear[:, first] * linear[:, second], linear**3)
    terms = [rows, *(np.hstack([rows, more]) for more in curved)]
    saved = np.full((len(curved), len(x)), np.nan)
    for mask in masks:
        if labels.size and mask.any() and not mask.all():
            before, *after = (_squared_errors(of, labels, np.repeat(mask, n_items)) for of in terms)
            saved[:, ~mask] = (before - after).reshape(len(curved), -1, n_items).sum(axis=2)
    gains = [Estimate.of(row[np.isfinite(row)]) for row in saved if np.isfinite(row).any()]
    zs = (gain.mean / gain.standard_error if gain.standard_error else 0.0 for gain in gains)
    return max(zs, default=0.0)


def _squared_errors(terms: Array, labels: Array, in_fold: Masks) -> Array:
    """Return each held-out row's squared error under a ridge regression on the other rows."""
    scaled = Scaling.of_features(terms[in_fold]).scaled(terms)
    rows, mean = scaled[in_fold], labels[in_fold].mean(axis=0)  # the mean of the rows is 0
    gram = rows.T @ rows + _PENALTY * np.eye(rows.shape[1])
    weights = np.linalg.solve(gram, rows.T @ (labels[in_fold] - mean))
    return np.asarray(np.square(scaled[~in_fold] @ weights + mean - labels[~in_fold]).sum(axis=1))
