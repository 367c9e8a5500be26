"""How a run treats failures, time and the user."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from lodl.errors import InvalidInputError

OnFailure = Literal["raise", "skip"]


@dataclass(frozen=True)
class RunSettings:
    """How to run; see `sample`."""

    on_failure: OnFailure
    max_failure_rate: float
    timeout: float | None
    progress: bool

    def __post_init__(self) -> None:
        if self.on_failure not in get_args(OnFailure):
            raise InvalidInputError(
                f'`on_failure` must be "raise" or "skip", got {self.on_failure!r}.'
            )
        rate, timeout = self.max_failure_rate, self.timeout
        if not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
            raise InvalidInputError(f"`max_failure_rate` must be from 0 to 1, got {rate!r}.")
        is_number = isinstance(timeout, int | float | np.number) and not isinstance(timeout, bool)
        if timeout is not None and not (is_number and 0 < timeout < np.inf):
            raise InvalidInputError(f"`timeout` must be None or above 0 seconds, got {timeout!r}.")
        object.__setattr__(self, "timeout", None if timeout is None else float(timeout))

    @property
    def stops(self) -> bool:
        """Whether the first failure ends the run."""
        return self.on_failure == "raise"
