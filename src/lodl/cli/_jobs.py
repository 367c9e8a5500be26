"""The option `--n-jobs`, one for all commands."""

from typing import Annotated, TypeAlias

import typer

from lodl.errors import InvalidInputError


def _check_jobs(n_jobs: int) -> int:
    if n_jobs == 0:
        raise InvalidInputError("`n_jobs` must be a whole number other than 0 (-1 is all cores).")
    return n_jobs


Jobs: TypeAlias = Annotated[
    int, typer.Option(help="Workers; -1 is all cores.", callback=_check_jobs)
]
