"""Files of learned losses: written whole or not at all, checked when read, free of code.

A file is in safetensors format. Its metadata contain a SHA-256 of everything else, and name the
family, whose class the reader must have imported.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from lodl._json import draft_of, from_json, package_version
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, family_named

_FORMAT, _VERSION = "lodl loss", "4"
_DIGEST = "sha256"

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]


def write_loss(
    path: Path, family: Family, arrays: Mapping[str, npt.NDArray[Any]], provenance: object
) -> None:
    """Write a loss atomically: a reader sees the old file or the new file, never a part."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidInputError(f"`path` must be a file in a folder that exists, got {path}.")
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "family": type(family).__name__,
        "module": type(family).__module__,
        "settings": _settings(family),
        "provenance": _to_json("provenance", provenance),
        "package_version": package_version(),
    }
    rows = {
        name: np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    metadata[_DIGEST] = _digest(rows, metadata)
    try:
        with draft_of(path) as draft:
            save_file(rows, draft, metadata)
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
    except SafetensorError as error:  # such as a full disk
        raise OSError(f"{path} cannot be written: {error}") from error


def read_loss(path: Path) -> tuple[Family, Arrays, dict[str, Any]]:
    """Return the family, the arrays and the provenance in a file, or raise `ValueError`."""
    if path.exists() and not path.is_file():  # opening a pipe would block
        raise ValueError("it is not a regular file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError, TypeError, ValueError, KeyError) as error:
        raise ValueError(f"it is not an intact safetensors file ({error})") from error
    if metadata.get("format") != _FORMAT:
        raise ValueError("it was not written by `LearnedLoss.save`")
    if metadata.get("version") != _VERSION:
        raise ValueError(
            f"its format version is {metadata.get('version')!r}, and this package reads "
            f"{_VERSION!r}: use the version of the package that wrote it"
        )
    if metadata.pop(_DIGEST, None) != _digest(arrays, metadata):
        raise ValueError("it is damaged: its content does not match its checksum")
    return _family(metadata), arrays, _from_json(metadata, "provenance")


def _digest(arrays: Arrays, metadata: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str[1:], array.shape]).encode())
        digest.update(array.data)
    return digest.hexdigest()


def _settings(family: Family) -> str:
    """Return a family's settings as JSON that restores an equal family."""
    try:
        settings = _to_json("family", asdict(cast("Any", family)))
        is_same = type(family)(**json.loads(settings)) == family
    except TypeError:
        is_same = False
    if not is_same or family_named(type(family).__name__) is not type(family):
        wanted = "a dataclass whose settings are plain JSON for a loss to be saved"
        raise InvalidInputError(f"`family` must be {wanted}, got {family!r}.")
    return settings


def _family(metadata: Mapping[str, str]) -> Family:
    name, module = metadata.get("family", ""), metadata.get("module", "")
    family = family_named(name)
    if family is None:
        reason = f"its family {name!r} is unknown. It was defined in {module!r}: import that module"
        raise ValueError(f"{reason} before you load the file")
    return family(**_from_json(metadata, "settings"))


def _to_json(name: str, value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"`{name}` must be plain JSON to be saved: {error}.") from error


def _from_json(metadata: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        values: dict[str, Any] = from_json(dict, json.loads(metadata[key]))
    except (KeyError, ValueError, RecursionError) as error:
        raise ValueError(f"its metadata {key!r} is not a JSON dict") from error
    return values
