"""Prices from a CSV file."""

import csv
import gzip
from array import array
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.errors import DataError

_COLUMNS = ("Date", "Symbol", "Close")


class Prices(NamedTuple):
    """Closing prices, one for every symbol and day."""

    dates: npt.NDArray[np.datetime64]  # days of trade in rising order, shape (n_days,)
    symbols: tuple[str, ...]
    close: Array  # positive, shape (n_days, n_symbols)


def read_prices(path: str | Path) -> Prices:
    """Read prices from a CSV file with the columns Date, Symbol and Close.

    Other columns (Volume) are ignored, and rows may come in any order. Each symbol must have
    one positive price on every day that the file has.

    Args:
        path: The file, UTF-8, plain or compressed (`.gz`); dates are written as 2004-01-02.
    """
    path = Path(path)
    try:
        with _open(path) as file:
            return _parse(file)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


class _Symbols(dict[str, int]):
    """Names numbered in order of appearance."""

    def __missing__(self, name: str) -> int:
        if not name:
            raise ValueError("the symbol is empty")
        return self.setdefault(name, len(self))


class _Days(dict[str, int]):
    """Dates numbered in order of appearance; anything else is refused."""

    def __missing__(self, day: str) -> int:
        if date.fromisoformat(day).isoformat() != day:  # also reads 20040102 and 2004-W01-5
            raise ValueError("the date must be written as 2004-01-02")
        return self.setdefault(day, len(self))


def _parse(file: TextIO) -> Prices:
    reader = csv.reader(file)
    header = next(reader, [])
    if not set(_COLUMNS) <= set(header):
        raise DataError(
            f"the columns must include {', '.join(_COLUMNS)}; the first row is {header}."
        )
    day_at, symbol_at, close_at = (header.index(column) for column in _COLUMNS)
    days, symbols = _Days(), _Symbols()
    day_of, symbol_of, closes = array("q"), array("q"), array("d")
    for row in reader:
        try:
            day_of.append(days[row[day_at]])
            symbol_of.append(symbols[row[symbol_at]])
            closes.append(_price(row[close_at]))
        except (IndexError, ValueError) as error:
            raise DataError(
                f"row {reader.line_num}, {row}, is not one of prices: {error}."
            ) from error
        if not 0 < closes[-1] < np.inf:
            raise DataError(f"row {reader.line_num}, {row}, must have a positive price.")
    if not closes:
        raise DataError("there are no prices after the first row.")
    return _panel(days, symbols, np.array(day_of), np.array(symbol_of), np.array(closes))


def _price(text: str) -> float:
    if "_" in text:  # which `float` passes over, so that 1_0 would be 10
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)


def _panel(
    days: _Days,
    symbols: _Symbols,
    day_of: npt.NDArray[np.int64],
    symbol_of: npt.NDArray[np.int64],
    closes: npt.NDArray[np.float64],
) -> Prices:
    """Arrange one price per row into a table of days by symbols, both sorted."""
    day_names, day_rank = _sorted(days)
    symbol_names, symbol_rank = _sorted(symbols)
    close = np.full((len(days), len(symbols)), np.nan)
    row_at = (day_rank[day_of], symbol_rank[symbol_of])
    close[row_at] = closes
    if np.isfinite(close).sum() < len(closes):
        counts = np.zeros(close.shape, dtype=np.int64)
        np.add.at(counts, row_at, 1)
        day, symbol = np.argwhere(counts > 1)[0]
        raise DataError(
            f"symbol {symbol_names[symbol]} has {counts[day, symbol]} prices on {day_names[day]}."
        )
    missing = np.isnan(close)
    for column in np.flatnonzero(missing.any(axis=0)):
        gaps = np.flatnonzero(missing[:, column])
        raise DataError(
            f"Symbol {symbol_names[column]} has no positive price on {day_names[gaps[0]]}, and so "
            f"on {len(gaps)} of {len(days)} days. Every symbol needs a price on every day: fill "
            "the gaps or leave the symbol out."
        )
    return Prices(np.array(day_names, dtype="datetime64[D]"), tuple(symbol_names), close)


def _sorted(numbers: dict[str, int]) -> tuple[list[str], Any]:
    """Return names in order, and the place in that order of each name's number."""
    names = sorted(numbers)
    rank = np.empty(len(names), dtype=np.int64)
    rank[[numbers[name] for name in names]] = np.arange(len(names))
    return names, rank
