"""Files of features, labels, contexts and decisions: .npy, .npz, CSV, Parquet, JSON lines."""

import csv
import json
import math
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np

from lodl._arrays import Features, is_frame, place_of, require, row_names
from lodl.cli._modules import meant
from lodl.errors import DataError, InvalidInputError

TABLE = "a .npy, .npz, .csv or .parquet file with one row per instance"
CONTEXTS = (
    "a .npy file, a .npz file with an array for each name, a .csv or .parquet file whose columns "
    "are the names, or a .jsonl file with a line for each instance"
)

_DIGITS = 6  # significant digits of the largest number in a CSV file of decisions
_DATES = {r"\d{4}-\d\d-\d\d": "ISO8601", r"\d\d?\.\d\d?\.\d{4}$": "%d.%m.%Y"}
_SEPARATORS = ",;\t|"  # accepted in files that are called CSV


def read_data(
    features: Path | None, labels: Path | None, context: Path | None, names: str | None
) -> tuple[Any, Any, Any]:
    """Return features, labels and contexts, None without a path, with rows that belong together.

    Frames with the column `names` get the order of the first. Texts in features become categories.
    """
    paths = {"features": features, "labels": labels, "context": context}
    tables = {what: _read(path, what) for what, path in paths.items()}
    columns = [column for table in tables.values() if is_frame(table) for column in table.columns]
    if names is not None and names not in columns:
        hint = meant(names, columns, "{!r}")
        distinct = ", ".join(dict.fromkeys(map(str, columns)))
        listed = f" The columns are {distinct}." if columns else ""
        raise InvalidInputError(f"`names` must be a column, got {names!r}.{hint}{listed}")
    if names is None:
        _check_order({what: table for what, table in tables.items() if is_frame(table)})
    first = None
    for what, table in tables.items():
        if names is not None and is_frame(table) and names in table.columns:
            ids = _ids(table[names])
            named = table.set_index(ids).drop(columns=names)
            named.attrs |= ids.attrs
            first = named if first is None else first
            tables[what] = _in_rows_of(named, first, what)
    x, y, contexts = tables.values()
    if is_frame(y):
        _check_numbers(y, "labels")
    if is_frame(x):
        _check_numbers(x, "features", share=0.5)
        texts = x.select_dtypes(exclude=["number", "bool", "boolean"])
        x = x.astype(dict.fromkeys(texts, "category"))
    return x, y, contexts


def _check_order(frames: Mapping[str, Any]) -> None:
    """Refuse a column that two files have in different orders: it must name the instances."""
    known: dict[str, Any] = {}
    for what, frame in frames.items():
        for column in frame.columns:
            first = known.setdefault(column, frame)[column]
            if first is frame[column] or not first.is_unique:
                continue
            texts, before = (of.astype(str).tolist() for of in (frame[column], first))
            if texts != before and sorted(texts) == sorted(before):
                raise InvalidInputError(
                    f"`{what}` must have its rows in the order of the other files, but {column!r} "
                    f"is in another order. If it names the instances, add --id {column}."
                )


def _ids(column: Any) -> Any:
    """Return ids as text or as dates, so that they are not mistaken for positions."""
    texts = column.astype(str)
    for pattern, form in _DATES.items():
        if texts.str.match(pattern).all():
            with suppress(ValueError):  # such as 2024-13-01
                dates = require("pandas", "cli").to_datetime(texts, format=form)
                dates.attrs["dates"] = form
                return dates
    return texts


def _in_rows_of(table: Any, first: Any, what: str) -> Any:
    """Return a table with the rows of the first one in its order, if ids are distinct."""
    if not (table.index.is_unique and first.index.is_unique):
        return table
    for missing in first.index.difference(table.index):
        form = first.attrs.get("dates", "")
        name = missing.strftime(form) if "%" in form else str(missing).removesuffix(" 00:00:00")
        expected = f"a row for each {first.index.name}"
        raise InvalidInputError(f"`{what}` must have {expected}, but {name} is missing.")
    return table.loc[first.index]


def _check_numbers(table: Any, what: str, share: float = 0.0) -> None:
    """Refuse texts in columns of numbers: those with more than this share of numbers."""
    to_numeric = require("pandas", "cli").to_numeric
    for column in table.select_dtypes(include=["object", "string"]):
        values = table[column]
        is_text = (to_numeric(values, errors="coerce").isna() & values.notna()).to_numpy()
        if not is_text.any() or 1 - is_text.mean() < share:
            continue
        row = int(is_text.argmax())
        place = place_of(table, (row, table.columns.get_loc(column)))
        raise InvalidInputError(
            f"`{what}` must have numbers only, got {values.iloc[row]!r} {place}. Leave a "
            f"missing value empty. If the column names the instances, add --id {column}."
        )


