"""Decisions on instances that the models had not seen, by which they are compared."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lodl._typing import Array, Context
from lodl.errors import OracleError
from lodl.learning._gain import Failures, Gain

Mask = npt.NDArray[np.bool_]


class HeldOutRegrets:
    """Regrets of several models on the same held-out instances, failed decisions included.

    A failed decision counts as the worst decision of the first model, so that no model wins because
    the solver failed on its hard instances. An instance on which every model failed, as they do if
    the solver fails at the label itself, is left out.

    Args:
        judged: Positions of the held-out instances.
    """

    def __init__(self, judged: npt.NDArray[np.intp]) -> None:
        self._judged = judged
        self._worst = 0.0
        self._is_known = np.zeros(len(judged), dtype=bool)

    def add(self, regret: Array) -> None:
        """Take the regrets of a further model, NaN where the solver failed.

        Args:
            regret: Its regrets on all instances, held out or not.
        """
        is_known = np.isfinite(regret[self._judged])
        if not self._is_known.any():  # the first model
            if not is_known.any():
                raise OracleError(
                    "The solver failed at the model's predictions for every held-out instance "
                    f"({len(is_known)} of them), so that models cannot be compared. The answers so "
                    "far are in the store, if there is one."
                )
            self._worst = float(regret[self._judged][is_known].max(initial=0.0))
        self._is_known |= is_known

    @property
    def index(self) -> npt.NDArray[np.intp]:
        """Positions of the instances that models are compared on."""
        return self._judged[self._is_known]

    @property
    def n_left_out(self) -> int:
        """Number of held-out instances on which every model failed."""
        return int((~self._is_known).sum())

    def of(self, regret: Array) -> Array:
        """Return a model's regrets on these instances, all of them finite."""
        known = regret[self.index]
        return np.where(np.isfinite(known), known, self._worst)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The kept model next to 2-stage on held-out instances.

    Attributes:
        index: Positions of the instances in the data of `fit`, shape (n,).
        two_stage: Regret of 2-stage, shape (n,). A failed decision counts as the worst one.
        chosen: Regret of the kept model, shape (n,).
        failed_two_stage: Whether the decision of 2-stage failed, shape (n,).
        failed: Whether the decision of the kept model failed, shape (n,).
        n_left_out: Number of further held-out instances, on which every model failed.
        y: Labels; None in a model that was loaded, as are contexts and predictions.
        context: Contexts, or None.
        y_hat_two_stage: Predictions of 2-stage.
        y_hat: Predictions of the kept model.
        names: Names of the instances; empty in a model that was loaded.
    """

    index: npt.NDArray[np.intp]
    two_stage: Array
    chosen: Array
    failed_two_stage: Mask
    failed: Mask
    n_left_out: int = 0
    y: Array | None = None
    context: Context = None
    y_hat_two_stage: Array | None = None
    y_hat: Array | None = None
    names: tuple[str, ...] = ()

    @property
    def failures(self) -> Failures:
        """How many decisions failed."""
        counts = int(self.failed_two_stage.sum()), int(self.failed.sum())
        return Failures(*counts, self.n_left_out)

    def gain(self, unit: str) -> Gain:
        """Compare the kept model with 2-stage, in the objective's unit."""
        return Gain.of(self.two_stage, self.chosen, failures=self.failures, unit=unit)
