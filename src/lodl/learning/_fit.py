"""The steps of `fit`: its budget, the search for the best model, and its result."""

import logging
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lodl._digest import digest, problem_parameters
from lodl._json import package_version
from lodl._typing import Array
from lodl.errors import InvalidInputError, OracleError
from lodl.learning._corrections import (
    best_shift,
    can_correct,
    n_corrections,
    shifted_by_loss,
    shifted_to_means,
)
from lodl.learning._curvature import is_right
from lodl.learning._data import Data
from lodl.learning._defaults import Schedule
from lodl.learning._folds import Trainer
from lodl.learning._rounds import Evidence, rounds
from lodl.learning._search import (
    N_EXTRA_LOOKS,
    Contender,
    Index,
    Score,
    Scoreboard,
    average,
    select,
)
from lodl.losses import Family, LearnedLoss
from lodl.oracle import Oracle
from lodl.problems._problem import describe
from lodl.report import BASELINE, ChangedDecision, CoordinateCosts, Failures, FitResult
from lodl.report.page import shortened

_N_CHANGES = 10  # most instances to show whose regret fell, and as many whose regret rose
_N_ERRORS = 3.0  # that a loss must gain on squared error if a linear model is right
_FRAMEWORKS = ("torch", "sklearn", "xgboost", "lightgbm", "catboost")

_logger = logging.getLogger(__name__)


def planned(
    evidence: Evidence, given: Schedule, families: Sequence[Family] | None, *, stops_early: bool
) -> tuple[Schedule, Sequence[Family]]:
    """Return the schedule and the families of a fit, and log what they cost at most.

    If instances share their decisions and `max_calls` cannot pay for a solver call per instance and
    model, the decisions that are known by then compare the models, and the solver compares only the
    selected one with the baseline: `evidence.by_pool` is set.
    """
    situation, n = evidence.situation, len(evidence.instances.y)
    schedule = situation.schedule(given, families)
    if families is None:
        families = situation.families()
        evidence.slopes = any(family.uses_slopes for family in families)
    n_models = len(families) + stops_early
    if evidence.is_corrected:
        by_loss = situation.is_affine or any(map(can_correct, families))
        n_models += n_corrections(n, by_loss=by_loss) + stops_early

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


def search(
    evidence: Evidence,
    trainer: Trainer,
    baseline: Contender,
    schedule: Schedule,
    families: Sequence[Family],
    *,
    ensemble: bool,
    is_late: Callable[[], bool],
) -> tuple[Scoreboard, Contender, Contender, Contender]:
    """Return all contenders, the best one on squared error, the same corrected, and the selected.

    `baseline` was trained on squared error and is not scored yet. No further model is tried once
    `is_late`.
    """
    folds, y, board = trainer.folds, trainer.data.y, Scoreboard(trainer.folds.validation)

    def add(contender: Contender) -> Contender:
        mean = board.mean(board.add(contender))
        _logger.info("%s, round %d: validation regret %.4g", contender.name, contender.round, mean)
        return contender

    def score(contender: Contender, n_points: int = 0) -> Contender:
        return add(evidence.scored(contender, n_points))

    evidence.start(schedule, families[0] if families else None, baseline.y_hat - y)
    baseline = score(baseline, schedule.n_per_round if schedule.n_rounds else 0)
    if trainer.learner.stops_early and not is_late():
        # Early stopping may hurt the decisions of squared error: its better half counts.
        models, y_hat = trainer.train(baseline.loss, n_steps=trainer.learner.max_steps)
        parts = ((baseline.loss, models),)
        unstopped = replace(baseline, name=f"{BASELINE}, not stopped", y_hat=y_hat, parts=parts)
        baseline = min(baseline, score(unstopped), key=board.mean)
    train = trainer.train_if_possible
    found = rounds(evidence, train, families, schedule, leader=baseline, is_late=is_late)
    last = [model for model in map(add, found) if model.round == schedule.n_rounds]
    how: Any = {"y": y, "means": folds.means(y), "ensemble": ensemble, "is_late": is_late}
    is_affine = evidence.situation.is_affine
    losses = [model.loss for model in last if is_affine or can_correct(model.loss.family)]
    judge = losses[0] if losses else None
    if judge is not None and not is_affine:
        how["is_worth"] = _is_worth(judge, folds.validation)
    if is_affine and is_right(baseline.model[0], trainer.data.x, y, folds.masks):
        how["n_errors"] = _N_ERRORS
    selected = select(board, baseline, last, score, **how)
    corrected = baseline
    if evidence.is_corrected and not is_late():
        by = (judge, evidence, trainer, score)
        corrected = min(baseline, _corrected(baseline, *by), key=board.mean)
        best = selected if selected.is_baseline else _corrected(selected, *by)
        selected = min(selected, best, key=board.mean)
        if not is_affine and ensemble and trainer.learner.stops_early and _can_blend(selected):
            # Trees and networks vary with their data, and their average with the baseline less.
            selected = min(selected, score(average([selected, corrected])), key=board.mean)
        selected = min(selected, corrected, key=board.mean)
    if evidence.by_pool:  # known decisions judge too kindly, so the solver has the last word
        evidence.by_pool = False
        baseline, selected = (
            score(replace(model, name=f"{model.name}, by the solver"))
            for model in (baseline, selected)
        )
        selected = min(baseline, selected, key=board.mean)
    return board, baseline, corrected, selected


