"""Files of features, labels, contexts and decisions: .npy, .npz, CSV, Parquet, JSON lines."""

import json
import tokenize
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lodl._arrays import Features, is_frame, require
from lodl.cli._modules import meant
from lodl.errors import DataError, InvalidInputError

TABLE = "a .npy, .npz, .csv or .parquet file with one row per instance"
CONTEXTS = (
    "a .npy file, a .npz file with an array for each name, a .csv or .parquet file whose columns "
    "are the names, or a .jsonl file with a line for each instance"
)

_SEPARATORS = (";", "\t", "|")  # other separators in files that are called CSV


def read_features(path: Path) -> Features:
    """Return features: a pandas frame of a table, with texts as categories, else an array."""
    table = _single(path, "features")
    if not is_frame(table):
        return table
    texts = table.select_dtypes(exclude=["number", "bool", "boolean"])
    return table.astype(dict.fromkeys(texts, "category"))


def read_labels(path: Path) -> Any:
    """Return labels: a pandas frame, which keeps the names of its columns, else an array."""
    return _single(path, "labels")


def read_context(path: Path | None) -> Any:
    """Return one context per instance: a pandas frame, an array, or a list of dicts by name."""
    if path is None:
        return None
    contexts = _read(path, "context", {".jsonl": _read_lines})
    if not isinstance(contexts, Mapping):
        return contexts
    lengths = sorted(set(map(len, contexts.values())))
    if len(lengths) != 1:
        raise DataError(f"The context in {path} must have arrays of one length, got {lengths}.")
    return [dict(zip(contexts, row, strict=True)) for row in zip(*contexts.values(), strict=True)]


def read_column(path: Path, what: str) -> Sequence[Any]:
    """Return one value per instance: a vector, or a table of one column."""
    column = _single(path, what)
    if is_frame(column) and column.shape[1] == 1:
        column = column.iloc[:, 0]
    if column.ndim != 1:
        raise DataError(f"The {what} in {path} must be one column, got shape {column.shape}.")
    return list(column.tolist())


def named_by(features: Features, column: str | None) -> Features:
    """Return features with one of their columns as the index, which names the rows."""
    if column is None:
        return features
    if not is_frame(features) or column not in features.columns:
        hint = meant(column, list(features.columns) if is_frame(features) else [], "{!r}")
        raise InvalidInputError(f"`names` must be a column of the features, got {column!r}.{hint}")
    return features.set_index(features[column].astype(str)).drop(columns=column)


def groups_of(features: Features, groups: str | None) -> tuple[Features, Sequence[Any] | None]:
    """Return features without the column of groups, and the groups: that column, or a file."""
    if groups is None:
        return features, None
    if is_frame(features) and groups in features.columns:
        return features.drop(columns=groups), features[groups].tolist()
    path, expected = Path(groups), "a column of the features or a file"
    if not path.suffix and not path.exists():
        raise InvalidInputError(f"`groups` must be {expected}, got {groups!r}.")
    return features, read_column(path, "groups")


def only_columns(features: Features, names: Sequence[str] | None) -> Features:
    """Return the columns of a frame that a model was fitted with; other columns are ignored."""
    if is_frame(features) and names is not None and set(names) <= set(features.columns):
        return features[list(names)]
    return features


def _single(path: Path, what: str) -> Any:
    """Return the only array of a file, or its frame."""
    content = _read(path, what, {})
    if not isinstance(content, Mapping):
        return content
    if len(content) != 1:
        got = f"{len(content)}: {', '.join(content)}"
        raise DataError(f"The {what} in {path} must be one array, got {got}.")
    return next(iter(content.values()))


def _read(path: Path, what: str, more: dict[str, Callable[[Path], Any]]) -> Any:
    """Return the content of a file, read as its suffix says."""
    readers = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
    readers |= more
    if (suffix := path.suffix.lower()) not in readers:
        raise DataError(
            f"The {what} in {path} cannot be read: the name of the file must end with one of "
            f"{', '.join(readers)}."
        )
    try:
        return readers[suffix](path)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}.") from error
    except (OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"The {what} in {path} cannot be read as {suffix}: {error}") from error


def _read_npy(path: Path) -> np.ndarray[Any, Any]:
    with path.open("rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(path, allow_pickle=False) as arrays:
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array; name it .npy")
        return dict(arrays)


def _read_csv(path: Path) -> Any:
    table = require("pandas", "cli").read_csv(path, float_precision="round_trip")
    others = [mark for mark in _SEPARATORS if mark in str(table.columns[0])]
    if len(table.columns) == 1 and others:
        raise ValueError(
            f"the file seems to be separated by {others[0]!r}; save it with commas between "
            "columns and points in numbers"
        )
    return table


def _read_parquet(path: Path) -> Any:
    require("pyarrow", "cli")
    return require("pandas", "cli").read_parquet(path)


def _read_lines(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def write_decisions(path: Path, decisions: Sequence[Any]) -> None:
    """Write one decision per instance, in the format of the file's suffix."""
    if path.suffix == ".json":
        path.write_text(json.dumps(list(map(_plain, decisions))) + "\n", encoding="utf-8")
        return
    try:
        table = np.array([np.asarray(z, dtype=np.float64) for z in decisions])
    except (TypeError, ValueError) as error:
        why = f"these decisions, which are not arrays of one shape: {error}"
        raise InvalidInputError(f"`out` must end with .json for {why}") from error
    if path.suffix == ".npy":
        np.save(path, table, allow_pickle=False)
    else:
        rows = table.reshape(len(table), -1)
        header = ",".join(f"z{i}" for i in range(rows.shape[1]))
        np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.17g")


def check_out(path: Path, *suffixes: str) -> None:
    """Check that a file can be written, before hours are spent on its content."""
    if suffixes and path.suffix not in suffixes:
        *first, last = suffixes
        raise InvalidInputError(f"`out` must end with {', '.join(first)} or {last}, got {path}.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidInputError(f"`out` must be a file in a folder that exists, got {path}.")


def _plain(z: Any) -> Any:
    """Return a decision as JSON values."""
    if isinstance(z, Mapping):
        return {str(name): _plain(value) for name, value in z.items()}
    if isinstance(z, list | tuple | set | frozenset):
        return [_plain(value) for value in z]
    if hasattr(z, "tolist"):
        return z.tolist()
    return z if isinstance(z, bool | int | float | str | None) else str(z)
