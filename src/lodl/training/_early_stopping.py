"""Early stopping of several models at once, by the same rule in every learner."""

import numpy as np
import numpy.typing as npt

from lodl._typing import Array


class EarlyStopping:
    """The best step of each model, and the models that go on.

    A model stops more than `patience` steps after its best score. If `patience` is None, no model
    stops, and its last step counts as the best. Scores that are NaN are never better.
    """

    def __init__(self, patience: int | None, n_models: int) -> None:
        self.patience = patience
        self.running = np.arange(n_models)  # models that go on, as numbers from 0
        self.is_better = np.zeros(n_models, dtype=np.bool_)  # of those that ran at the last update
        self.best_scores = np.full(n_models, np.inf)
        self.best_steps = np.zeros(n_models, dtype=np.int64)
        self.last_steps = np.zeros(n_models, dtype=np.int64)  # last step at which a model ran

    def update(self, scores: Array, step: int) -> npt.NDArray[np.bool_]:
        """Take the scores of the running models. Returns which of them go on, as booleans."""
        running = self.running
        self.last_steps[running] = step
        self.is_better = (scores < self.best_scores[running]) | (self.patience is None)
        improved = running[self.is_better]
        self.best_scores[improved] = scores[self.is_better]
        self.best_steps[improved] = step
        if self.patience is None:
            return self.is_better
        going_on: npt.NDArray[np.bool_] = step - self.best_steps[running] <= self.patience
        self.running = running[going_on]
        return going_on
