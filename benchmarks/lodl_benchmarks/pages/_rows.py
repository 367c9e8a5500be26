"""The rows of a run, `rows.jsonl`: nothing in them is taken on trust."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lodl.errors import DataError

PARTS = ("sampling", "fitting", "training")
"""The parts of a method that take time; a row has `seconds_<part>`."""

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values as text; hashable, so that rows of equal settings can be pooled."""

_SETTINGS = ("sampler", "n_samples", "n_initialisations", "learning_rate", "surrogate", "settings")
_LONGEST_TEXT = 500


@dataclass(frozen=True)
class Row:
    """One method on one draw of a domain. Only the first three are in every row."""

    domain: str  # where the decisions are taken
    method: str  # what the models were trained on
    test: tuple[float, ...]  # normalised decision quality on test data, one per model
    validation: tuple[float, ...] = ()  # decision qualities on validation data
    seed: int | None = None  # the seed of the draw
    settings: Settings = ()  # everything that was chosen for the run, as text
    oracle_calls: float | None = None  # calls of the solver
    seconds: tuple[tuple[str, float], ...] = ()  # seconds of each part that was timed
    gaussian_error: float | None = None  # error of the learned loss around the labels
    # Error of the learned loss where the models predict, one per model.
    empirical_error: tuple[float, ...] = ()
    data: str = ""  # a digest of the data
    versions: Settings = ()  # versions of the packages

    def setting(self, name: str) -> str:
        """Return the text of a setting, empty where the row does not have it."""
        return dict(self.settings).get(name, "")


def read_json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the values of every row, unchecked.

    Empty lines are skipped, and so is a last line that was torn by a kill or is just being written.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise DataError(
            f"There is no {path}. The folder of a run must hold {path.name}, one JSON object per "
            "line with at least `domain`, `method` and `test`, a list of decision qualities."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                return
            raise DataError(f"{path}, line {number} is not JSON: {error}. Remove it.") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number} is not a row: {line[:50]!r}. Remove it.")
        yield number, row


def read_rows(path: str | Path) -> list[Row]:
    """Return the rows of a JSON-lines file; of several rows of one experiment, the last."""
    rows: dict[object, Row] = {}
    for number, values in read_json_rows(Path(path)):
        try:
            row = parse_row(values)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
        experiment = (row.domain, row.method, row.seed, row.settings, row.data)
        rows[number if row.seed is None else experiment] = row
    if not rows:
        raise DataError(f"{path} has no rows yet. Run an experiment into its folder first.")
    return list(rows.values())


def parse_row(values: Mapping[str, Any]) -> Row:
    """Return a row from its JSON values."""
    row = {name: value for name, value in values.items() if value is not None}
    test = _numbers(row, "test")
    if not test:
        raise ValueError("`test` must have the quality of at least one run.")
    parts = [(part, f"seconds_{part}") for part in PARTS]
    return Row(
        domain=_text(row, "domain"),
        method=_text(row, "method"),
        test=test,
        validation=_numbers(row, "validation"),
        seed=round(_number(row, "seed", -math.inf)) if "seed" in row else None,
        settings=_settings(row),
        oracle_calls=_number(row, "oracle_calls") if "oracle_calls" in row else None,
        seconds=tuple((part, _number(row, key)) for part, key in parts if key in row),
        gaussian_error=_number(row, "gaussian_error") if "gaussian_error" in row else None,
        empirical_error=_numbers(row, "empirical_error"),
        data=_text(row, "data") if "data" in row else "",
        versions=_scalars(row, "versions"),
    )


def _settings(row: Mapping[str, Any]) -> Settings:
    chosen = [(name, _text_of(name, row[name])) for name in _SETTINGS if name in row]
    training = [pair for pair in _scalars(row, "training") if pair[0] not in row]
    return (*chosen, *training)


def _scalars(row: Mapping[str, Any], name: str) -> Settings:
    values = row.get(name, {})
    if not isinstance(values, dict):
        raise ValueError(f"`{name}` must be an object with names and values, got {_shown(values)}.")
    return tuple((_text_of(name, key), _text_of(name, value)) for key, value in values.items())


def _text(row: Mapping[str, Any], name: str) -> str:
    if not isinstance(row.get(name), str) or not row[name]:
        raise ValueError(f"`{name}` must be a text, got {_shown(row.get(name))}.")
    return _text_of(name, row[name])


def _text_of(name: str, value: Any) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    if not text.isprintable() or len(text) > _LONGEST_TEXT:
        raise ValueError(
            f"`{name}` must be printable and of at most {_LONGEST_TEXT} characters, "
            f"got {_shown(value)}."
        )
    return text


def _numbers(row: Mapping[str, Any], name: str) -> tuple[float, ...]:
    values = row.get(name, [] if name != "test" else None)
    if not isinstance(values, list) or not all(_is_number(value) for value in values):
        raise ValueError(f"`{name}` must be a list of finite numbers, got {_shown(values)}.")
    return tuple(float(value) for value in values)


def _number(row: Mapping[str, Any], name: str, minimum: float = 0.0) -> float:
    value = row[name]
    if not _is_number(value) or value < minimum:
        least = "" if minimum == -math.inf else f" of at least {minimum:g}"
        raise ValueError(f"`{name}` must be a finite number{least}, got {_shown(value)}.")
    return float(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