def _is_worth(loss: LearnedLoss, rows: Index) -> Callable[[Contender, Contender], bool]:
    """Return a test whether a learned loss expects predictions to decide better than others."""

    def is_worth(before: Contender, after: Contender) -> bool:
        losses = [float(loss.value(model.y_hat[rows], rows).mean()) for model in (before, after)]
        return losses[1] < losses[0]

    return is_worth


def _can_blend(contender: Contender) -> bool:
    """Return whether a contender is the model of one loss, whose predictions are not shrunk."""
    return not contender.is_baseline and not contender.shrinkage and len(contender.parts) == 1


def _corrected(
    contender: Contender,
    judge: LearnedLoss | None,
    evidence: Evidence,
    trainer: Trainer,
    score: Score,
) -> Contender:
    """Return a contender with the best simple correction, or as it is if none helps.

    Args:
        contender: The contender.
        judge: A loss that finds the shift of models that were not trained on one, or, if the
            objective is affine, tells whether a shift is worth a call; or None.
        evidence: Calls the solver.
        trainer: Has the instances and their folds.
        score: Scores a contender.
    """
    if contender.shrinkage:
        return contender
    y, folds, seed = trainer.data.y, trainer.folds, evidence.random_state
    if evidence.situation.is_affine:
        moved = shifted_to_means(contender, y, folds)
        is_worth = judge is None or _is_worth(judge, folds.validation)(contender, moved)
        return score(moved) if is_worth else contender
    loss = contender.loss if can_correct(contender.loss.family) else judge
    loss = judge if contender.is_baseline else loss
    if loss is not None:
        moved_by_loss = shifted_by_loss(contender, loss, folds)
        return contender if moved_by_loss is None else score(moved_by_loss)
    shifted = best_shift(contender, y, folds, evidence.regrets, seed=seed)
    return contender if shifted is None else score(shifted)


def result_of(
    evidence: Evidence,
    trainer: Trainer,
    board: Scoreboard,
    models: tuple[Contender, Contender, Contender],
    label_names: Sequence[str] | None,
    parameters: Mapping[str, Any],
) -> FitResult:
    """Return the record of a fit. The solver is called for the decisions that changed most.

    `models` are the baseline, the same corrected, and the selected one.
    """
    baseline, corrected, selected = models
    problem, data, folds = evidence.oracle.problem, trainer.data, trainer.folds
    index, mean_label = board.index, data.y[: folds.n_final].mean(axis=0)
    loss = None if selected.is_baseline else selected.loss.subset(index)
    before, after = (board.regret(model) for model in (baseline, selected))
    failed = [int(np.sum(~np.isfinite(model.regret[index]))) for model in (baseline, selected)]
    changes = _changes(
        evidence, data, board, (baseline, selected), label_names, parameters["max_calls"]
    )
    return FitResult(
        problem=describe(problem),
        problem_parameters=problem_parameters(problem),
        model=_described(parameters["estimator"]),
        unit=problem.unit,
        validation=folds.describe(len(index)),
        trials=board.trials(),
        selected=board.contenders.index(selected),
        shift=_flat(selected.shift),
        shrinkage=selected.shrinkage,
        baseline_shift=_flat(corrected.shift),
        instances=tuple(data.names[i] for i in index),
        data=digest(data.y[index])[:16],
        regret_plain=tuple(before.tolist()) if trainer.is_plain else (),
        regret_baseline=tuple(before.tolist()),
        regret_selected=tuple(after.tolist()),
        loss_selected=() if loss is None else tuple(loss.value(selected.y_hat[index]).tolist()),
        failures=Failures(failed[0], failed[1], len(board.validation) - len(index)),
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
        settings={
            name: _setting(value)
            for name, value in parameters.items()
            if name not in ("oracle", "estimator")
        },
        versions=_versions(),
    )


def _flat(shift: Array | None) -> tuple[float, ...]:
    return () if shift is None else tuple(shift.ravel().tolist())


def _changes(
    evidence: Evidence,
    data: Data,
    board: Scoreboard,
    pair: tuple[Contender, Contender],
    label_names: Sequence[str] | None,
    max_calls: int | None,
) -> tuple[ChangedDecision, ...]:
    """Return the instances that gained most, then those that lost most, within the budget."""
    index, regrets = board.index, np.stack([board.regret(model) for model in pair])
    failed = ~np.isfinite([model.regret[index] for model in pair]).all(axis=0)
    avoided = np.where(failed, 0.0, regrets[0] - regrets[1])
    order = np.argsort(-avoided, kind="stable")
    best = [i for i in order[:_N_CHANGES] if avoided[i] > 0]
    worst = [i for i in order[::-1][:_N_CHANGES] if avoided[i] < 0]
    n_affordable = None if max_calls is None else max(max_calls - evidence.n_calls, 0) // 2
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
