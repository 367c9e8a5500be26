"""Selection of the model with the best validation decisions: pure functions over contenders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import OracleError
from lodl.losses import LearnedLoss
from lodl.report import Estimate, Trial

Index = npt.NDArray[np.intp]

_SHRINKAGES = (0.5, 0.75, 1.0)  # shares of the way to the mean label, tried in this order
_N_AVERAGES = 2  # averages that a selection may score: with and without the baseline
N_EXTRA_LOOKS = _N_AVERAGES + len(_SHRINKAGES)
"""The most contenders that `select` adds, each with a solver call per instance."""


@dataclass(frozen=True, eq=False, repr=False)
class Contender:
    """A trained model with its predictions and the regret of its decisions.

    Attributes:
        name: The loss it was trained on, or the models it averages.
        round: Rounds of points at predictions that its loss had learned from.
        y_hat: Its predictions, shape (n, *label_shape).
        parts: Losses and models whose predictions are averaged.
        regret: Regret of each decision, NaN if the solver failed, shape (n,).
        is_baseline: Whether all of its models were trained on squared error.
        shift: What is added to the predictions of its models, or None.
        shrinkage: Share of the way from the predictions to the mean label.
        n_calls: Solver calls so far.
        seconds: Seconds so far.
    """

    name: str
    round: int
    y_hat: Array
    parts: tuple[tuple[LearnedLoss, Any], ...] = ()
    regret: Array = field(default_factory=lambda: np.empty(0))
    is_baseline: bool = False
    shift: Array | None = None
    shrinkage: float = 0.0
    n_calls: int = 0
    seconds: float = 0.0

    @property
    def loss(self) -> LearnedLoss:
        """The loss of the first part."""
        return self.parts[0][0]

    @property
    def model(self) -> Any:
        """The model of the first part."""
        return self.parts[0][1]


Score: TypeAlias = Callable[[Contender], Contender]
"""Returns a contender with its regrets, and adds it to the board."""


@dataclass(eq=False)
class Scoreboard:
    """Contenders compared on the same validation instances.

    A failed decision counts as the worst decision of the first contender, so that no model wins
    because the solver failed on its hard instances. Instances on which every model failed are left
    out.

    Attributes:
        validation: Positions of the validation instances.
        contenders: The contenders in the order in which they were scored.
    """

    validation: Index
    contenders: list[Contender] = field(default_factory=list)

    def add(self, contender: Contender) -> Contender:
        """Take a contender into the comparison and return it."""
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
        """Return the mean validation regret of a contender."""
        return float(self.regret(contender).mean())

    def is_clear(self, before: Contender, after: Contender, n_errors: float = 1.0) -> bool:
        """Return whether decisions got better by more than so many standard errors."""
        gain = Estimate.of(self.regret(before) - self.regret(after))
        return gain.mean > n_errors * gain.standard_error

    def trials(self) -> tuple[Trial, ...]:
        """Return a plain row per contender."""
        return tuple(
            Trial(one.name, one.round, self.mean(one), one.n_calls, one.seconds)
            for one in self.contenders
        )


def average(contenders: Sequence[Contender]) -> Contender:
    """Return the contender that predicts the mean of several, without its regrets."""
    if len(contenders) == 1:
        return contenders[0]
    losses = [contender.name for contender in contenders if not contender.is_baseline]
    baselines = [contender.name for contender in contenders if contender.is_baseline]
    named = losses if len(contenders) == 2 else [f"{len(losses)} losses"]
    return Contender(
        f"average of {' and '.join([*named, *baselines])}",
        max(contender.round for contender in contenders),
        np.mean([contender.y_hat for contender in contenders], axis=0),
        tuple(part for contender in contenders for part in contender.parts),
        shift=_mean_shift(contenders),
    )


def _mean_shift(contenders: Sequence[Contender]) -> Array | None:
    """Return the shift of an average, or None if there is none."""
    shifts = [contender.shift for contender in contenders if contender.shift is not None]
    return np.asarray(sum(shifts)) / len(contenders) if shifts else None


def shrunk(contender: Contender, shrinkage: float, means: Array) -> Contender:
    """Return a contender whose predictions are moved towards mean labels, without its regrets."""
    return replace(
        contender,
        name=f"{contender.name}, {shrinkage:.0%} of the way to the mean",
        y_hat=means + (1 - shrinkage) * (contender.y_hat - means),
        shrinkage=shrinkage,
    )


def predicts(y_hat: Array, y: Array, means: Array) -> bool:
    """Return whether predictions are closer to the labels than the mean labels are."""
    deviation = y.std(axis=0)
    unit = np.where(deviation > 0, deviation, 1.0)
    error, of_mean = ((values - y) / unit for values in (y_hat, means))
    return bool(np.square(error).sum() < np.square(of_mean).sum())


def select(
    board: Scoreboard,
    baseline: Contender,
    others: Sequence[Contender],
    score: Score,
    *,
    y: Array,
    means: Array,
    ensemble: bool = True,
    is_late: Callable[[], bool] = lambda: False,
    is_worth: Callable[[Contender, Contender], bool] = lambda _, __: True,
    n_errors: float = 0.0,
) -> Contender:
    """Return the average of all models, or the best one if it is clearly better.

    Chance decides which of several good models is the best on a few hundred instances, and their
    average is better than most of them. The baseline joins the average if the gain over it is not
    clear, unless the two together decide no better than the baseline. If nothing decides better,
    the baseline is selected. If the baseline predicts no better than the mean label, the mean is
    selected unless the baseline or, clearly, the best model decides better. At last, predictions
    are shrunk towards the mean label while validation regret clearly improves.

    Args:
        board: The contenders so far.
        baseline: The model trained on squared error.
        others: The models trained on learned losses.
        score: Scores a contender.
        y: Labels, shape (n, *label_shape).
        means: The mean training label for each instance.
        ensemble: Whether to average models.
        is_late: Whether time is up, so that no further contender is scored.
        is_worth: Whether shrunk predictions, given together with those before, may decide better,
            so that they are scored.
        n_errors: The baseline is selected if nothing is better by so many standard errors.
    """
    best = min([baseline, *others], key=board.mean)
    if ensemble and others and not is_late():
        best = _averaged(board, baseline, sorted(others, key=board.mean), score)
    if not board.is_clear(baseline, best, n_errors):
        best = baseline
    rows = board.validation
    if not is_late() and not predicts(baseline.y_hat[rows], y[rows], means[rows]):
        constant = score(shrunk(best, 1.0, means))
        is_worse = board.mean(constant) > board.mean(baseline)
        if not is_worse and not board.is_clear(constant, best):
            return constant
    whole = best
    for shrinkage in _SHRINKAGES:
        moved = shrunk(whole, shrinkage, means)
        moved = best if is_late() or not is_worth(best, moved) else score(moved)
        if not board.is_clear(best, moved):
            break
        best = moved
    return best


def _averaged(
    board: Scoreboard, baseline: Contender, others: Sequence[Contender], score: Score
) -> Contender:
    """Return the average of contenders, the best first, or the best one if it is clearly better."""
    best, members = min(baseline, others[0], key=board.mean), others
    mean = score(average(others)) if len(others) > 1 else others[0]
    if board.is_clear(mean, best):
        members = [best]
    else:
        best = mean
    if baseline in members or board.is_clear(baseline, best):
        return best
    blend = score(average([*members, baseline]))
    return blend if board.mean(blend) < board.mean(baseline) else best
