"""Fitted models on disk: plain data and the formats of frameworks, never code.

folder/result.json         the result of the fit
folder/predictors/0/...    a trained model, in the format of its framework
folder/baseline/0/...      a model of the baseline
folder/plain/0/...         the plain model
folder/checksums.json      the SHA-256 of every other file
"""

import hashlib
import json
import logging
import math
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lodl._arrays import printable
from lodl._digest import problem_parameters
from lodl._json import from_json, write_json, write_text
from lodl._typing import FilePath
from lodl.errors import InvalidInputError
from lodl.problems import Problem
from lodl.problems._problem import describe
from lodl.report import FitResult
from lodl.training import Predictor, load_predictor
from lodl.training._learner import unusable

_VERSION = 3
_RESULT, _CHECKSUMS = "result.json", "checksums.json"
_MODELS = ("predictors", "baseline", "plain")
# Parameters that a folder restores. What acts on the machine is not restored, whatever it holds.
_PARAMETERS = {
    "n_samples": int | None,
    "n_rounds": int | None,
    "max_calls": int | None,
    "max_seconds": float | None,
    "ensemble": bool,
    "random_state": int,
}

_logger = logging.getLogger(__name__)


def write_model(
    folder: Path, result: FitResult, models: Mapping[str, Sequence[Predictor]], *, overwrite: bool
) -> Path:
    """Write a fitted model, all of it or nothing; see `DecisionFocusedRegressor.save`."""
    _check_free(folder, overwrite=overwrite)
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name[:200]}.{uuid.uuid4().hex}.draft")
    replaced = draft.with_suffix(".replaced")
    try:
        for name in _MODELS:
            for i, model in enumerate(models[name]):
                model.save(draft / name / str(i))
        write_text(draft / _RESULT, result.to_json())
        write_json(draft / _CHECKSUMS, {"lodl_model": _VERSION, "files": _digests(draft)})
        if folder.exists():
            folder.replace(replaced)
        return draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def read_model(
    folder: Path, estimator: Any, trusted: Sequence[str]
) -> tuple[FitResult, dict[str, Any], dict[str, list[Predictor]]]:
    """Return the result, parameters, and models that `write_model` wrote; see `load_model`."""
    result, parameters, files = _read(folder)

    def model(place: Path) -> Predictor:
        loaded = load_predictor(place, estimator, trusted=trusted)
        n_features, label_shape = loaded.n_features, tuple(loaded.label_shape)
        if n_features != result.n_features or math.prod(label_shape) != len(result.mean_label):
            raise unusable(
                folder,
                f"a model in it has {n_features} features and labels of shape {label_shape}, "
                f"{_RESULT} says {result.n_features} and {result.label_shape}",
            )
        return loaded

    models = {}
    for name in _MODELS:
        numbers = {parts[1] for parts in (file.split("/") for file in files) if parts[0] == name}
        if not numbers or numbers != set(map(str, range(len(numbers)))):
            raise unusable(folder, f"{name} must be numbered from 0, got {sorted(numbers)}")
        models[name] = [model(folder / name / str(i)) for i in range(len(numbers))]
    return result, parameters, models


def load_result(folder: FilePath) -> FitResult:
    """Return the result of the fit of a saved model, which needs neither problem nor framework."""
    return _read(Path(folder))[0]


def _read(folder: Path) -> tuple[FitResult, dict[str, Any], Mapping[str, str]]:
    """Return result, parameters and checksums, after all files were found to be as saved."""
    files, digests = _checksums(folder), _digests(folder)
    for name in sorted(digests.keys() | files.keys() | {_RESULT}):
        if name not in digests:
            raise unusable(folder, f"{name} is missing")
        if digests[name] != files.get(name):
            raise unusable(folder, f"{name} is damaged, or was not saved with the model")
    try:
        result = FitResult.from_json((folder / _RESULT).read_text(encoding="utf-8"))
        kinds, settings = _PARAMETERS.items(), result.settings
        parameters = {name: from_json(kind, settings.get(name), name) for name, kind in kinds}
    except (OSError, ValueError) as error:
        raise unusable(folder, f"{_RESULT} is damaged ({error})") from error
    return result, parameters, files


def _checksums(folder: Path) -> Mapping[str, str]:
    if not (folder / _CHECKSUMS).is_file():
        raise unusable(folder, f"there is no {_CHECKSUMS} in it")
    try:
        content = json.loads((folder / _CHECKSUMS).read_text(encoding="utf-8"))
        version = content.get("lodl_model") if isinstance(content, dict) else None
        if version != _VERSION:
            reads = f"its format is {version!r}, this package reads {_VERSION}"
            raise ValueError(f"{reads}; use the version of the package that wrote it")
        files: Mapping[str, str] = from_json(Mapping[str, str], content.get("files"))
    except (OSError, ValueError, RecursionError) as error:
        raise unusable(folder, f"{_CHECKSUMS} cannot be read ({error})") from error
    return files


def warn_of_another_problem(problem: Problem, result: FitResult) -> None:
    """Log a warning if a model was fitted for another problem, or one with other parameters."""
    fitted, given = dict(result.problem_parameters), problem_parameters(problem)
    texts = [result.problem, printable(describe(problem))]
    if texts[0] == texts[1]:
        changed = [name for name in sorted(fitted | given) if fitted.get(name) != given.get(name)]
        if not changed:
            return
        for i, has in enumerate((fitted, given)):
            listed = (f"{name}={has[name]}" if name in has else f"other {name}" for name in changed)
            texts[i] += f" with {', '.join(listed)}"
    _logger.warning("The model was fitted for %s and will decide by %s.", *texts)


def _check_free(folder: Path, *, overwrite: bool) -> None:
    if folder.is_symlink():
        got = f"{folder}. Name the folder itself"
        raise InvalidInputError(f"`folder` must not be a symbolic link, got {got}.")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        advice = "Name another one, or pass `overwrite=True`."
        raise InvalidInputError(f"`folder` must not exist yet, got {folder}. {advice}")
    if not (folder / _CHECKSUMS).is_file():
        raise InvalidInputError(f"`folder` must be one of a model to be replaced, got {folder}.")


def _digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file but the checksums, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / _CHECKSUMS
    }
