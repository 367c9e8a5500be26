"""What a `fit` leaves to be shown: held-out decisions, and what the loss thinks of errors."""

import sys
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from lodl._digest import digest
from lodl._json import package_version
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.learning._candidates import TWO_STAGE
from lodl.learning._fitted import Fitted
from lodl.learning._held_out import HeldOut
from lodl.losses import LearnedLoss
from lodl.oracle import Oracle
from lodl.problems._identity import problem_parameters
from lodl.problems._problem import describe
from lodl.report import BASELINE, ChangedDecision, CoordinateCosts, Failures, FitResult, Trial

_N_CHANGES = 10  # of the best and of the worst
_LONGEST = 80  # characters of a setting
_FRAMEWORKS = ("torch", "sklearn", "xgboost", "lightgbm", "catboost")


def record_of(model: Fitted) -> FitResult:
    """Return what a report shows of a fitted model.

    The solver is called again for the instances whose decisions changed most, at most twenty.
    """
    held_out, problem = model.held_out_, model.problem
    if held_out.y is None or held_out.y_hat is None or held_out.y_hat_two_stage is None:
        raise InvalidInputError("A model that was loaded keeps no held-out predictions.")
    names = model.label_names_
    is_learned = not model.chosen_.startswith(TWO_STAGE)
    loss = model.loss_.subset(held_out.index) if is_learned else None
    y_hats = np.stack([held_out.y_hat_two_stage, held_out.y_hat], axis=1)
    failures = held_out.failures
    features = getattr(model, "feature_names_in_", None)
    return FitResult(
        problem=describe(problem),
        problem_parameters=problem_parameters(problem),
        model=_in_words(model.estimator),
        unit=problem.unit,
        validation=model.judged_by_,
        trials=tuple(
            Trial(row.name.replace(TWO_STAGE, BASELINE), *astuple(row)[1:])
            for row in model.history_
        ),
        selected=max(i for i, row in enumerate(model.history_) if row.name == model.chosen_),
        shrinkage=1 - model.kept_,
        data=digest(held_out.y)[:16],
        instances=held_out.names,
        regret_baseline=tuple(held_out.two_stage.tolist()),
        regret_selected=tuple(held_out.chosen.tolist()),
        failures=Failures(failures.two_stage, failures.chosen, failures.left_out),
        loss_selected=() if loss is None else tuple(loss.value(held_out.y_hat).tolist()),
        changes=_changes(model._calls, held_out, y_hats, names),
        coordinates=None if loss is None else _coordinates(loss, names),
        label_shape=tuple(model.label_shape_),
        label_names=names,
        n_features=model.n_features_in_,
        feature_names=None if features is None else tuple(features),
        has_context=model.has_context_,
        mean_label=tuple(np.ravel(model.mean_).tolist()),
        n_calls=model.n_oracle_calls_,
        seconds=model.seconds_,
        settings=_settings(model),
        versions=_versions(),
    )


def _changes(
    oracle: Oracle,
    held_out: HeldOut,
    y_hats: Array,
    label_names: Sequence[str] | None,
) -> tuple[ChangedDecision, ...]:
    """Return the instances that gained most, then those that lost most.

    Args:
        oracle: Calls the solver. Where it skips a call that fails, the instance is left out.
        held_out: Regrets of both models.
        y_hats: Predictions of both models, shape (n, 2, *label_shape).
        label_names: Names of the numbers in a label, or None.
    """
    failed = held_out.failed_two_stage | held_out.failed
    avoided = np.where(failed, 0.0, held_out.two_stage - held_out.chosen)
    order = np.argsort(-avoided, kind="stable")
    best = [i for i in order[:_N_CHANGES] if avoided[i] > 0]
    worst = [i for i in order[::-1][:_N_CHANGES] if avoided[i] < 0]
    rows = np.array([*best, *worst], dtype=np.intp)
    if not len(rows):
        return ()
    context = held_out.context
    contexts = None if context is None else [context[i] for i in rows for _ in range(2)]
    decisions = oracle.decide(y_hats[rows].reshape(-1, *y_hats.shape[2:]), context=contexts)
    changes = []
    for i, before, after in zip(rows, decisions[::2], decisions[1::2], strict=True):
        if before is not None and after is not None:
            changes.append(
                ChangedDecision.of(
                    held_out.names[i],
                    (before, after),
                    (held_out.two_stage[i], held_out.chosen[i]),
                    label_names,
                )
            )
    return tuple(changes)


def _coordinates(loss: LearnedLoss, label_names: Sequence[str] | None) -> CoordinateCosts:
    """Return the mean loss of an error of one standard deviation in one coordinate alone."""
    labels = loss.y.reshape(loss.n_instances, -1)
    deviation = labels.std(axis=0)
    over, under = np.zeros(loss.dim), np.zeros(loss.dim)
    for costs, sign in ((over, 1.0), (under, -1.0)):
        for j in range(loss.dim):
            y_hat = labels.copy()
            y_hat[:, j] += sign * deviation[j]
            costs[j] = loss.value(y_hat.reshape(loss.y.shape)).mean()
    return CoordinateCosts.of(over, under, loss.label_shape, label_names)


def _settings(model: Fitted) -> dict[str, str]:
    settings = model.get_params(deep=False)
    return {
        name: "default" if value is None else _shortened(str(value))
        for name, value in settings.items()
        if name not in ("oracle", "estimator")
    }


def _versions() -> dict[str, str]:
    """Return the versions of this package and of the frameworks that are in use."""
    used = {name: sys.modules[name].__version__ for name in _FRAMEWORKS if name in sys.modules}
    return {"lodl": package_version(), "numpy": np.__version__, **used}


def _in_words(estimator: Any) -> str:
    """Return what predicts: an expression if it is short, else the names of its classes."""
    if estimator is None:
        return "linear model"
    text = " ".join(str(estimator).split())
    if len(text) <= _LONGEST:
        return text
    inner = getattr(estimator, "module", None) or getattr(estimator, "estimator", None)
    name = type(estimator).__name__
    return name if inner is None else f"{name} of {type(inner).__name__}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
