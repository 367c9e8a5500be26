"""A saved model, read back."""

import logging
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lodl.learning._folds import Average
from lodl.learning._held_out import HeldOut
from lodl.learning._model_folder import (
    PREDICTORS,
    RECORD,
    TWO_STAGE,
    SavedModel,
    check_predictor,
    load_record,
    read_saved,
)
from lodl.learning._regressor import DecisionFocusedRegressor
from lodl.problems import Problem
from lodl.problems._identity import problem_parameters
from lodl.problems._problem import check_problem_type, describe
from lodl.training import Predictor, load_predictor

_logger = logging.getLogger(__name__)


def load_model(
    folder: str | PathLike[str],
    problem: Problem,
    estimator: Any = None,
    *,
    trusted: Sequence[str] = (),
) -> DecisionFocusedRegressor:
    """Return the model that `DecisionFocusedRegressor.save` wrote; it predicts the same bits.

    Args:
        folder: The folder.
        problem: The problem that decides, which a folder does not hold: it is code. One of another
            class or function, or whose constructor parameters have other plain values (numbers,
            texts, arrays), is taken with a warning.
        estimator: The PyTorch module of a model that was one, untrained, for the same reason. Other
            models need none.
        trusted: Types that the file of a scikit-learn model may hold besides those that cannot do
            harm. The error of a model that needs some names them.

    Raises:
        ModelFolderError: The folder is not one of a model, is damaged, is of another version, or
            holds types that are not trusted.
        MissingExtraError: The framework of the model is not installed.
    """
    check_problem_type(problem)
    path = Path(folder)
    saved = read_saved(path)
    _warn_of_another_problem(problem, saved)
    model = DecisionFocusedRegressor(problem, estimator, **saved.parameters.values())

    def predictors(name: str, n: int) -> list[Predictor]:
        folders = [path / name / str(i) for i in range(n)]
        loaded = [load_predictor(one, estimator, trusted=trusted) for one in folders]
        for predictor in loaded:
            check_predictor(path, saved, predictor)
        return loaded

    model.predictors_ = predictors(PREDICTORS, saved.n_predictors)
    _restore(model, saved)
    baselines = predictors(TWO_STAGE, saved.n_two_stage)
    model.two_stage_ = Average(baselines, saved.label_shape, model._expected.features)
    if RECORD in saved.files:
        model._record = load_record(path)
    return model


def _warn_of_another_problem(problem: Problem, saved: SavedModel) -> None:
    """Log a warning if a model was fitted for another problem, or one with other parameters."""
    fitted, given = dict(saved.problem_parameters), problem_parameters(problem)
    texts = [saved.problem, describe(problem)]
    if texts[0] == texts[1]:
        changed = [name for name in sorted(fitted | given) if fitted.get(name) != given.get(name)]
        if not changed:
            return
        texts = [f"{texts[0]} with {_listed(changed, values)}" for values in (fitted, given)]
    _logger.warning("The model was fitted for %s and will decide by %s.", *texts)


def _listed(names: Sequence[str], values: Mapping[str, str]) -> str:
    return ", ".join(
        f"{name}={values[name]}" if name in values else f"other {name}" for name in names
    )


def _restore(model: DecisionFocusedRegressor, saved: SavedModel) -> None:
    index, two_stage, chosen, failed_two_stage, failed = map(np.array, saved.held_out)
    model.held_out_ = HeldOut(
        index,
        two_stage,
        chosen,
        failed_two_stage.astype(bool),
        failed.astype(bool),
        saved.n_left_out,
    )
    model.gain_ = model.held_out_.gain(model.problem.unit)
    model.history_ = list(saved.history)
    model.chosen_, model.judged_by_, model.kept_ = saved.chosen, saved.judged_by, saved.kept
    model.n_oracle_calls_, model.seconds_ = saved.n_oracle_calls, saved.seconds
    model.mean_ = np.array(saved.mean).reshape(saved.label_shape or (1,))
    model.label_shape_, model.label_names_ = saved.label_shape, saved.label_names
    model.n_features_in_, model.has_context_ = saved.n_features, saved.has_context
    if saved.feature_names is not None:
        model.feature_names_in_ = np.array(saved.feature_names, dtype=object)
    model._keeps_frames, model._record = saved.keeps_frames, None
