"""Methods: ways to arrive at predictions."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from lodl._typing import Array
from lodl.domains import Domain, Split
from lodl.errors import InvalidInputError
from lodl.evaluation import regret
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedQuadratic,
    DirectedWeightedMSE,
    Family,
    LearnedLoss,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
    fit,
    load_loss,
)
from lodl.oracle import Samples
from lodl.training.torch import LearnedLossModule, TrainingSettings
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic
from lodl_benchmarks.runner._task import initialisations
from lodl_benchmarks.runner._training import Criterion, Trained, predict, squared_error, train
from lodl_benchmarks.surrogates import Surrogate, SurrogateLoss

_RANDOM_SEED = 1_000_000  # far from the seeds of domains, which define the zero point


@dataclass(frozen=True, eq=False)
class Run:
    """Inputs of a method: a domain, how to train, and oracle samples if the method needs them.

    The samples are of the training instances followed by the validation instances. A loss learned
    from them is kept at `loss_path`, so that another learning rate or a resumed run need not fit it
    again.
    """

    domain: Domain
    surrogate: Surrogate
    settings: TrainingSettings
    n_initialisations: int
    samples: Samples | None
    loss_path: Path


@dataclass(frozen=True, eq=False)
class MethodOutput:
    """Predictions of every initialisation, and what they cost."""

    # Predictions for the validation instances, shape (initialisations, n, *label_shape).
    y_hat_validation: Array
    y_hat_test: Array  # predictions for the test instances, of the same shape
    oracle_calls: int = 0  # calls of the solver, or of the surrogate
    seconds_fitting: float = 0.0  # processor time to fit losses, whatever else the machine does
    seconds_training: float = 0.0  # processor time to train the models
    steps: tuple[int, ...] = ()  # the step of each initialisation's best state
    # Mean absolute error of the learned loss on held-out samples around labels.
    gaussian_error: float | None = None
    # Its error at the predictions of each model that was trained on it.
    empirical_error: tuple[float, ...] = ()


class Method(ABC):
    """A way to arrive at predictions."""

    needs_samples: bool = False
    needs_surrogate: bool = False

    @property
    def needs_slopes(self) -> bool:
        """Whether the samples must have slopes, as for losses that are made of decisions."""
        return False

    @abstractmethod
    def run(self, run: Run) -> MethodOutput:
        """Return predictions for the validation and the test instances."""


@dataclass(frozen=True)
class Random(Method):
    """Predictions uniform on [0, 1]; other draws than those that define the zero point."""

    def run(self, run: Run) -> MethodOutput:
        splits, n = run.domain.splits, run.n_initialisations
        return MethodOutput(
            np.random.default_rng(_RANDOM_SEED).random((n, *splits.validation.y.shape)),
            np.random.default_rng(_RANDOM_SEED + 1).random((n, *splits.test.y.shape)),
        )


@dataclass(frozen=True)
class Optimal(Method):
    """The labels themselves."""

    def run(self, run: Run) -> MethodOutput:
        splits = run.domain.splits
        return MethodOutput(splits.validation.y[np.newaxis], splits.test.y[np.newaxis])


@dataclass(frozen=True)
class Constant(Method):
    """The mean training label, whatever the features."""

    def run(self, run: Run) -> MethodOutput:
        splits = run.domain.splits
        mean = splits.train.y.mean(axis=0)
        return MethodOutput(
            np.broadcast_to(mean, (1, *splits.validation.y.shape)),
            np.broadcast_to(mean, (1, *splits.test.y.shape)),
        )


@dataclass(frozen=True)
class TwoStage(Method):
    """Models trained on mean squared error."""

    def run(self, run: Run) -> MethodOutput:
        splits = run.domain.splits
        trained = _train(run, squared_error(splits.train.y), squared_error(splits.validation.y))
        return _output(run, trained)


@dataclass(frozen=True)
class DecisionFocused(Method):
    """Models trained through the domain's handcrafted surrogate, plus squared error."""

    needs_surrogate = True

    def run(self, run: Run) -> MethodOutput:
        splits = run.domain.splits
        if run.surrogate.sense != run.domain.problem.sense:
            raise InvalidInputError(
                f'The surrogate has sense "{run.surrogate.sense}", the problem '
                f'"{run.domain.problem.sense}": they must agree.'
            )
        trained = _train(
            run,
            _through_surrogate(run.surrogate, splits.train),
            _through_surrogate(run.surrogate, splits.validation),
        )
        batch_size = min(run.settings.batch_size or len(splits.train.y), len(splits.train.y))
        oracle_calls = 0
        for step in trained.last_steps.tolist():
            n_looks = math.ceil(step / run.settings.validate_every) + 1
            oracle_calls += step * batch_size + n_looks * len(splits.validation.y)
        return _output(run, trained, oracle_calls=oracle_calls)


