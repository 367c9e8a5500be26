"""The steps of `fit`: its budget, the search for the best model, and its result."""

import logging
import math
import platform
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lodl._arrays import shortened
from lodl._digest import digest, problem_parameters
from lodl._json import package_version
from lodl._progress import duration
from lodl._typing import Array, Index
from lodl.errors import InvalidInputError, OracleError
from lodl.learning import _corrections as corrections
from lodl.learning._folds import Trainer
from lodl.learning._rounds import Evidence, rounds
from lodl.learning._search import (
    N_EXTRA,
    OVER_CONSTANT,
    Contender,
    Scoreboard,
    average,
    is_linear,
    is_right,
    select,
)
from lodl.losses import LearnedLoss
from lodl.losses._fit import MIN_SAMPLES
from lodl.problems import Problem
from lodl.problems._problem import describe
from lodl.report import BASELINE, ChangedDecision, Failures, FitResult

_N_CORRECTED = 2  # contenders that are scored again with a correction
_N_CHANGES = 5  # most instances to show whose regret fell, and as many whose regret rose
_LONG = 60.0  # seconds of solver calls that are announced even if nothing else is logged
_N_ERRORS = 3.0  # that a loss must gain on squared error if a linear model is right
_FEWEST_JUDGED = 20  # validation instances on which the solver can compare two models
_TOO_FEW = (
    "`max_calls`=%d is too few: 5 calls for each of %d instances, and about 30 more, suffice."
)
_OBJECTS = ("oracle", "estimator")  # parameters of the regressor that are no settings
_FRAMEWORKS = ("torch", "sklearn", "xgboost", "lightgbm", "catboost")

_logger = logging.getLogger(__name__)


