"""The steps of `fit`: baseline, rounds on learned losses, selection, final models, result."""

import logging
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lodl._arrays import take_rows
from lodl._digest import digest
from lodl._json import package_version
from lodl._typing import Array
from lodl.errors import InvalidInputError, LodlError, OracleError
from lodl.learning._corrections import best_shift, n_corrections
from lodl.learning._data import Data
from lodl.learning._defaults import Schedule
from lodl.learning._folds import CrossFit, Folds, cross_fit
from lodl.learning._rounds import Evidence, rounds
from lodl.learning._search import N_EXTRA_LOOKS, Contender, Scoreboard, select
from lodl.losses import Family, LearnedLoss, squared_error_loss
from lodl.oracle import Oracle
from lodl.problems._identity import problem_parameters
from lodl.problems._problem import describe
from lodl.report import (
    BASELINE,
    ChangedDecision,
    CoordinateCosts,
    Failures,
    FitResult,
)
from lodl.report._text import shortened
from lodl.training import Learner, Predictor

_N_CHANGES = 10  # most instances to show whose regret fell, and as many whose regret rose
_FRAMEWORKS = ("torch", "sklearn", "xgboost", "lightgbm", "catboost")

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Trainer:
    """Trains the models of one `fit`.

    Attributes:
        learner: Trains models on a loss.
        plain_learner: Fits the user's estimator as the user would, or None if `learner` does.
        data: The instances.
        folds: Their folds.
    """

    learner: Learner
    plain_learner: Learner | None
    data: Data
    folds: Folds
    _squared_error: LearnedLoss = field(init=False)
    _prepared: Any = field(init=False)

    def __post_init__(self) -> None:
        self._squared_error = squared_error_loss(self.data.y)
        self._prepared = self.learner.prepare(self.data.x, self.data.y, self.folds.masks)

    def baseline(self) -> Contender:
        """Return the models on squared error."""
        return self._baseline(BASELINE, self._trained(self._squared_error))

    def unstopped(self) -> Contender:
        """Return the baseline without early stopping, which may hurt its decisions."""
        trained = self._trained(self._squared_error, n_steps=self.learner.max_steps)
        return self._baseline(f"{BASELINE}, not stopped", trained)

    def train(self, loss: LearnedLoss) -> tuple[CrossFit, Array] | None:
        """Return a model per fold with its predictions, or None if the estimator raises.

        The baseline was trained on the same features, so the other losses can do without this one.
        """
        try:
            return self._trained(loss)
        except LodlError:
            raise
        except Exception as error:  # noqa: BLE001 - a user's estimator may raise anything
            _logger.warning(
                "%s is left out, because the estimator could not be trained on it: %s: %s",
                loss.family,
                type(error).__name__,
                error,
            )
            return None

    def plain(self, baseline: Contender) -> Predictor:
        """Return the plain model, trained on all rows that were not given for validation.

        Args:
            baseline: The baseline, whose number of steps counts if training takes steps.
        """
        n, fitted = self.folds.n_final, baseline.model
        x, loss = take_rows(self.data.x, np.arange(n)), self._squared_error.subset(np.arange(n))
        if self.plain_learner is not None:
            try:
                return self.plain_learner.train(x, loss)[0]
            except Exception as error:  # noqa: BLE001 - a user's estimator may raise anything
                name = type(error).__name__
                _logger.info("The estimator's own `fit` raised %s: %s", name, error)
        return self.learner.train(x, loss, n_steps=fitted.n_steps)[0]

    def final(
        self, contender: Contender, plain: Predictor | None = None, *, ensemble: bool
    ) -> list[Predictor]:
        """Return the models whose mean predicts.

        The models of all folds decide better than one that is trained on all rows for as many
        steps, and exist already. Without an ensemble, or with a single fold, there is one model per
        loss, trained on all rows that were not given for validation.

        Args:
            contender: The losses and the models of all folds.
            plain: The plain model, which stands for a baseline that was trained like it.
            ensemble: Whether to average the models of all folds.
        """
        if contender.is_baseline and plain is not None and self.trains_plainly:
            return [plain]
        if ensemble and len(self.folds.parts) > 1:
            models = [model for _, fitted in contender.parts for model in fitted.models]
            return list(type(models[0]).mean(models))  # linear models average into one
        if self.folds.n_final < len(self.data.y):
            return [fitted.models[0] for _, fitted in contender.parts]
        prepared = self.learner.prepare(self.data.x, self.data.y)
        return [
            self.learner.train(self.data.x, loss, prepared=prepared, n_steps=fitted.n_steps)[0]
            for loss, fitted in contender.parts
        ]

    @property
    def trains_plainly(self) -> bool:
        """Whether squared error is trained as the user would, without validation instances."""
        return self.plain_learner is None and not self.learner.stops_early

    def _trained(self, loss: LearnedLoss, n_steps: int | None = None) -> tuple[CrossFit, Array]:
        how: Any = {"prepared": self._prepared, "n_steps": n_steps}
        return cross_fit(self.learner, self.data.x, loss, self.folds, **how)

    def _baseline(self, name: str, trained: tuple[CrossFit, Array]) -> Contender:
        fitted, y_hat = trained
        return Contender(name, 0, y_hat, ((self._squared_error, fitted),), is_baseline=True)


