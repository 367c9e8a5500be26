"""Fitted models on disk: plain data and the formats of frameworks, never code.

folder/model.json        what was chosen, what it gained, and a SHA-256 of every file
folder/record.json       what a report shows, if one was made
folder/predictors/0/...  a trained model, in the format of its framework
"""

import hashlib
import json
import math
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lodl._json import from_json, package_version, to_text, write_json, write_text
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.learning._fitted import Fitted
from lodl.learning._search import HistoryRow
from lodl.problems._identity import problem_parameters
from lodl.problems._problem import describe
from lodl.report import FitResult
from lodl.training import Predictor

_VERSION = 2
_FILE, RECORD, PREDICTORS = "model.json", "record.json", "predictors"
TWO_STAGE = "two_stage"


@dataclass(frozen=True)
class Parameters:
    """The parameters of a regressor that its folder keeps.

    These say what is fitted. What acts on the machine (the oracle, `verbose`) is not restored,
    whatever a folder holds.
    """

    n_samples: int | None
    n_rounds: int | None
    n_per_round: int
    ensemble: bool
    shuffle: bool
    max_calls: int | None
    max_seconds: float | None
    judge: str
    random_state: int

    def values(self) -> dict[str, Any]:
        """Return the arguments of `DecisionFocusedRegressor`."""
        return asdict(self)


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
        parameters: Parameters of the regressor.
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
    parameters: Parameters
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        """Check that the values fit each other and the files; raise `ValueError` if not."""
        self._check_predictors()
        self._check_shapes()
        for name in ("mean", "kept", "seconds"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"`{name}` is not finite")
        lengths = {len(column) for column in self.held_out}
        if len(self.held_out) != 5 or len(lengths) != 1 or 0 in lengths:
            raise ValueError("`held_out` must have five columns of one length")
        if not self.history:
            raise ValueError("`history` is empty")

    def _check_predictors(self) -> None:
        for name, folder in (("n_predictors", PREDICTORS), ("n_two_stage", TWO_STAGE)):
            parts = (file.split("/") for file in self.files)
            n, n_there = getattr(self, name), len({x[1] for x in parts if x[0] == folder and x[1:]})
            if n != n_there or n < 1:
                raise ValueError(f"`{name}` is {n}, the folder has {n_there}")

    def _check_shapes(self) -> None:
        n_numbers = len(self.mean)
        if min(self.label_shape, default=1) < 1 or math.prod(self.label_shape) != n_numbers:
            raise ValueError(f"`label_shape` is {self.label_shape} for {n_numbers} numbers")
        if self.n_features < 1:
            raise ValueError(f"`n_features` is {self.n_features}")
        for name, n in (("label_names", n_numbers), ("feature_names", self.n_features)):
            names = getattr(self, name)
            if names is not None and len(names) != n:
                raise ValueError(f"`{name}` has {len(names)} names for {n}")


def write_model(model: Fitted, folder: Path, *, overwrite: bool) -> Path:
    """Write a fitted model, all of it or nothing; see `DecisionFocusedRegressor.save`."""
    _check_free(folder, overwrite=overwrite)
    _check_loadable([*model.predictors_, *model.two_stage_.models])
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name[:200]}.{uuid.uuid4().hex}.draft")
    replaced = draft.with_suffix(".replaced")
    try:
        _write_predictors(model.predictors_, draft / PREDICTORS)
        _write_predictors(model.two_stage_.models, draft / TWO_STAGE)
        if model._record is not None:
            write_text(draft / RECORD, model._record.to_json())
        content = json.loads(to_text(asdict(_saved(model, _digests(draft)))))
        write_json(draft / _FILE, content | {"sha256": _digest_of(content)})
        if folder.exists():
            folder.replace(replaced)
        return draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def _check_loadable(predictors: Sequence[Any]) -> None:
    for kind in {type(predictor) for predictor in predictors}:
        if kind.save is Predictor.save:
            raise InvalidInputError(
                f"A {kind.__name__} cannot be saved: it does not override `save` and `load` of "
                "`lodl.training.Predictor`."
            )


def _write_predictors(predictors: Sequence[Any], folder: Path) -> None:
    for i, predictor in enumerate(predictors):
        predictor.save(folder / str(i))


def load_record(folder: str | PathLike[str]) -> FitResult:
    """Return what a report shows of a model that was saved, without its problem.

    Raises:
        ModelFolderError: The folder is not one of a model, is damaged, or has no record.
    """
    path = Path(folder)
    if RECORD not in read_saved(path).files:
        raise _unusable(
            path, "it has no record of its fit; call `model.record()` before `model.save`"
        )
    try:
        return FitResult.from_json((path / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unusable(path, f"{RECORD} is damaged ({error})") from error


def _saved(model: Fitted, files: Mapping[str, str]) -> SavedModel:
    held_out = model.held_out_
    failed = (held_out.failed_two_stage.astype(int), held_out.failed.astype(int))
    columns = (held_out.index, held_out.two_stage, held_out.chosen, *failed)
    parameters = model.get_params(deep=False)
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
        parameters=Parameters(
            **{field.name: _plain(parameters[field.name]) for field in fields(Parameters)}
        ),
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
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _unusable(folder, f"{_FILE} is damaged ({error})") from error
    found = _digests(folder)
    for name in sorted(found.keys() | saved.files.keys()):
        if name not in found:
            raise _unusable(folder, f"{name} is missing")
        if found[name] != saved.files.get(name):
            raise _unusable(folder, f"{name} is damaged, or was not saved with the model")
    return saved


def check_predictor(folder: Path, saved: SavedModel, predictor: Any) -> None:
    """Raise if a trained model has other features or labels than its folder says."""
    n_features, label_shape = predictor.n_features, tuple(predictor.label_shape)
    if n_features != saved.n_features or math.prod(label_shape) != len(saved.mean):
        raise _unusable(
            folder,
            f"a model in it has {n_features} features and labels of shape {label_shape}, "
            f"{_FILE} says {saved.n_features} and {saved.label_shape}",
        )


def _check_free(folder: Path, *, overwrite: bool) -> None:
    if folder.is_symlink():
        raise InvalidInputError(
            f"`folder` must not be a symbolic link, got {folder}. Name the folder itself."
        )
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise InvalidInputError(
            f"`folder` must not exist yet, got {folder}. Name another one, or pass "
            "`overwrite=True`."
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
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(path.parent, f"{path.name} is damaged ({error})") from error


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a JSON value")


def _plain(value: Any) -> Any:
    """Return a number as JSON has it; an infinite limit is none."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unusable(folder: Path, reason: str) -> ModelFolderError:
    return ModelFolderError(f"The model in {str(folder)!r} cannot be used: {reason}.")
