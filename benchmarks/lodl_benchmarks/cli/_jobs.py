"""The option `--n-jobs` of experiments, checked before they start."""

from typing import Annotated, TypeAlias

import typer

from lodl.errors import InvalidInputError


def _check(n_jobs: int) -> int:
    if n_jobs == 0:
        raise InvalidInputError("`n_jobs` must be a whole number other than 0 (-1 is all cores).")
    return n_jobs


Jobs: TypeAlias = Annotated[
    int, typer.Option(help="Number of workers; -1 uses all cores.", callback=_check)
]