def planned(
    evidence: Evidence, given: Schedule, families: Sequence[Family] | None, *, stops_early: bool
) -> tuple[Schedule, Sequence[Family]]:
    """Return the schedule and the families of a fit, and log what they cost at most.

    If instances share their decisions and `max_calls` cannot pay for a solver call per instance and
    model, the decisions that are known by then compare the models, and the solver compares only the
    selected one with the baseline.

    Args:
        evidence: The first answers. Its `by_pool` is set.
        given: The user's parameters.
        families: The user's families, or None for defaults.
        stops_early: Whether the baseline is also trained without early stopping.
    """
    situation, n = evidence.situation, len(evidence.instances.y)
    schedule = situation.schedule(given, families)
    if families is None:
        families = situation.families(schedule.n_samples or 0)
    n_models = len(families) + stops_early
    if not situation.is_affine:
        n_models += n_corrections(n)

    def n_looks(n_rounds: int) -> int:
        return n_models + N_EXTRA_LOOKS + (n_rounds == 0)  # a round looks at the first baseline

    try:
        schedule = schedule.within_budget(n, n_looks)
    except InvalidInputError:
        if not situation.is_shared:
            raise
        evidence.by_pool, evidence.slopes = True, True
        schedule = schedule.within_budget(n, lambda _: 2, fewest=1)
    per_instance = schedule.calls_per_instance((lambda _: 2) if evidence.by_pool else n_looks)
    _log_cost(evidence.oracle, n, per_instance)
    return schedule, families


def _log_cost(oracle: Oracle, n_instances: int, per_instance: int) -> None:
    """Log how many solver calls a fit makes at most, and how long they take."""
    n_calls = per_instance * n_instances
    cost = "the first answers are in the store already"
    if oracle.n_calls:
        from joblib import effective_n_jobs  # slow to import

        per_call = oracle.seconds / oracle.n_calls
        total = per_call * n_calls / effective_n_jobs(1 if oracle.n_jobs is None else oracle.n_jobs)
        cost = f"about {1e3 * per_call:.3g} ms each, {total:.3g} s in all"
    _logger.info(
        "Up to %d solver calls, %d for each of %d instances: %s.",
        n_calls,
        per_instance,
        n_instances,
        cost,
    )


@dataclass(frozen=True, eq=False)
class Selection:
    """The outcome of a search.

    Attributes:
        trials: All contenders.
        selected: The selected one of them.
        compared: The board on which the solver compares the following two.
        final: The selected contender.
        baseline: The best contender on squared error.
        corrected: The baseline with the best simple correction, or the baseline.
    """

    trials: Scoreboard
    selected: Contender
    compared: Scoreboard
    final: Contender
    baseline: Contender
    corrected: Contender


