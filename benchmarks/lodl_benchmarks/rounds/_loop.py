"""One training loop for all methods: the same models, scaling, learning rates and stopping."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import nn

from lodl._typing import Array
from lodl.domains import Domain
from lodl_benchmarks.rounds._tasks import RoundsTask
from lodl_benchmarks.runner import Criterion, initialisations, predict, train

N_INITIALISATIONS = 3  # whose predictions are averaged


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a model: the mean over its initialisations."""

    train: Array  # predictions for the training instances, shape (n, *label_shape)
    validation: Array  # predictions for the validation instances
    test: Array  # predictions for the test instances


def average(predictions: Sequence[Predictions]) -> Predictions:
    """Return the mean of the predictions of several models."""
    return Predictions(
        *(
            np.mean(
                [getattr(model_predictions, part.name) for model_predictions in predictions], axis=0
            )
            for part in fields(Predictions)
        )
    )


class Loop:
    """Trains the models of a task on any criterion.

    Args:
        task: How to train.
        domain: What to train on.

    Attributes:
        seconds: Time spent in training so far.
        last_steps: The step at which each of the last models stopped.
    """

    def __init__(self, task: RoundsTask, domain: Domain) -> None:
        self.task = task
        self.domain = domain
        self.seconds = 0.0
        self.last_steps = np.zeros(N_INITIALISATIONS, dtype=np.int64)

    def fit(self, criterion: Criterion, validation: Criterion) -> Predictions:
        """Train with every learning rate; return what the best one on validation loss predicts."""
        started = time.perf_counter()
        x = self._features()
        runs = [
            train(
                self._models(),
                x[0],
                criterion,
                x[1],
                validation,
                replace(self.task.training, learning_rate=rate),
            )
            for rate in self.task.learning_rates
        ]
        best = min(runs, key=lambda run: float(run.scores.mean()))
        self.last_steps = best.last_steps
        self.seconds += time.perf_counter() - started
        return Predictions(*(predict(best.models, part).mean(axis=0) for part in x))

    def _features(self) -> list[Array]:
        splits = self.domain.splits
        x = [part.x for part in (splits.train, splits.validation, splits.test)]
        if not self.task.is_scaled:
            return x
        mean, deviation = x[0].mean(axis=0), x[0].std(axis=0)
        return [(part - mean) / deviation for part in x]

    def _models(self) -> list[nn.Module]:
        models = initialisations(self.domain, N_INITIALISATIONS)
        if not self.task.is_scaled:
            return list(models)
        y = self.domain.splits.train.y
        return [_Scaled(model, y.mean(axis=0), float(y.std())) for model in models]


class _Scaled(nn.Module):
    """A model whose outputs are in units of the labels' deviation, around their mean."""

    def __init__(self, model: nn.Module, mean: Array, deviation: float) -> None:
        super().__init__()
        self.model = model
        self.mean = torch.as_tensor(np.asarray(mean), dtype=torch.get_default_dtype())
        self.deviation = deviation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.model(x)
        return self.mean + self.deviation * outputs