def plan(evidence: Evidence, trainer: Trainer) -> tuple[Any, ...]:
    """Cut the schedule to the budget. Returns what it costs at most, as arguments of a logger."""
    situation, n, is_varied = evidence.situation, len(trainer.data.y), trainer.learner.stops_early
    n_models = len(evidence.families) + bool(trainer.learner.max_steps) + N_EXTRA
    if _is_corrected(evidence, trainer):
        n_models += _N_CORRECTED + is_varied

    def n_looks(n_rounds: int) -> int:
        if evidence.by_estimate:
            # The selected model, and the baseline unless a round has called at its predictions.
            return 1 + (n_rounds == 0 or bool(trainer.learner.max_steps))
        return n_models + (n_rounds == 0)  # a round looks at the first baseline

    schedule, evidence.by_estimate = evidence.schedule, evidence.knows_enough
    if not evidence.by_estimate:
        try:
            evidence.schedule = schedule.within_budget(n, n_looks)
        except InvalidInputError:  # too few calls for the solver to compare all models
            evidence.by_estimate = True
    if evidence.by_estimate:
        is_shared = evidence.knows_enough
        tight = schedule.within_tight_budget(n, evidence.n_calls, is_shared=is_shared)
        evidence.schedule = tight
        fewest = 1 if all(map(situation.is_pooled, evidence.families)) else MIN_SAMPLES
        if not evidence.knows_enough and (tight.n_samples or 0) < fewest:
            _logger.warning(_TOO_FEW + " Only squared error is trained.", schedule.max_calls, n)
            evidence.families = ()
    per_instance = evidence.schedule.calls_per_instance(n_looks)
    n_calls = min(per_instance * n, schedule.max_calls or per_instance * n)
    limit = schedule.max_calls or n_calls + evidence.n_calls  # what is announced is kept
    evidence.schedule = replace(evidence.schedule, max_calls=limit)
    level, cost = _time_of(n_calls, evidence)
    message = "Up to %d solver calls, %d for each of %d instances, and a few dozen checks: %s."
    if evidence.is_near:
        message += " Each also brings the decisions next to its own."
    return level, message, n_calls, -(-n_calls // n), n, cost


def _time_of(n_calls: int, evidence: Evidence) -> tuple[int, str]:
    """Return the time of solver calls, by that of the first ones, and the level of its log."""
    from joblib import effective_n_jobs  # slow to import

    oracle = evidence.oracle
    if not oracle.n_calls:
        return logging.INFO, "the first answers are in the store already"
    per_call, n_workers = oracle.seconds / oracle.n_calls, effective_n_jobs(oracle.n_jobs or 1)
    seconds = per_call * n_calls / n_workers
    is_vectorised = oracle.problem.is_vectorised and oracle.problem.mixes_instances
    if is_vectorised and evidence.instances.context is None:  # the first calls were single
        return logging.INFO, f"in batches, in less than {duration(seconds)}"
    level = logging.WARNING if seconds > _LONG else logging.INFO
    return level, f"about {1e3 * per_call:.3g} ms each, {duration(seconds)} in all"


def _is_corrected(evidence: Evidence, trainer: Trainer) -> bool:
    """Return whether shifted predictions compete: costs may be uneven, or items differ in mean."""
    return not evidence.situation.is_affine or trainer.data.has_items


class Outcome(NamedTuple):
    """All contenders of a search, the best one on squared error, and the selected one."""

    board: Scoreboard
    baseline: Contender
    corrected: Contender  # the baseline with the best simple correction
    selected: Contender


def search(evidence: Evidence, trainer: Trainer, baseline: Contender, *, ensemble: bool) -> Outcome:
    """Train, score and correct models, and select one. `baseline` is not scored yet."""
    folds, y, schedule = trainer.folds, trainer.data.y, evidence.schedule
    is_affine, is_late = evidence.situation.is_affine, evidence.is_late
    board = Scoreboard(folds.validation, evidence.scored)
    if is_linear(baseline.model[0], trainer.data.x):  # others predict what they have seen
        evidence.in_turn = lambda of: trainer.in_turn(of.model, of.round)
    evidence.start(baseline.y_hat - y)
    baseline = board.score(baseline, schedule.n_per_round if schedule.n_rounds else 0)
    if trainer.learner.max_steps and not is_late():
        # Early stopping may hurt the decisions of squared error: its better half counts.
        models, y_hat = trainer.train(baseline.loss, n_steps=trainer.learner.max_steps)
        parts = ((baseline.loss, models),)
        unstopped = replace(
            baseline, name=f"{BASELINE}, without early stopping", y_hat=y_hat, parts=parts
        )
        baseline = min(baseline, board.score(unstopped), key=board.mean)
    has_right_model = is_affine and is_right(baseline.model[0], trainer.data.x, y, folds.masks)
    if has_right_model and evidence.is_apart and schedule.n_rounds:
        evidence.schedule = replace(schedule, n_rounds=1)
    contenders = list(rounds(evidence, trainer.train_if_possible, board.score, leader=baseline))
    last = [model for model in contenders if model.round == contenders[-1].round]
    losses = (of.loss for of in last if is_affine or of.loss.family.can_be_rounded)
    judge = next(losses, None)
    shift = None
    if judge is not None and not is_affine:
        shift = partial(corrections.shifted_by_loss, loss=judge, folds=folds)
    selected = select(
        board,
        baseline,
        last,
        y=y,
        means=folds.means(y),
        corrected=shift,
        ensemble=ensemble,
        is_late=is_late,
        is_worth=partial(_is_worth, None if is_affine else judge, folds.validation),
        n_errors=_N_ERRORS if has_right_model else 0.0,
    )
    corrected = baseline
    if _is_corrected(evidence, trainer) and not is_late():
        correct = partial(_corrected, judge=judge, evidence=evidence, trainer=trainer, board=board)
        corrected = min(baseline, correct(baseline), key=board.mean)
        if not selected.is_baseline:
            selected = min(selected, correct(selected), key=board.mean)
        can_vary = not is_affine and ensemble and trainer.learner.stops_early
        if can_vary and not (selected.is_baseline or selected.shrinkage or len(selected.parts) > 1):
            # Trees and networks vary with their data, and their average with the baseline less.
            selected = min(selected, board.score(average([selected, corrected])), key=board.mean)
        if selected.shrinkage < 1 or board.is_clear(selected, corrected, OVER_CONSTANT):
            selected = min(selected, corrected, key=board.mean)
    if evidence.by_estimate and not is_late():
        moved = [] if evidence.is_apart else [board.contenders[-1]]
        rivals = sorted([*moved, *last], key=board.mean)
        baseline, selected = _by_the_solver(evidence, board, baseline, selected, rivals)
    return Outcome(board, baseline, corrected, selected)


def _by_the_solver(
    evidence: Evidence,
    board: Scoreboard,
    baseline: Contender,
    selected: Contender,
    rivals: Sequence[Contender],
) -> tuple[Contender, Contender]:
    """Return the baseline and the best model as the solver judges them: estimates flatter.

    It judges the selected model and rivals that are estimated to be clearly better than its best
    so far, on the validation instances for which there are calls left, if these are not few.
    """
    schedule, rows = evidence.schedule, board.validation
    has_baseline = bool(schedule.n_rounds) and baseline is board.contenders[0]
    if schedule.max_calls is not None:
        n_left = (schedule.max_calls - evidence.n_calls) // (2 - has_baseline)
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(n_left, len(rows))).astype(int))]
    if len(rows) < min(_FEWEST_JUDGED, len(board.validation)):
        # Known decisions may select, but a loss of few samples may be wrong everywhere.
        return baseline, selected if evidence.knows_enough else baseline
    evidence.by_estimate, board.validation = False, rows
    best = judged = board.add(evidence.judged(baseline, rows))
    if selected is baseline and evidence.is_apart and rivals:
        selected = rivals[0]  # few decisions near it are known
    if selected is baseline:
        return judged, judged
    for rival in dict.fromkeys((selected, *rivals)):
        is_affordable = evidence.n_calls + len(rows) <= (schedule.max_calls or math.inf)
        if rival is selected or (is_affordable and board.is_clear(best, rival)):
            best = min(best, board.add(evidence.judged(rival, rows)), key=board.mean)
    return judged, best