def search(
    evidence: Evidence,
    trainer: Trainer,
    baseline: Contender,
    families: Sequence[Family],
    schedule: Schedule,
    *,
    ensemble: bool,
    is_late: Callable[[], bool],
) -> Selection:
    """Train on all losses and select the model whose validation decisions are best.

    Args:
        evidence: The first answers, to which the search adds.
        trainer: Trains the models.
        baseline: The models on squared error, which are not scored yet.
        families: The families to try.
        schedule: Samples and rounds.
        ensemble: Whether to average models.
        is_late: Whether time is up, so that no further model is tried.
    """
    folds, y = trainer.folds, trainer.data.y
    board = Scoreboard(folds.validation)

    def score(contender: Contender, n_points: int = 0) -> Contender:
        return board.add(evidence.scored(contender, n_points))

    evidence.start(schedule)
    baseline = score(baseline, schedule.n_per_round if schedule.n_rounds else 0)
    if trainer.learner.stops_early and not is_late():
        baseline = min(baseline, score(trainer.unstopped()), key=board.mean)
    how: Any = {"is_late": is_late}
    contenders = rounds(evidence, trainer.train, families, schedule, leader=baseline, **how)
    last = [model for model in map(board.add, contenders) if model.round == schedule.n_rounds]
    how |= {"y": y, "means": folds.means(y), "ensemble": ensemble}
    selected = select(board, baseline, last, score, **how)
    corrected = baseline
    if not evidence.situation.is_affine and not is_late():
        corrected = _corrected(baseline, evidence, trainer, score)
        best = selected if selected.is_baseline else _corrected(selected, evidence, trainer, score)
        selected = min(selected, corrected, best, key=board.mean)
    if not evidence.by_pool:
        return Selection(board, selected, board, selected, baseline, corrected)
    # The decisions that are known judge too kindly, so the solver has the last word.
    evidence.by_pool = False
    compared = Scoreboard(folds.validation)
    before, final = (compared.add(evidence.scored(model)) for model in (baseline, selected))
    if compared.mean(final) >= compared.mean(before):
        selected, final = baseline, before
    return Selection(board, selected, compared, final, before, before)


def _corrected(
    contender: Contender,
    evidence: Evidence,
    trainer: Trainer,
    score: Callable[[Contender], Contender],
) -> Contender:
    """Return a contender with the best simple correction, or as it is if none helps."""
    if contender.shrinkage:
        return contender
    y, folds, seed = trainer.data.y, trainer.folds, evidence.random_state
    shifted = best_shift(contender, y, folds, evidence.regrets, seed=seed)
    return contender if shifted is None else score(shifted)


def result_of(
    evidence: Evidence,
    selection: Selection,
    trainer: Trainer,
    *,
    estimator: Any,
    settings: Mapping[str, Any],
    label_names: Sequence[str] | None,
) -> FitResult:
    """Return the record of a fit. The solver is called for decisions that changed most.

    Args:
        evidence: All answers.
        selection: The contenders.
        trainer: Has the instances and their folds.
        estimator: The user's estimator.
        settings: The parameters of the regressor.
        label_names: Names of the numbers in a label, or None.
    """
    problem, board = evidence.oracle.problem, selection.compared
    data, folds, baseline, final = trainer.data, trainer.folds, selection.baseline, selection.final
    index, mean_label = board.index, data.y[: folds.n_final].mean(axis=0)
    loss = None if final.is_baseline else final.loss.subset(index)
    regret_baseline = tuple(board.regret(baseline).tolist())
    changes = _changes(evidence, selection, data, label_names, settings["max_calls"])
    return FitResult(
        problem=describe(problem),
        problem_parameters=problem_parameters(problem),
        model=_described(estimator),
        unit=problem.unit,
        validation=folds.describe(len(index)),
        trials=selection.trials.trials(),
        selected=selection.trials.contenders.index(selection.selected),
        shift=_flat(final.shift),
        shrinkage=final.shrinkage,
        baseline_shift=_flat(selection.corrected.shift),
        instances=tuple(data.names[i] for i in index),
        data=digest(data.y[index])[:16],
        regret_plain=regret_baseline if trainer.trains_plainly else (),
        regret_baseline=regret_baseline,
        regret_selected=tuple(board.regret(final).tolist()),
        loss_selected=() if loss is None else tuple(loss.value(final.y_hat[index]).tolist()),
        failures=Failures(
            int(np.sum(~np.isfinite(baseline.regret[index]))),
            int(np.sum(~np.isfinite(final.regret[index]))),
            len(board.validation) - len(index),
        ),
        changes=changes,
        coordinates=None if loss is None else _coordinates(loss, label_names),
        label_shape=data.label_shape,
        label_names=None if label_names is None else tuple(label_names),
        n_features=int(data.x.shape[-1]),
        feature_names=data.feature_names,
        takes_frames=trainer.learner.takes_frames,
        has_context=data.context is not None,
        mean_label=tuple(mean_label.ravel().tolist()),
        n_calls=evidence.n_calls,
        seconds=time.perf_counter() - evidence.started,
        settings={name: _setting(value) for name, value in settings.items()},
        versions=_versions(),
    )


