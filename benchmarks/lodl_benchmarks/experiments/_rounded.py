"""Arrays of a figure as tuples of short numbers."""

from lodl._typing import Array

_DECIMALS = 4  # finer than any pixel


def rounded(values: Array) -> tuple[float, ...]:
    """Return a vector as numbers short enough for a data file."""
    return tuple((values.round(_DECIMALS) + 0.0).tolist())  # + 0.0: no minus before a zero


def rounded_rows(values: Array) -> tuple[tuple[float, ...], ...]:
    """Return the rows of a matrix as short numbers."""
    return tuple(map(rounded, values))