def _is_worth(judge: LearnedLoss | None, rows: Index, before: Contender, after: Contender) -> bool:
    """Return whether a learned loss, if there is one, expects better decisions than before."""
    if judge is None:
        return True
    losses = [float(judge.value(model.y_hat[rows], rows).mean()) for model in (before, after)]
    return losses[1] < losses[0]


def _corrected(
    contender: Contender,
    judge: LearnedLoss | None,
    evidence: Evidence,
    trainer: Trainer,
    board: Scoreboard,
) -> Contender:
    """Return a contender with the best simple correction, or as it is if none helps.

    `judge` finds the shift of models without a loss, or says if one is worth the solver calls.
    """
    if contender.shrinkage:
        return contender
    y, folds = trainer.data.y, trainer.folds
    has_own = not contender.is_baseline and contender.loss.family.can_be_rounded
    loss = contender.loss if has_own else judge
    if evidence.situation.is_affine:
        shifted = corrections.shifted_to_means(contender, y, folds)
        moved = shifted if _is_worth(judge, folds.validation, contender, shifted) else None
    else:
        moved = None if loss is None else corrections.shifted_by_loss(contender, loss, folds)
    return contender if moved is None else board.score(moved)


def result_of(
    evidence: Evidence, trainer: Trainer, outcome: Outcome, parameters: Mapping[str, Any]
) -> FitResult:
    """Return the record of a fit. The solver is called for the decisions that changed most."""
    board, baseline, corrected, selected = outcome
    problem, data, folds = evidence.oracle.problem, trainer.data, trainer.folds
    index = board.index
    before, after = (tuple(board.regret(model).tolist()) for model in (baseline, selected))
    failed = [int(np.sum(~np.isfinite(model.regret[index]))) for model in (baseline, selected)]
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
        regret_baseline=before,
        regret_selected=after,
        failures=Failures(failed[0], failed[1], len(board.validation) - len(index)),
        changes=_changes(evidence, trainer, outcome, parameters["max_calls"]),
        label_shape=data.label_shape,
        label_names=data.label_names,
        n_features=int(data.x.shape[-1]),
        feature_names=data.feature_names,
        takes_frames=trainer.learner.takes_frames,
        is_by_loss=evidence.is_by_loss,
        has_context=data.context is not None,
        mean_label=_flat(data.y[: folds.n_final].mean(axis=0)),
        n_calls=evidence.n_calls,
        seconds=time.perf_counter() - evidence.started,
        settings={name: _setting(parameters[name]) for name in parameters if name not in _OBJECTS},
        versions=_versions(),
        estimator=_estimator_parameters(parameters["estimator"]),
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=_command(),
    )


