"""Fitted models on disk: plain data and the formats of frameworks, never code.

folder/model.json        what was chosen, what it gained, and a SHA-256 of every file
folder/record.json       what a report shows, if one was made
folder/predictors/0/...  a trained model, in the format of its framework
"""

import hashlib
import json
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lodl._fit_record import FitRecord
from lodl._json_file import from_json, write_json
from lodl._version import package_version
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.learning._fitted import Fitted
from lodl.learning._search import HistoryRow
from lodl.problems._identity import problem_parameters
from lodl.problems._problem import describe

_VERSION = 2
_FILE, RECORD, PREDICTORS = "model.json", "record.json", "predictors"
TWO_STAGE = "two_stage"
_NOT_PLAIN = ("problem", "estimator", "families", "store")


@dataclass(frozen=True)
class SavedModel:
    """The content of `model.json`.

    Attributes:
        lodl_model: The version of the format.
        package: The version of the package that wrote it.
        problem: The problem, in words.
        problem_parameters: Its class and constructor parameters, see `problem_parameters`.
        chosen: See `DecisionFocusedRegressor.chosen_`.
        judged_by: Which instances were held out, in words.
        history: Every model that was tried.
        n_oracle_calls: Oracle calls of `fit`.
        seconds: Time of `fit`.
        mean: The mean label, flattened.
        kept: What is kept of the predictions' distance from it.
        label_shape: The shape of a label.
        label_names: Names of the numbers in a label, or None.
        n_features: Number of features.
        feature_names: Names of the features, or None.
        keeps_frames: Whether frames are handed to the trained models as they are.
        has_context: Whether `fit` had a context.
        held_out: Position, regret of 2-stage, regret of the kept model, and whether each of the two
            decisions failed (0 or 1), of held-out instances.
        n_left_out: Number of further held-out instances, on which every model failed.
        n_predictors: Number of trained models that are averaged.
        n_two_stage: The same for the baseline.
        parameters: Parameters of the regressor that are plain values.
        files: The SHA-256 of every other file, by its path in the folder.
    """

    lodl_model: int
    package: str
    problem: str
    problem_parameters: Mapping[str, str]
    chosen: str
    judged_by: str
    history: tuple[HistoryRow, ...]
    n_oracle_calls: int
    seconds: float
    mean: tuple[float, ...]
    kept: float
    label_shape: tuple[int, ...]
    label_names: tuple[str, ...] | None
    n_features: int
    feature_names: tuple[str, ...] | None
    keeps_frames: bool
    has_context: bool
    held_out: tuple[tuple[float, ...], ...]
    n_left_out: int
    n_predictors: int
    n_two_stage: int
    parameters: Mapping[str, bool | int | float | str | None]
    files: Mapping[str, str]


def write_model(model: Fitted, folder: Path, *, overwrite: bool) -> Path:
    """Write a fitted model, all of it or nothing; see `DecisionFocusedRegressor.save`."""
    _check_free(folder, overwrite=overwrite)
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name[:200]}.{uuid.uuid4().hex}.draft")
    replaced = draft.with_suffix(".replaced")
    try:
        _write_predictors(model.predictors_, draft / PREDICTORS)
        _write_predictors(model.two_stage_.models, draft / TWO_STAGE)
        if model._record is not None:
            write_json(draft / RECORD, model._record)
        content = asdict(_saved(model, _digests(draft)))
        write_json(draft / _FILE, content | {"sha256": _digest_of(content)})
        if folder.exists():
            folder.replace(replaced)
        return draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def _write_predictors(predictors: Sequence[Any], folder: Path) -> None:
    for i, predictor in enumerate(predictors):
        if not hasattr(predictor, "save"):
            raise InvalidInputError(
                f"A {type(predictor).__name__} has no `save(folder)`: the model cannot be saved."
            )
        predictor.save(folder / str(i))


def load_record(folder: str | PathLike[str]) -> FitRecord:
    """Return what a report shows of a model that was saved, without its problem.

    Raises:
        ModelFolderError: The folder is not one of a model, is damaged, or has no record.
    """
    path = Path(folder)
    if RECORD not in read_saved(path).files:
        raise _unusable(
            path, "it has no record of its fit; call `model.record()` before `model.save`"
        )
    record: FitRecord = from_json(FitRecord, _json_of(path / RECORD))
    return record


def _saved(model: Fitted, files: Mapping[str, str]) -> SavedModel:
    held_out = model.held_out_
    failed = (held_out.failed_two_stage.astype(int), held_out.failed.astype(int))
    columns = (held_out.index, held_out.two_stage, held_out.chosen, *failed)
    parameters = model.get_params(deep=False).items()
    names = getattr(model, "feature_names_in_", None)
    return SavedModel(
        lodl_model=_VERSION,
        package=package_version(),
        problem=describe(model.problem),
        problem_parameters=problem_parameters(model.problem),
        chosen=model.chosen_,
        judged_by=model.judged_by_,
        history=tuple(model.history_),
        n_oracle_calls=model.n_oracle_calls_,
        seconds=model.seconds_,
        mean=tuple(np.ravel(model.mean_).tolist()),
        kept=float(model.kept_),
        label_shape=tuple(model.label_shape_),
        label_names=model.label_names_,
        n_features=model.n_features_in_,
        feature_names=None if names is None else tuple(names),
        keeps_frames=model._keeps_frames,
        has_context=model.has_context_,
        held_out=tuple(tuple(column.tolist()) for column in columns),
        n_left_out=held_out.n_left_out,
        n_predictors=len(model.predictors_),
        n_two_stage=len(model.two_stage_.models),
        parameters={name: value for name, value in parameters if name not in _NOT_PLAIN},
        files=files,
    )


def read_saved(folder: Path) -> SavedModel:
    """Return the content of `model.json` after all files were found to be as they were saved."""
    if not (folder / _FILE).is_file():
        raise _unusable(folder, f"there is no {_FILE} in it")
    content = _json_of(folder / _FILE)
    version = content.get("lodl_model") if isinstance(content, dict) else None
    if version != _VERSION:
        raise _unusable(
            folder,
            f"its format is {version!r}, this package reads {_VERSION}; use the version of the "
            "package that wrote it",
        )
    if content.pop("sha256", None) != _digest_of(content):
        raise _unusable(folder, f"{_FILE} is damaged: it does not match its checksum")
    try:
        saved: SavedModel = from_json(SavedModel, content)
    except (TypeError, ValueError) as error:
        raise _unusable(folder, f"{_FILE} is damaged ({error})") from error
    found = _digests(folder)
    for name in sorted(found.keys() | saved.files.keys()):
        if name not in found:
            raise _unusable(folder, f"{name} is missing")
        if found[name] != saved.files.get(name):
            raise _unusable(folder, f"{name} is damaged, or was not saved with the model")
    return saved


def _check_free(folder: Path, *, overwrite: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise InvalidInputError(
            f"`folder` must not exist yet, got {folder}. Name another one, or say `overwrite=True`."
        )
    if not (folder / _FILE).is_file():
        raise InvalidInputError(f"`folder` must be one of a model to be replaced, got {folder}.")


def _digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file but `model.json`, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / _FILE
    }


def _digest_of(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _json_of(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(path.parent, f"{path.name} is damaged ({error})") from error


def _unusable(folder: Path, reason: str) -> ModelFolderError:
    return ModelFolderError(f"The model in {str(folder)!r} cannot be used: {reason}.")