def check_features(features: Features, model: str) -> None:
    """Refuse texts that differ in every row, and gaps if a model takes none."""
    if not is_frame(features):
        return
    is_gap = features.isna().to_numpy()
    if model in ("linear", "mlp") and is_gap.any():
        got = f"none {place_of(features, tuple(np.argwhere(is_gap)[0]))}"
        advice = "Fill the gap, leave out the row, or use --model lightgbm."
        raise InvalidInputError(f"`features` must have every value, got {got}. {advice}")
    for column in features.select_dtypes(include="category"):
        if len(features) > 2 and features[column].is_unique:
            raise InvalidInputError(
                f"`features` must have texts that repeat, but {column!r} has a different one in "
                f"every row. If it names the instances, add --id {column}; otherwise leave it out."
            )


def groups_of(features: Features, column: str | None) -> tuple[Features, Sequence[Any] | None]:
    """Return features without the column of groups, and the groups."""
    if column is None:
        return features, None
    if not is_frame(features) or column not in features.columns:
        raise InvalidInputError(f"`groups` must be a column of the features, got {column!r}.")
    return features.drop(columns=column), features[column].tolist()


def columns_of_fit(
    features: Features, names: Sequence[str] | None
) -> tuple[Features, dict[str, Sequence[str]]]:
    """Return the features of a model, and the columns by which to find an instance.

    These are its id and the columns that the model does not use, or its number.
    """
    ids, form = row_names(features), getattr(features, "attrs", {}).get("dates", "")
    if form.startswith("%"):  # others are written as `row_names` has them
        ids = tuple(features.index.strftime(form))
    found: Any = {} if ids is None else {str(features.index.name or "instance"): ids}
    if is_frame(features) and names is not None and set(names) <= set(features.columns):
        others = features.drop(columns=list(names))
        found |= {column: others[column].astype(str).tolist() for column in others}
        features = features[list(names)]
    return features, found or {"instance": [str(i) for i in range(len(features))]}


def _read(path: Path | None, what: str) -> Any:
    """Return the frame, the only array, or the contexts (dicts by name) of a file, if any."""
    content = None if path is None else _content(path, what)
    if not isinstance(content, Mapping):
        return content
    arrays = list(content.values())
    if what == "context":
        lengths = sorted(set(map(len, arrays)))
        if len(lengths) != 1:
            raise DataError(f"The context in {path} must have arrays of one length, got {lengths}.")
        return [dict(zip(content, row, strict=True)) for row in zip(*arrays, strict=True)]
    if len(arrays) != 1:
        got = f"{len(arrays)}: {', '.join(content)}"
        raise DataError(f"The {what} in {path} must be one array, got {got}.")
    return arrays[0]


def _content(path: Path, what: str) -> Any:
    """Return the content of a file, read as its suffix says."""
    readers: dict[str, Any] = dict.fromkeys((".npy", ".npz"), _read_numpy)
    readers |= {".csv": _read_csv, ".parquet": _read_parquet}
    if what == "context":
        readers |= {".jsonl": _read_lines}
    if (suffix := path.suffix.lower()) not in readers:
        expected = f"the name of the file must end with one of {', '.join(readers)}"
        raise DataError(f"The {what} in {path} cannot be read: {expected}.")
    try:
        return readers[suffix](path)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"The {what} in {path} cannot be read: save it as UTF-8 text.") from error
    except (OSError, ValueError, EOFError, SyntaxError, TokenError, BadZipFile) as error:
        raise DataError(f"The {what} in {path} cannot be read as {suffix}: {error}") from error


def _read_numpy(path: Path) -> Any:
    """Return the array of a file, or its arrays by name."""
    with path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        return content if isinstance(content, np.ndarray) else dict(content)


