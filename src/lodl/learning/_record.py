"""What a `fit` leaves to be shown: held-out decisions, and what the loss thinks of errors."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._digest import digest
from lodl._fit_record import (
    ChangedDecision,
    CoordinateCosts,
    FitRecord,
    TriedModel,
)
from lodl._typing import Array, Context, Decision
from lodl._validation import context_of
from lodl._version import package_version
from lodl.errors import InvalidInputError
from lodl.learning._candidates import TWO_STAGE
from lodl.learning._decision_text import in_words
from lodl.learning._fitted import Fitted
from lodl.losses import LearnedLoss
from lodl.problems import Problem
from lodl.problems._problem import describe, projected
from lodl.problems._regret import decide

_N_CHANGES = 10  # of the best and of the worst
_LONGEST = 80  # characters of a setting
_FRAMEWORKS = ("torch", "sklearn", "xgboost", "lightgbm", "catboost")


@dataclass(frozen=True, eq=False)
class _Judged:
    """The held-out instances of which both regrets are known.

    Attributes:
        index: Their positions among all instances.
        names: Their names.
        y: Their labels.
        context: Their contexts, or None.
        two_stage: Predictions of 2-stage.
        kept: Predictions of the kept model.
        regret_two_stage: Regrets of the decisions under the first.
        regret_kept: Regrets of the decisions under the second.
        loss: The learned loss of the kept model, for these instances; None for 2-stage.
    """

    index: npt.NDArray[np.intp]
    names: tuple[str, ...]
    y: Array
    context: Context
    two_stage: Array
    kept: Array
    regret_two_stage: Array
    regret_kept: Array
    loss: LearnedLoss | None

    @classmethod
    def of(cls, model: Fitted) -> "_Judged":
        found = model.held_out_
        if found.y is None or found.y_hat is None or found.y_hat_two_stage is None:
            raise InvalidInputError("A model that was loaded keeps no held-out predictions.")
        known = np.flatnonzero(np.isfinite(found.two_stage) & np.isfinite(found.chosen))
        index = found.index[known]
        return cls(
            index,
            tuple(found.names[i] for i in known.tolist()),
            found.y[known],
            None if found.context is None else [found.context[i] for i in known.tolist()],
            found.y_hat_two_stage[known],
            found.y_hat[known],
            found.two_stage[known],
            found.chosen[known],
            None if model.chosen_.startswith(TWO_STAGE) else model.loss_.subset(index),
        )


def record_of(model: Fitted) -> FitRecord:
    """Return what a report shows of a fitted model.

    The solver is called again for the instances whose decisions changed most, at most twenty.
    """
    held_out = _Judged.of(model)
    loss = held_out.loss
    problem = model.problem
    return FitRecord(
        problem=describe(problem),
        model=_in_words(model.estimator),
        unit=problem.unit,
        chosen=model.chosen_,
        verdict=model.gain_.verdict,
        judged_by=model.judged_by_,
        data=digest(held_out.y)[:16],
        instances=held_out.names,
        regret_two_stage=tuple(held_out.regret_two_stage.tolist()),
        regret_kept=tuple(held_out.regret_kept.tolist()),
        loss_kept=() if loss is None else tuple(loss.value(held_out.kept).tolist()),
        gain_95=(model.gain_.low, model.gain_.high),
        history=tuple(
            TriedModel(row.name, row.round, row.regret, row.n_calls, row.seconds)
            for row in model.history_
        ),
        changes=_changes(problem, held_out, model.label_names_),
        coordinates=None if loss is None else _coordinates(loss, model.label_names_),
        n_calls=model.n_oracle_calls_,
        seconds=model.seconds_,
        settings=_settings(model),
        versions=_versions(),
    )


def _changes(
    problem: Problem, held_out: _Judged, label_names: Sequence[str] | None
) -> tuple[ChangedDecision, ...]:
    """Return the instances that gained most, then those that lost most."""
    avoided = held_out.regret_two_stage - held_out.regret_kept
    order = np.argsort(-avoided, kind="stable")
    best = [i for i in order[:_N_CHANGES] if avoided[i] > 0]
    worst = [i for i in order[::-1][:_N_CHANGES] if avoided[i] < 0]
    changes = []
    for i in (*best, *worst):
        both = np.stack([held_out.two_stage[i], held_out.kept[i]])
        context = context_of(held_out.context, int(i))
        before, after = (_owned(decide(problem, one, context)) for one in projected(problem, both))
        changes.append(
            ChangedDecision(
                held_out.names[i],
                *in_words(before, after, label_names),
                float(held_out.regret_two_stage[i]),
                float(held_out.regret_kept[i]),
            )
        )
    return tuple(changes)


def _owned(z: Decision) -> Decision:
    """Return a copy of an array, which a solver may write over."""
    return z.copy() if isinstance(z, np.ndarray) else z


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
    names = label_names or [_coordinate_name(j, loss.label_shape) for j in range(loss.dim)]
    return CoordinateCosts(tuple(names), tuple(over.tolist()), tuple(under.tolist()))


def _coordinate_name(j: int, label_shape: tuple[int, ...]) -> str:
    place = [int(i) for i in np.unravel_index(j, label_shape)]
    return f"label {place[0] if len(place) == 1 else tuple(place)}"


def _settings(model: Fitted) -> dict[str, str]:
    settings = model.get_params(deep=False)
    return {
        name: "default" if value is None else _shortened(str(value))
        for name, value in settings.items()
        if name not in ("problem", "estimator")
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
