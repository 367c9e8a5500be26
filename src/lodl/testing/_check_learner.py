"""Say in plain words where a learner breaks its contract."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lodl._typing import Array
from lodl.errors import InvalidInputError, LearnerError
from lodl.losses import DirectedWeightedMSE, FitErrors, LearnedLoss, squared_error_loss

if TYPE_CHECKING:
    from lodl.training import Learner, Predictor

_N, _N_VALIDATION = 60, 20
_OVER, _UNDER = 10.0, 0.1  # what predicting too much and too little costs
_SLACK = 1e-6  # of a label's deviation: sums in another order


def check_learner(learner: "Learner", *, items: bool = False, seed: int = 0) -> None:
    """Check that a learner does what `lodl` relies on, with eight short training runs.

    Checked, on labels that are a noisy linear function of the features: that predictions have the
    labels' shape, are finite and do not depend on the other instances; that training changes
    neither features nor labels and gives the same model twice; that squared error beats the mean
    label; that a loss that punishes predicting too much lowers the predictions, with validation
    instances and without; and that `n_steps` is a whole number that can be handed over.

    Args:
        learner: The learner to check.
        items: Whether to check features of items, (n, items, p), instead of joint ones, (n, p).
        seed: Random seed for the data.

    Raises:
        InvalidInputError: It has no `train`.
        LearnerError: With one line per finding.
    """
    if isinstance(learner, type) or not callable(getattr(learner, "train", None)):
        raise InvalidInputError(f"`learner` must have a method `train`, got {learner!r}.")
    x, y = _data(items, np.random.default_rng(seed))
    findings = list(_findings(learner, x, y))
    if findings:
        lines = "".join(f"\n- {finding}" for finding in findings)
        raise LearnerError(f"{type(learner).__name__} breaks the contract:{lines}")


def _data(items: bool, rng: np.random.Generator) -> tuple[Array, Array]:
    n, n_items, n_features = _N + _N_VALIDATION, 3, 2
    x = rng.normal(size=(n, n_items, n_features) if items else (n, n_features))
    weights = rng.normal(size=(n_features, 1 if items else n_items))
    y = (x @ weights).reshape(n, n_items)
    return x, 30 + 5 * (y + 0.5 * rng.normal(size=y.shape))


def _directed(y: Array) -> LearnedLoss:
    over, under = np.full(y.shape, _OVER), np.full(y.shape, _UNDER)
    phi = {"w_plus": over, "w_minus": under}
    return LearnedLoss(DirectedWeightedMSE(), y, phi, FitErrors.empty(len(y)), {})


def _train(learner: "Learner", x: Array, loss: LearnedLoss, *, validation: bool) -> "Predictor":
    index, held_out = np.arange(_N), np.arange(_N, _N + _N_VALIDATION)
    if not validation:
        return learner.train(x[:_N], loss.subset(index))
    return learner.train(
        x[:_N],  # a view: what is written to it shows
        loss.subset(index),
        x_validation=x[_N:],
        loss_validation=loss.subset(held_out),
    )


def _findings(learner: "Learner", x: Array, y: Array) -> Iterator[str]:
    before = x.copy(), y.copy()
    two_stage = _train(learner, x, squared_error_loss(y), validation=True)
    p = np.asarray(two_stage.predict(x))
    if p.shape != y.shape or not np.isfinite(p).all():
        yield f"`predict` must return finite numbers of shape {y.shape}, got shape {p.shape}."
        return
    if not (np.array_equal(x, before[0]) and np.array_equal(y, before[1])):
        yield "`train` or `predict` changed its arguments."
    slack = _SLACK * y.std()
    if np.abs(two_stage.predict(x[:5]) - p[:5]).max() > slack:
        yield "The prediction for an instance depends on the instances beside it."
    again = _train(learner, x, squared_error_loss(y), validation=True)
    if np.abs(again.predict(x) - p).max() > slack:
        yield "Training twice with the same arguments gives different models: fix its seed."
    if np.mean((p[_N:] - y[_N:]) ** 2) >= np.var(y[_N:]):
        yield "Trained on squared error, it predicts validation labels no better than their mean."
    for validation in (True, False):
        model = _train(learner, x, _directed(y), validation=validation)
        if not np.mean(model.predict(x)) < p.mean() - 0.02 * y.std():
            yield (
                "A loss that punishes predicting too much does not lower the predictions, "
                f"{'with' if validation else 'without'} validation instances: is the loss used?"
            )
    yield from _step_findings(learner, x, y, two_stage)


def _step_findings(learner: "Learner", x: Array, y: Array, trained: "Predictor") -> Iterator[str]:
    n_steps = getattr(trained, "n_steps", None)
    if not isinstance(n_steps, int) or n_steps < 0:
        yield f"`n_steps` of a predictor must be a whole number of at least 0, got {n_steps!r}."
        return
    index = np.arange(_N)
    longer = learner.train(x[index], _directed(y).subset(index), n_steps=n_steps + 1)
    if longer.n_steps != n_steps + 1:
        yield f"Trained for {n_steps + 1} steps, a predictor has `n_steps` = {longer.n_steps}."
