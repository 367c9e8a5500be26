"""Arrays of a figure as JSON values."""

from typing import Any

from lodl._typing import Array

_DECIMALS = 4  # finer than any pixel


def rounded(values: Array) -> list[Any]:
    """Returns nested lists of numbers short enough for a data file."""
    numbers: list[Any] = (values.round(_DECIMALS) + 0.0).tolist()  # + 0.0: no minus before a zero
    return numbers
