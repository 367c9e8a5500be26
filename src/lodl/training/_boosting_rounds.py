"""Trees that grow round by round, and when to stop."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from lodl._typing import Array
from lodl.training._boosted import Trees


class Stopping:
    """Watches the loss of held-out rows, from before the first round on.

    Args:
        x: Features, one row each.
        margin: Predictions of these rows before the first round, shape (rows, outputs).
        score: Returns their loss.
        patience: Rounds without a better loss after which boosting stops.

    Attributes:
        best_round: The round with the least loss.
        best_margin: The predictions after it.
    """

    def __init__(
        self, x: Any, margin: Array, score: Callable[[Array], float], patience: int
    ) -> None:
        self.x, self.margin, self.score, self.patience = x, margin, score, patience
        self.best_score, self.best_round, self.round = score(margin), 0, 0
        self.best_margin = margin

    def look(self, added: Array) -> None:
        """Look at what the trees add to the predictions after another round, unless it is over."""
        if self.is_over:
            return
        self.round += 1
        margin = self.margin + added.reshape(self.margin.shape)
        now = self.score(margin)
        if now < self.best_score:
            self.best_score, self.best_round, self.best_margin = now, self.round, margin

    @property
    def is_over(self) -> bool:
        """Whether the loss has not fallen for long enough."""
        return self.round - self.best_round >= self.patience


class Boosting(ABC):
    """Trees of one framework that grow on one set of rows.

    Attributes:
        n_rounds: Rounds so far.
    """

    n_rounds = 0

    @abstractmethod
    def grow(self) -> bool:
        """Add a round; return False where no leaf can be split any more."""

    @abstractmethod
    def watch(self, x: Any) -> Callable[[], Array]:
        """Return a function that says what all rounds so far add to the predictions of rows.

        It is called after every round, from the first on.
        """

    @abstractmethod
    def trees(self, n_rounds: int) -> Trees:
        """Return the trees of the first rounds."""

    def run(self, n_rounds: int, stopping: Sequence[Stopping] = ()) -> None:
        """Grow until there are so many rounds, or until all that watch say stop."""
        watched = [(one, self.watch(one.x)) for one in stopping]
        while self.n_rounds < n_rounds and self.grow():
            for one, added in watched:
                one.look(added())
            if watched and all(one.is_over for one in stopping):
                break
