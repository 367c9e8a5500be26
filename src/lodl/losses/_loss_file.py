"""Learned losses on disk: saved by `LearnedLoss.save`, opened by `load_loss`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from lodl import _validation as validation
from lodl.errors import InvalidInputError, LossFileError
from lodl.losses._convex_directed_quadratic import ConvexDirectedQuadratic
from lodl.losses._directed_quadratic import DirectedQuadratic
from lodl.losses._directed_weighted_mse import DirectedWeightedMSE
from lodl.losses._family import Family
from lodl.losses._fit_errors import FitErrors
from lodl.losses._learned_loss import LearnedLoss
from lodl.losses._neural import NeuralLoss
from lodl.losses._quadratic import Quadratic
from lodl.losses._row_file import open_rows, write_rows
from lodl.losses._rows import Rows
from lodl.losses._weighted_mse import WeightedMSE

# A file names its family; only these are ever made of it.
FAMILIES: dict[str, type[Family]] = {
    family.__name__: family
    for family in (
        WeightedMSE,
        DirectedWeightedMSE,
        Quadratic,
        DirectedQuadratic,
        ConvexDirectedQuadratic,
        NeuralLoss,
    )
}
_COUNTS = {"n_fitted": np.int64, "n_held_out": np.int64, "status": np.int8}
_ERRORS = {field.name: np.dtype(_COUNTS.get(field.name, np.float64)) for field in fields(FitErrors)}


def can_be_saved(family: Family) -> bool:
    """Tells whether a learned loss of this family has a file: a reader must know its formula."""
    return FAMILIES.get(type(family).__name__) is type(family)


def save_loss(loss: LearnedLoss, path: str | PathLike[str]) -> None:
    """Writes a learned loss in one step: the file is the old one or the new one, never half.

    Raises:
        InvalidInputError: The family is not one of the package, or the provenance no plain JSON.
    """
    target = Path(path)
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise InvalidInputError(f"`path` must be a file in a folder that exists, got {target}.")
    name = type(loss.family).__name__
    if not can_be_saved(loss.family):
        raise InvalidInputError(
            f"`family` must be one of {', '.join(FAMILIES)} for a loss to be saved, got {name}."
        )
    arrays: dict[str, Rows] = {"y": loss.y}
    arrays |= {f"phi.{key}": rows for key, rows in loss.phi.items()}
    for key, rows in loss.errors.arrays().items():
        arrays[f"errors.{key}"] = np.asarray(rows, dtype=_ERRORS[key])
    metadata = {
        "family": name,
        "settings": _to_json("family", asdict(cast("Any", loss.family))),
        "label_shape": _to_json("label_shape", loss.label_shape),
        "provenance": _to_json("provenance", dict(loss.provenance)),
        "package_version": version("lodl"),
    }
    write_rows(target, arrays, metadata)


def load_loss(path: str | PathLike[str], y: npt.ArrayLike | None = None) -> LearnedLoss:
    """Opens a learned loss; its rows are read and checked when they are asked for.

    The file stays mapped: replace it as you like, but do not write into it.

    Args:
        path: A file written by `LearnedLoss.save`.
        y: Labels the loss must have been learned for; not checked if None.

    Raises:
        LossFileError: The file is damaged, of another version, or of other labels; also later,
            when damaged rows are read.
    """
    if y is not None:
        validation.check_labels(y)  # a bad argument is not the file's fault
    if Path(path).is_dir():
        raise LossFileError(
            f"{path} is a folder, not a loss file. A store of samples? `lodl.oracle.open_samples`."
        )
    metadata, arrays = open_rows(Path(path))
    try:
        loss = _assemble(metadata, arrays)
        if y is not None:
            loss.check_labels(y)
    except InvalidInputError as error:
        raise LossFileError(f"The loss file {str(path)!r} cannot be used: {error}") from error
    return loss


def _to_json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`{name}` must be plain JSON to be saved: {error}.") from error


def _from_json(metadata: Mapping[str, str], key: str, kind: type[Any]) -> Any:
    try:
        value = json.loads(metadata[key])
    except (KeyError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"its metadata {key!r} is missing or no JSON.") from error
    if not isinstance(value, kind):
        raise InvalidInputError(f"its metadata {key!r} must be a JSON {kind.__name__}.")
    return value


def _assemble(metadata: Mapping[str, str], arrays: Mapping[str, Rows]) -> LearnedLoss:
    phi = {key.removeprefix("phi."): rows for key, rows in arrays.items() if key[:4] == "phi."}
    expected = {"y", *(f"phi.{name}" for name in phi), *(f"errors.{name}" for name in _ERRORS)}
    if set(arrays) != expected:
        raise InvalidInputError(f"its arrays are {sorted(arrays)}, not {sorted(expected)}.")
    errors = {name: arrays[f"errors.{name}"] for name in _ERRORS}
    for name, rows in errors.items():
        if rows.dtype != _ERRORS[name]:
            raise InvalidInputError(f"`errors.{name}` is {rows.dtype}, not {_ERRORS[name]}.")
    provenance = _from_json(metadata, "provenance", dict)
    loss = LearnedLoss(_family(metadata), arrays["y"], phi, FitErrors(**errors), provenance)
    label_shape = _from_json(metadata, "label_shape", list)
    if label_shape != list(loss.label_shape):
        raise InvalidInputError(f"`y` has labels of shape {loss.label_shape}, not {label_shape}.")
    return loss


def _family(metadata: Mapping[str, str]) -> Family:
    name = metadata.get("family", "")
    if name not in FAMILIES:
        raise InvalidInputError(f"its family is {name!r}, known are {', '.join(FAMILIES)}.")
    settings = _from_json(metadata, "settings", dict)
    try:
        return FAMILIES[name](**settings)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"its settings of {name} are not valid: {error}") from error
