"""What is known about some instances, put together from all that was found out about them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from lodl._typing import Array
from lodl.oracle._failure import OK
from lodl.oracle._shard import Shard


class Known:
    """What is known about the first columns of some instances; arrays have shape (n, columns)."""

    def __init__(self, n: int, n_columns: int) -> None:
        self.loss = np.full((n, n_columns), np.nan)  # NaN where a call failed or was not made
        self.status = np.zeros((n, n_columns), dtype=np.uint8)
        self.decision = np.full((n, n_columns), -1, dtype=np.int32)  # a row of `gradient`, or -1
        self._failed = np.zeros_like(self.status)  # of a slope whose decision is known
        self._gradients: list[Array] = []
        self._n_gradients = 0

    @property
    def gradient(self) -> Array:
        """Derivatives of the loss by the label, shape (m, D)."""
        return np.concatenate(self._gradients) if self._gradients else np.empty((0, 0))

    def lay(self, row: int, shard: Shard, run: int) -> None:
        """Lay a run over what is known: success covers failure, with a slope covers without."""
        (first, last), (first_row, last_row) = (edges[run : run + 2] for edges in shard.edges)
        start = int(shard.start[run])
        n = min(last - first, self.loss.shape[1] - start)
        if n <= 0:
            return
        here, there = (row, slice(start, start + n)), slice(first, first + n)
        status, loss, numbers = shard.status[there], shard.loss[there], shard.decision[there]
        if last_row > first_row:
            numbers = np.where(numbers < 0, -1, numbers + self._n_gradients)
            self._gradients.append(shard.gradient[first_row:last_row])
            self._n_gradients += last_row - first_row
        is_better: Any = True
        if self.status[here].any():
            before, after = _worth(self.status[here], self.decision[here]), _worth(status, numbers)
            np.copyto(self._failed[here], status, where=(before == 2) & (after == 1))
            is_better = after > before
        np.copyto(self.status[here], status, where=is_better)
        np.copyto(self.loss[here], loss, where=is_better)
        np.copyto(self.decision[here], numbers, where=is_better)

    def require_slopes(self) -> None:
        """Take an answer without a slope for a failure if that failed, else for pending."""
        lacks = (self.status == OK) & (self.decision < 0)
        self.status = np.where(lacks, self._failed, self.status)


def _worth(status: npt.NDArray[np.uint8], decision: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
    """Return 0 for pending calls, 1 for failed ones, 2 for successes, 3 for those with slopes."""
    return np.asarray((status > 0).astype(np.int8) + (status == OK) + (decision >= 0))