def _read_csv(path: Path) -> Any:
    """Return a frame, with the form of the file, a header and an index as they are found."""
    pandas = require("pandas", "cli")
    with path.open("rb") as file:
        line = file.readline()
    encoding = "utf-8-sig" if line.startswith(BOM_UTF8) else "utf-8"
    first = line.decode(encoding).rstrip("\r\n")
    separator = max(_SEPARATORS, key=first.count)
    cells = first.split(separator)
    how: Any = {"sep": separator, "header": None if _are_data(cells) else "infer"}
    if pandas.__version__ < "3":  # later ones read every digit by default
        how["float_precision"] = "round_trip"
    # With another separator, the comma may be the mark of decimals. Next to semicolons it is.
    marks = {",": ".", ";": ",."}.get(separator, ".,")
    read = {mark: pandas.read_csv(path, **how, decimal=mark) for mark in marks}
    decimal, table = max(read.items(), key=lambda item: item[1].select_dtypes("number").shape[1])
    if not cells[0].strip('"') and len(table.columns) > 1:  # the index that pandas writes
        table = table.set_index(table.columns[0]).rename_axis(None)
        if list(table.index) == list(range(len(table))):
            table = table.reset_index(drop=True)
    table.attrs["csv"] = {"delimiter": separator, "decimal": decimal, "encoding": encoding}
    return table


def _are_data(cells: Sequence[str]) -> bool:
    """Return whether a first line is numbers, unless they increase like hours or years do."""
    try:
        numbers = [float(cell.strip('"').replace(",", ".")) for cell in cells]
    except ValueError:
        return False
    are_whole = all(number.is_integer() for number in numbers)
    return not (are_whole and len(numbers) > 1 and numbers == sorted(set(numbers)))


def _read_parquet(path: Path) -> Any:
    require("pyarrow", "parquet")
    return require("pandas", "cli").read_parquet(path)


def _read_lines(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def write_decisions(
    path: Path,
    decisions: Sequence[Any],
    instances: Mapping[str, Sequence[str]],
    names: Sequence[str] | None,
    form: Mapping[str, str],
) -> None:
    """Write one decision per instance, or None if its call failed, as the file's suffix says.

    An instance is found by the columns `instances`. Decisions of as many numbers as a label get its
    `names`. CSV has rounded numbers and the `form` of CSV that was read; others have all digits.
    """
    if path.suffix == ".json":
        columns = {**instances, "decision": [_plain(z, names) for z in decisions]}
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        content = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        path.write_text(f"[\n{content}\n]\n", encoding="utf-8")
        return
    table = _as_table(decisions)
    if path.suffix == ".npy":
        np.save(path, table, allow_pickle=False)
        return
    numbers = table.reshape(len(table), -1)
    n = numbers.shape[1]
    largest = np.nanmax(np.abs(numbers), initial=1e-300)
    rounded = np.round(numbers, max(2, _DIGITS - math.ceil(math.log10(largest)))) + 0.0
    items = names if names is not None and len(names) == n else [f"z{i}" for i in range(n)]
    form = {"delimiter": ",", "decimal": ".", "encoding": "utf-8", **form}
    with path.open("w", encoding=form["encoding"], newline="") as file:
        writer = csv.writer(file, delimiter=form["delimiter"])
        writer.writerow([*instances, *items])
        for *key, row in zip(*instances.values(), rounded, strict=True):
            texts = ("" if math.isnan(v) else f"{v:.15g}" for v in row)
            writer.writerow([*key, *(text.replace(".", form["decimal"]) for text in texts)])


def _as_table(decisions: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return decisions as one array, with NaN for those that failed."""
    try:
        arrays = [None if z is None else np.asarray(z, dtype=np.float64) for z in decisions]
        shape = next((array.shape for array in arrays if array is not None), ())
        return np.array([np.full(shape, np.nan) if array is None else array for array in arrays])
    except (TypeError, ValueError) as error:
        why = f"these decisions, which are not arrays of one shape: {error}"
        raise InvalidInputError(f"`out` must end with .json for {why}") from error


def check_out(path: Path, *suffixes: str) -> None:
    """Check that a file can be written, before hours are spent on its content."""
    if path.suffix not in suffixes:
        *first, last = suffixes
        raise InvalidInputError(f"`out` must end with {', '.join(first)} or {last}, got {path}.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InvalidInputError(f"`out` must be a file in a folder that exists, got {path}.")


def _plain(z: Any, names: Sequence[str] | None = None) -> Any:
    """Return a decision as JSON values, by name if it is an array with a number for each name."""
    if isinstance(z, Mapping):
        return {str(name): _plain(value) for name, value in z.items()}
    if isinstance(z, list | tuple | set | frozenset):
        return [_plain(value) for value in z]
    if hasattr(z, "tolist"):
        is_named = names is not None and np.size(z) == len(names)
        return dict(zip(names or (), np.ravel(z).tolist(), strict=True)) if is_named else z.tolist()
    return z if isinstance(z, bool | int | float | str | None) else str(z)
