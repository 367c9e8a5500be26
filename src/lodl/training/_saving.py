"""Trained models in folders: `predictor.json` beside files in the framework's own format.

Nothing in such a folder is code, and no pickle is read or written.
"""

import importlib
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from lodl._arrays import check_count
from lodl._json import plain
from lodl.errors import MissingExtraError, ModelFolderError
from lodl.training._learner import Predictor

_FILE = "predictor.json"
_VERSION = 1
_KINDS = (
    "linear",
    "torch",
    "sklearn",
    "xgboost",
    "lightgbm",
    "catboost",
)  # modules beside this one


def write_predictor(folder: str | PathLike[str], kind: str, content: Mapping[str, Any]) -> Path:
    """Write `predictor.json` and return the folder, which is made if need be."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    record = {"kind": kind, "version": _VERSION, **content}
    (path / _FILE).write_text(json.dumps(record, indent=1, default=plain), encoding="utf-8")
    return path


def load_predictor(
    folder: str | PathLike[str], estimator: Any = None, *, trusted: Sequence[str] = ()
) -> Predictor:
    """Return the model that a predictor's `save` wrote to a folder.

    Args:
        folder: The folder.
        estimator: The PyTorch module of a model that was one, untrained: its code is not in the
            folder. Other models need none.
        trusted: Types that the file of a scikit-learn model may hold besides those that cannot do
            harm. The error of a model that needs some names them.

    Raises:
        ModelFolderError: The folder is not one of a model, is damaged, is of another version, or
            holds types that are not trusted.
        MissingExtraError: The model's framework is not installed.
    """
    path = Path(folder)
    if not (path / _FILE).is_file():
        raise unusable(path, f"there is no {_FILE} in it")
    try:
        content = json.loads((path / _FILE).read_text(encoding="utf-8"))
        kind, version = content["kind"], content["version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise unusable(path, f"its {_FILE} is damaged ({error})") from error
    if kind not in _KINDS or version != _VERSION:
        raise unusable(
            path,
            f"it is of kind {kind!r} and version {version!r}; this package reads version "
            f"{_VERSION} of {', '.join(_KINDS)}",
        )
    module = importlib.import_module(f"lodl.training.{kind}")
    try:
        predictor: Predictor = module.load(path, content, estimator, trusted)
    except (MissingExtraError, ModelFolderError):
        raise
    except Exception as error:  # of any framework that reads its files
        raise unusable(path, f"a part of it is missing or damaged ({error})") from error
    return predictor


def shape_in(content: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of a label in `predictor.json`, checked."""
    shape = tuple(check_count("label_shape", size) for size in content["label_shape"])
    if not shape:
        raise ValueError("`label_shape` is empty")
    return shape


def file_in(folder: Path, name: str) -> Path:
    """Return a file of a model. Anything but a regular file is refused: a pipe would hang."""
    path = folder / name
    if not path.is_file():
        raise unusable(folder, f"{name} is missing or damaged: it is not a regular file")
    return path


def unusable(path: object, reason: str) -> ModelFolderError:
    """Return an error that names the folder and says why it cannot be used."""
    return ModelFolderError(f"The model in {str(path)!r} cannot be used: {reason.rstrip('.')}.")
