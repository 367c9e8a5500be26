"""How well each instance's loss repeats its regrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lodl._typing import Array


class FitStatus(IntEnum):
    """How the parameters of an instance came about."""

    FITTED = 0
    NOTHING_TO_DECIDE = 1  # no regret is above zero: a plain squared error stands in
    NO_SAMPLES = 2  # too few oracle calls succeeded: a plain squared error stands in


@dataclass(frozen=True, eq=False)
class FitErrors:
    """How well each instance's loss repeats the regrets, on fitted and on held-out samples.

    Every field has shape (n_instances,). A number that is not defined (no held-out samples,
    constant regrets) is NaN. A family made of decisions has no mean absolute errors (`mae_...`) and
    no R2: it does not repeat regrets. Instead it has two shares: `met_held_out`, of the costly
    held-out samples whose decision is among those of the fitted ones, and `explained_held_out`, of
    the held-out samples whose decision is the cheapest of all that were met, by the slopes. The
    second is 1 where the objective is affine in the label and the solver is exact.

    Attributes:
        of_fits: Names of the fields that only a fitted instance has.
        dtypes: The type of each field.
    """

    mae_fitted: Array
    mae_held_out: Array
    r2_held_out: Array
    rank_correlation_held_out: Array
    met_held_out: Array
    explained_held_out: Array
    mean_regret: Array
    n_fitted: npt.NDArray[np.int64]
    n_held_out: npt.NDArray[np.int64]
    status: npt.NDArray[np.int8]

    of_fits: ClassVar[tuple[str, ...]] = (
        "mae_fitted",
        "mae_held_out",
        "r2_held_out",
        "rank_correlation_held_out",
        "met_held_out",
        "explained_held_out",
    )
    dtypes: ClassVar[Mapping[str, np.dtype[Any]]] = {
        **{name: np.dtype(np.float64) for name in (*of_fits, "mean_regret")},
        "n_fitted": np.dtype(np.int64),
        "n_held_out": np.dtype(np.int64),
        "status": np.dtype(np.int8),
    }

    @classmethod
    def empty(cls, n_instances: int) -> "FitErrors":
        """Return arrays to fill: NaN, and 0 for whole numbers."""
        return cls(
            **{
                name: np.full(n_instances, np.nan if dtype.kind == "f" else 0, dtype)
                for name, dtype in cls.dtypes.items()
            }
        )

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, index: Any) -> "FitErrors":
        """Return the numbers of some instances."""
        return FitErrors(**{name: rows[index] for name, rows in self.arrays().items()})

    @staticmethod
    def concatenate(parts: Sequence["FitErrors"]) -> "FitErrors":
        """Return the numbers of several sets of instances, one behind the other."""
        return FitErrors(
            **{
                name: np.concatenate([part.arrays()[name] for part in parts])
                for name in FitErrors.dtypes
            }
        )
