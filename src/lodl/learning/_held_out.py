"""Decisions on instances that the models had not seen: what the choice was made by."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lodl._gain import Gain
from lodl._typing import Array, Context

if TYPE_CHECKING:
    from lodl.learning._data import Data
    from lodl.learning._search import Tried


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The kept model beside 2-stage on held-out instances.

    Attributes:
        index: Positions of the instances in the data of `fit`, shape (n,).
        two_stage: Regret of 2-stage, NaN where the solver failed, shape (n,).
        chosen: Regret of the kept model, shape (n,).
        y: Labels; None in a model that was loaded, as are contexts and predictions.
        context: Contexts, or None.
        y_hat_two_stage: Predictions of 2-stage.
        y_hat: Predictions of the kept model.
        names: Names of the instances; empty in a model that was loaded.
    """

    index: npt.NDArray[np.intp]
    two_stage: Array
    chosen: Array
    y: Array | None = None
    context: Context = None
    y_hat_two_stage: Array | None = None
    y_hat: Array | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, data: "Data", index: npt.NDArray[np.intp], two_stage: "Tried", chosen: "Tried"
    ) -> "HeldOut":
        """Select the held-out instances from what the search knows of all."""
        return cls(
            index,
            two_stage.regret[index],
            chosen.regret[index],
            data.y[index],
            None if data.context is None else [data.context[i] for i in index.tolist()],
            two_stage.y_hat[index],
            chosen.y_hat[index],
            tuple(data.names[i] for i in index.tolist()),
        )

    def gain(self, unit: str) -> Gain:
        """Compare the kept model with 2-stage, in the objective's unit."""
        known = np.isfinite(self.two_stage) & np.isfinite(self.chosen)
        return Gain.of(self.two_stage[known], self.chosen[known], unit=unit)
