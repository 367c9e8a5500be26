"""Contract check of learners: `check_learner`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lodl._arrays import check_instance_of
from lodl._typing import Array
from lodl.errors import LearnerError, MissingExtraError, ModelFolderError
from lodl.losses import DirectedWeightedMSE, FitErrors, LearnedLoss, squared_error_loss
from lodl.training import Learner, Predictor, load_predictor

_N, _N_STOPPING = 60, 20  # instances that train, and that stop
_OVER, _UNDER = 10.0, 0.1  # costs of predicting too much and too little
_ROUNDING = 1e-6  # share of the labels' deviation: sums in another order
_FAR = 0.02  # share of the labels' deviation: beyond sums in single precision


def check_learner(
    learner: Learner, *, items: bool = False, estimator: Any = None, trusted: Sequence[str] = ()
) -> None:
    """Check that a learner does what `lodl` relies on, with a few short training runs.

    Checked, on labels that are a noisy linear function of the features: `train` returns one model
    per mask, changes no argument, and gives the same models twice and with what `prepare` returned;
    a model does not depend on the other masks, nor on labels outside its own if nothing stops it;
    predictions are finite, have the labels' shape and do not depend on the other instances; squared
    error beats the mean label; a loss that punishes predicting too much for some instances and too
    little for others moves their predictions that way; `n_steps` is a whole number and is obeyed;
    the `mean` of two models predicts their mean; a model that can be saved predicts the same when
    loaded. Raises a `LearnerError` with one line per finding.

    Args:
        learner: The learner to check.
        items: Whether to check features of items, (n, items, p), instead of joint ones, (n, p).
        estimator: The argument of `lodl.training.load_predictor`.
        trusted: The argument of `lodl.training.load_predictor`.
    """
    check_instance_of(Learner, "learner", learner, wanted="an instance of `lodl.training.Learner`")
    loading = {"estimator": estimator, "trusted": trusted}
    if findings := list(_Check(learner, items).findings(loading)):
        title = f"{type(learner).__name__} breaks the contract:"
        raise LearnerError("\n- ".join([title, *findings]))


class _Check:
    """One learner with the data to check it on."""

    def __init__(self, learner: Learner, items: bool) -> None:
        rng, n, n_items, n_features = np.random.default_rng(0), _N + _N_STOPPING, 3, 2
        self.learner = learner
        self.x = rng.normal(size=(n, n_items, n_features) if items else (n, n_features))
        weights = rng.normal(size=(n_features, 1 if items else n_items))
        y = (self.x @ weights).reshape(n, n_items)
        self.y = 30 + 5 * (y + 0.5 * rng.normal(size=y.shape))
        self.masks = np.stack([np.arange(n) < _N, np.arange(n) >= _N_STOPPING])

    def directed(self, y: Array) -> LearnedLoss:
        """Return a loss that punishes too much where the first feature is high, else too little."""
        is_high = np.broadcast_to(self.x[..., :1].reshape(len(y), -1) > 0, y.shape)
        over, under = np.where(is_high, _OVER, _UNDER), np.where(is_high, _UNDER, _OVER)
        phi = {"w_plus": over, "w_minus": under}
        return LearnedLoss(DirectedWeightedMSE(), y, phi, FitErrors.empty(len(y)), {})

    def train(self, loss: LearnedLoss, masks: Any = None, **options: Any) -> Any:
        models = self.learner.train(self.x, loss, masks, **options)
        n_models = 1 if masks is None else len(masks)
        if not isinstance(models, list) or len(models) != n_models:
            raise LearnerError(
                f"`train` of {type(self.learner).__name__} must return a list of {n_models} "
                f"models, one per mask, got {models!r}."
            )
        return models

    def differ(self, first: Any, second: Any, by: float = _ROUNDING) -> bool:
        """Whether two models, or their predictions, differ by a share of the deviation."""
        p, q = (m.predict(self.x) if hasattr(m, "predict") else m for m in (first, second))
        return bool(np.abs(p - q).max() > by * self.y.std())

    def findings(self, loading: dict[str, Any]) -> Iterator[str]:
        before = self.x.copy(), self.y.copy(), self.masks.copy()
        baseline, _ = self.train(squared_error_loss(self.y), self.masks)
        p = np.asarray(baseline.predict(self.x))
        if p.shape != self.y.shape or not np.isfinite(p).all():
            yield f"`predict` must return finite numbers of shape {self.y.shape}, got {p.shape}."
            return
        if not all(map(np.array_equal, before, (self.x, self.y, self.masks))):
            yield "`train` or `predict` changed its arguments."
        if self.differ(baseline.predict(self.x[:5]), p[:5]):
            yield "The prediction for an instance depends on the other instances."
        if np.mean((p[_N:] - self.y[_N:]) ** 2) >= np.var(self.y[_N:]):
            yield "Trained on squared error, it predicts new labels no better than their mean."
        yield from self.loss_findings(p)
        yield from self.step_findings(baseline)
        yield from self.saving_findings(loading)

    def loss_findings(self, baseline: Array) -> Iterator[str]:
        loss = self.directed(self.y)
        model, other = self.train(loss, self.masks)
        y_hat, y_hat_of_all = (m.predict(self.x) for m in (model, *self.train(loss)))
        sign = np.where(loss.phi["w_plus"] == _OVER, -1.0, 1.0)
        for moved, way in ((y_hat, "with"), (y_hat_of_all, "without")):
            shift = sign * (moved - baseline)
            if not min(shift[sign > 0].mean(), shift[sign < 0].mean()) > _FAR * self.y.std():
                yield (
                    "A loss that punishes too much for some instances and too little for others "
                    f"does not move their predictions that way, {way} masks: is the loss used?"
                )
        if self.differ(self.train(loss, self.masks)[0], model):
            yield "Training twice with the same arguments gives different models: fix its seed."
        prepared = self.learner.prepare(self.x, self.y, self.masks)
        self.train(squared_error_loss(self.y), self.masks, prepared=prepared)
        if self.differ(self.train(loss, self.masks, prepared=prepared)[0], model):
            yield "With what `prepare` returned, `train` gives another model."
        if self.differ(self.train(loss, self.masks[1:])[0], other, _FAR):
            yield "A model depends on the other masks."

    def step_findings(self, baseline: Any) -> Iterator[str]:
        n_steps = baseline.n_steps
        if not isinstance(n_steps, int) or n_steps < 0:
            yield f"`n_steps` of a predictor must be a whole number of at least 0, got {n_steps!r}."
            return
        outside = 100 * self.y.std() * ~self.masks[0][:, np.newaxis]
        losses = self.directed(self.y), self.directed(self.y + outside)
        (first,), (second,) = (self.train(a, self.masks[:1], n_steps=n_steps + 1) for a in losses)
        if first.n_steps != n_steps + 1:
            yield f"Trained for {n_steps + 1} steps, a predictor has `n_steps` = {first.n_steps}."
        if self.differ(first, second, _FAR):
            yield "Labels outside its mask change a model that nothing stops."

    def saving_findings(self, loading: dict[str, Any]) -> Iterator[str]:
        model, other = self.train(self.directed(self.y), self.masks, n_steps=1)
        if not isinstance(model, Predictor):
            yield f"`train` must return instances of `lodl.training.Predictor`, got {model!r}."
            return
        together, apart = (
            np.mean([m.predict(self.x) for m in models], axis=0)
            for models in (type(model).mean([model, other]), [model, other])
        )
        if self.differ(together, apart):
            yield "`mean` of two models predicts otherwise than their mean."
        if type(model).save is Predictor.save:
            return
        with TemporaryDirectory() as folder:
            try:
                model.save(Path(folder))
                loaded = load_predictor(folder, **loading)
            except MissingExtraError:
                return
            except ModelFolderError as error:
                yield f"A model cannot be saved or loaded: {error}"
                return
            if loaded.n_steps != model.n_steps or self.differ(loaded, model):
                yield "A saved model is another model when it is loaded."