@dataclass(frozen=True)
class Learned(Method):
    """Models trained on losses of a family, learned from oracle samples."""

    family: Family
    needs_samples = True

    @property
    def needs_slopes(self) -> bool:
        return self.family.uses_slopes

    def run(self, run: Run) -> MethodOutput:
        if run.samples is None:
            raise TypeError("A learned loss needs oracle samples.")
        loss = self._learn(run.samples, run.loss_path)
        n_train = len(run.domain.splits.train.y)
        trained = _train(
            run,
            LearnedLossModule(loss.subset(np.arange(n_train)), reduction="none"),
            LearnedLossModule(loss.subset(np.arange(n_train, loss.n_instances)), reduction="none"),
        )
        output = _output(
            run,
            trained,
            oracle_calls=run.samples.n_calls,
            seconds_fitting=loss.provenance["seconds_fitting"],
        )
        at_labels = None  # a loss made of decisions has no held-out error: it is not fitted
        if not self.needs_slopes:
            at_labels = float(np.nanmean(loss.errors.mae_held_out))
        return replace(
            output,
            gaussian_error=at_labels,
            empirical_error=_errors_at_predictions(loss, run.domain, trained.models),
        )

    def _learn(self, samples: Samples, path: Path) -> LearnedLoss:
        if not path.exists():
            started = time.process_time()
            loss = fit(samples, self.family, n_jobs=1, progress=False)
            seconds = time.process_time() - started
            path.parent.mkdir(parents=True, exist_ok=True)
            loss = replace(loss, provenance={**loss.provenance, "seconds_fitting": seconds})
            loss.save(path)
        return load_loss(path, y=samples.y)


# The paper's families are as published: plain least-squares fits (`ridge` of 0) with the authors'
# floor of the weights. Our own have their defaults.
METHODS: Mapping[str, Method] = {
    "Random": Random(),
    "Optimal": Optimal(),
    "Constant": Constant(),
    "2-stage": TwoStage(),
    "DFL": DecisionFocused(),
    "NN": Learned(NeuralLoss()),
    "WeightedMSE": Learned(WeightedMSE(min_weight=1e-3, ridge=0.0)),
    "DirectedWeightedMSE": Learned(DirectedWeightedMSE(min_weight=1e-3, ridge=0.0)),
    "Quadratic": Learned(Quadratic(min_weight=1e-3, ridge=0.0)),
    "DirectedQuadratic": Learned(DirectedQuadratic(min_weight=1e-3)),
    "ConvexDirectedQuadratic": Learned(ConvexDirectedQuadratic()),
    "DecisionHinges": Learned(DecisionHinges()),
    "DecisionRanking": Learned(DecisionRanking()),
}


def _train(run: Run, criterion: Criterion, validation: Criterion) -> Trained:
    """Train the domain's model from every initialisation, stopping on the validation loss."""
    models, splits = initialisations(run.domain, run.n_initialisations), run.domain.splits
    return train(models, splits.train.x, criterion, splits.validation.x, validation, run.settings)


def _output(
    run: Run, trained: Trained, *, oracle_calls: int = 0, seconds_fitting: float = 0.0
) -> MethodOutput:
    splits = run.domain.splits
    return MethodOutput(
        predict(trained.models, splits.validation.x),
        predict(trained.models, splits.test.x),
        oracle_calls=oracle_calls,
        seconds_fitting=seconds_fitting,
        seconds_training=trained.seconds,
        steps=tuple(trained.best_steps.tolist()),
    )


def _errors_at_predictions(
    loss: LearnedLoss, domain: Domain, models: Sequence[nn.Module]
) -> tuple[float, ...]:
    """Return how far the loss is from the regret at each model's own predictions, on average."""
    part = domain.splits.train_and_validation
    y_hats = predict(models, part.x)
    learned = np.stack([loss.value(y_hat) for y_hat in y_hats])
    true = regret(domain.problem, y_hats, part.y, context=part.context)
    return tuple(np.abs(learned - true).mean(axis=1).tolist())


def _through_surrogate(surrogate: Surrogate, part: Split) -> Criterion:
    decision_loss = SurrogateLoss(surrogate)
    y = torch.as_tensor(part.y, dtype=torch.get_default_dtype())
    try:
        context = None if part.context is None else torch.as_tensor(part.context, dtype=y.dtype)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Decision-focused learning needs an array of numbers as the context ({error})."
        ) from error

    def criterion(y_hat: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        losses: torch.Tensor = decision_loss(
            y_hat, y[index], None if context is None else context[index]
        )
        return losses

    return criterion
