"""Options that several commands share, and names that become objects."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Literal, TypeAlias, TypeVar

import typer

from lodl.errors import InvalidInputError

PROBLEM = "MODULE:PROBLEM or FILE.py:PROBLEM, a lodl.Problem or a subclass."
"""Help for the argument that names a problem."""

_T = TypeVar("_T")

ON_FAILURE: Mapping[str, Literal["raise", "skip"]] = {"raise": "raise", "skip": "skip"}
"""What to do about a solver call that fails."""


def named(what: str, name: str, table: Mapping[str, _T]) -> _T:
    """Return the entry of a table, or raise an error that lists the names there are."""
    if name not in table:
        close = get_close_matches(name, table, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InvalidInputError(f"`{what}` must be one of {', '.join(table)}, got {name!r}.{hint}")
    return table[name]


def _check_jobs(n_jobs: int) -> int:
    if n_jobs == 0:
        raise InvalidInputError("`n_jobs` must be a whole number other than 0 (-1 is all cores).")
    return n_jobs


Jobs: TypeAlias = Annotated[
    int, typer.Option(help="Number of workers; -1 uses all cores.", callback=_check_jobs)
]
