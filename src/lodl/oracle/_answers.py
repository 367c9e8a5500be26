"""What the oracle taught about one instance."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array


@dataclass(frozen=True, eq=False)
class Answers:
    """Candidate predictions around one label, and what the solver said about each.

    Attributes:
        y: The label, shape (*label_shape,).
        y_hat: Candidate predictions, shape (K, *label_shape).
        regret: The regret of each candidate, shape (K,); not finite where the oracle call failed.
        decision: The number of the distinct decision that each candidate led to, shape (K,): a row
            of `slope`. None where slopes were not asked for.
        slope: The derivative by the label, at the label, of what each distinct decision costs more
            than the label's own best decision, shape (M, D).
    """

    y: Array
    y_hat: Array
    regret: Array
    decision: npt.NDArray[np.intp] | None = None
    slope: Array | None = None

    @cached_property
    def d(self) -> Array:
        """The errors of the candidates, flattened, shape (K, D)."""
        d = np.asarray(self.y_hat - self.y, dtype=np.float64)
        return d.reshape(len(self.regret), self.y.size)

    def take(self, index: Any) -> "Answers":
        """Return the answers about some of the candidates; `index` may be a mask."""
        return replace(
            self,
            y_hat=self.y_hat[index],
            regret=self.regret[index],
            decision=None if self.decision is None else self.decision[index],
        )