def _flat(shift: Array | None) -> tuple[float, ...]:
    return () if shift is None else tuple(shift.ravel().tolist())


def _changes(
    evidence: Evidence,
    selection: Selection,
    data: Data,
    label_names: Sequence[str] | None,
    max_calls: int | None,
) -> tuple[ChangedDecision, ...]:
    """Return the instances that gained most, then those that lost most, within the budget."""
    board, pair = selection.compared, (selection.baseline, selection.final)
    index = board.index
    regrets = np.stack([board.regret(model) for model in pair])
    failed = ~np.isfinite([model.regret[index] for model in pair]).all(axis=0)
    avoided = np.where(failed, 0.0, regrets[0] - regrets[1])
    order = np.argsort(-avoided, kind="stable")
    best = [i for i in order[:_N_CHANGES] if avoided[i] > 0]
    worst = [i for i in order[::-1][:_N_CHANGES] if avoided[i] < 0]
    n_affordable = len(order) if max_calls is None else max(max_calls - evidence.n_calls, 0) // 2
    rows = [*best, *worst][:n_affordable]
    if not rows:
        return ()
    y_hats = np.stack([model.y_hat[index[rows]] for model in pair], axis=1)
    context = data.context
    contexts = None if context is None else [context[index[i]] for i in rows for _ in pair]
    try:
        zs = evidence.oracle.decide(y_hats.reshape(-1, *data.y.shape[1:]), context=contexts)
    except OracleError as error:  # a fit that has come so far is not lost
        _logger.warning("Decisions that changed are not shown: %s", error)
        return ()
    return tuple(
        ChangedDecision.of(
            data.names[index[i]], (before, after), (regrets[0, i], regrets[1, i]), label_names
        )
        for i, before, after in zip(rows, zs[::2], zs[1::2], strict=True)
        if before is not None and after is not None
    )


def _coordinates(loss: LearnedLoss, label_names: Sequence[str] | None) -> CoordinateCosts:
    """Return the mean loss of an error of one standard deviation in one coordinate alone."""
    labels = loss.y.reshape(loss.n_instances, -1)
    over, under = np.zeros(loss.dim), np.zeros(loss.dim)
    for costs, sign in ((over, 1.0), (under, -1.0)):
        for j, deviation in enumerate(labels.std(axis=0)):
            y_hat = labels.copy()
            y_hat[:, j] += sign * deviation
            costs[j] = loss.value(y_hat.reshape(loss.y.shape)).mean()
    return CoordinateCosts.of(over, under, loss.label_shape, label_names)


def _setting(value: Any) -> Any:
    """Return a parameter as JSON has it: an infinite limit is none, an object a text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return value if is_plain else shortened(str(value))


def _versions() -> dict[str, str]:
    """Return the versions of this package and of the frameworks that are in use."""
    used = {name: sys.modules[name].__version__ for name in _FRAMEWORKS if name in sys.modules}
    return {"lodl": package_version(), "numpy": np.__version__, **used}


def _described(estimator: Any) -> str:
    """Return an estimator as text: its expression if it is short, else the names of its classes."""
    if estimator is None:
        return "linear model"
    text = " ".join(str(estimator).split())
    if text == shortened(text):
        return text
    inner = getattr(estimator, "module", None) or getattr(estimator, "estimator", None)
    name = type(estimator).__name__
    return name if inner is None else f"{name} of {type(inner).__name__}"