def _flat(values: Array | None) -> tuple[float, ...]:
    return () if values is None else tuple(values.ravel().tolist())


def _changes(
    evidence: Evidence, trainer: Trainer, outcome: Outcome, max_calls: int | None
) -> tuple[ChangedDecision, ...]:
    """Return the instances that gained most, then those that lost most, within the budget."""
    data, pair, index = trainer.data, (outcome.baseline, outcome.selected), outcome.board.index
    regrets = np.stack([outcome.board.regret(model) for model in pair])
    failed = ~np.isfinite([model.regret[index] for model in pair]).all(axis=0)
    avoided = np.where(failed, 0.0, regrets[0] - regrets[1])
    order = np.argsort(-avoided, kind="stable")
    best = [i for i in order[:_N_CHANGES] if avoided[i] > 0]
    worst = [i for i in order[::-1][:_N_CHANGES] if avoided[i] < 0]
    n_affordable = None if max_calls is None else max(max_calls - evidence.n_calls, 0) // 2
    if not (rows := [*best, *worst][:n_affordable]):
        return ()
    y_hats = np.concatenate([[model.y_hat[index[i]] for model in pair] for i in rows])
    contexts = evidence.instances.take(np.repeat(index[rows], len(pair))).context
    try:
        zs = evidence.oracle.decide(y_hats, context=contexts)
    except OracleError as error:  # a fit that has come so far is not lost
        _logger.warning("Decisions that changed are not shown: %s", error)
        return ()
    words, names = _in_words(evidence.oracle.problem, zs), data.label_names
    changes = []
    for k, i in enumerate(rows):
        both = slice(2 * k, 2 * k + 2)
        if all(z is not None for z in zs[both]):
            values = zs[both], regrets[:, i].tolist(), names, words[both]
            changes.append(ChangedDecision.of(data.names[index[i]], *values))
    return tuple(changes)


def _in_words(problem: Problem, zs: Sequence[Any]) -> list[str | None]:
    """Return the problem's own description of each decision, or None."""
    try:
        return [None if z is None else problem.describe(z) for z in zs]
    except Exception as error:  # noqa: BLE001 - a user's method may raise anything
        _logger.warning("`describe` raised %s: %s", type(error).__name__, error)
        return [None] * len(zs)


def _setting(value: Any) -> Any:
    """Return a parameter as JSON has it: an infinite limit is none, an object a text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else shortened(str(value))


def _versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of the frameworks that are in use."""
    used = {name: sys.modules[name].__version__ for name in _FRAMEWORKS if name in sys.modules}
    python = platform.python_version()
    return {"lodl": package_version(), "python": python, "numpy": np.__version__, **used}


def _described(estimator: Any) -> str:
    """Return an estimator in a few words: its expression if that is short, else its class."""
    if estimator is None:
        return "linear model"
    text = " ".join(str(estimator).split())
    if text == shortened(text):
        return text
    if hasattr(estimator, "steps"):  # a pipeline
        return _described(estimator.steps[-1][1])
    inner = getattr(estimator, "module", None) or estimator
    is_torch = any(base.__module__.startswith("torch.nn") for base in type(inner).__mro__)
    name = type(inner).__name__
    return f"PyTorch model ({name})" if is_torch else name


def _estimator_parameters(estimator: Any) -> dict[str, str]:
    """Return the parameters of an estimator, defaults included, or its text if it has none."""
    if estimator is None:
        return {}
    values = {"estimator": estimator}
    if hasattr(estimator, "get_params"):
        values = {"class": type(estimator).__name__, **estimator.get_params()}
    return {name: " ".join(str(value).split()) for name, value in values.items()}


def _command() -> str:
    """Return the command line of this process, without its folder."""
    name, *arguments = sys.argv
    if not name or "ipykernel" in sys.modules:
        return "an interactive session"
    return shlex.join([Path(name).name, *arguments])
