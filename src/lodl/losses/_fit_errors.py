"""How well each instance's loss repeats its regrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np

from lodl.losses._rows import Rows


class FitStatus(IntEnum):
    """How the parameters of an instance came about."""

    FITTED = 0
    NOTHING_TO_DECIDE = 1  # no regret is above zero: a plain squared error stands in
    NO_SAMPLES = 2  # too few oracle calls succeeded: a plain squared error stands in


@dataclass(frozen=True, eq=False)
class FitErrors:
    """How well each instance's loss repeats the regrets, on fitted and on held-out samples.

    Every field has shape (n_instances,): counts are int64, the status is int8, the others are
    float64. A figure that is not defined (no held-out samples, constant regrets) is NaN.
    """

    mae_fitted: Rows
    mae_held_out: Rows
    r2_held_out: Rows
    rank_correlation_held_out: Rows
    mean_regret: Rows
    n_fitted: Rows
    n_held_out: Rows
    status: Rows

    def arrays(self) -> Mapping[str, Rows]:
        """Returns the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, index: Any) -> "FitErrors":
        """Returns the figures of some instances."""
        return FitErrors(**{name: rows[index] for name, rows in self.arrays().items()})

    @staticmethod
    def concatenate(parts: Sequence["FitErrors"]) -> "FitErrors":
        """Returns the figures of several sets of instances, one behind the other."""
        names = parts[0].arrays()
        return FitErrors(
            **{name: np.concatenate([part.arrays()[name] for part in parts]) for name in names}
        )
