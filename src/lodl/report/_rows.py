"""The rows of a run, read as strangers: nothing in them is taken on trust."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lodl.errors import DataError
from lodl.paper import DOMAINS
from lodl.rows import PARTS, read_json_rows

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, for people; hashable, so that rows of equal settings can be pooled."""

_SETTINGS = ("sampler", "n_samples", "n_initialisations", "learning_rate", "surrogate", "settings")
_LONGEST_TEXT = 500


@dataclass(frozen=True)
class Row:
    """One method on one draw of a domain. Only the first three are in every row.

    Attributes:
        domain: Where the decisions are taken.
        method: What the models were trained on.
        test: Normalised decision quality on test data, one per model.
        validation: Likewise on validation data.
        seed: Of the draw.
        settings: All that was chosen.
        oracle_calls: Calls of the solver.
        seconds: By part, those that are known.
        gaussian_error: Error of the learned loss around the labels.
        empirical_error: Its error where the models predict, one per model.
        data: A digest of the data.
        versions: Of the packages.
    """

    domain: str
    method: str
    test: tuple[float, ...]
    validation: tuple[float, ...] = ()
    seed: int | None = None
    settings: Settings = ()
    oracle_calls: float | None = None
    seconds: tuple[tuple[str, float], ...] = ()
    gaussian_error: float | None = None
    empirical_error: tuple[float, ...] = ()
    data: str = ""
    versions: Settings = ()

    @property
    def is_reproduction(self) -> bool:
        """Whether the paper's experiments wrote it: the name of a domain alone is no evidence."""
        tells_samples = {"sampler", "n_samples"} <= dict(self.settings).keys()
        tells_source = bool(self.data) and "lodl" in dict(self.versions)
        return self.domain in DOMAINS and tells_samples and tells_source


def read_rows(path: str | Path) -> list[Row]:
    """Returns the rows of a JSON-lines file; of rows of the same experiment, the last.

    Raises:
        DataError: The file or a row cannot be used; the message names the line.
    """
    rows: dict[object, Row] = {}
    for number, found in read_json_rows(Path(path)):
        try:
            row = _parse(found)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from error
        experiment = (row.domain, row.method, row.seed, row.settings, row.data)
        rows[number if row.seed is None else experiment] = row
    if not rows:
        raise DataError(f"{path} has no rows yet. Run an experiment into its folder first.")
    return list(rows.values())


def _parse(found: Mapping[str, Any]) -> Row:
    row = {name: value for name, value in found.items() if value is not None}
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
