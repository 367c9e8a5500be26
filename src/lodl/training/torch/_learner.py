"""Any PyTorch module, trained on a learned loss: `TorchLearner` and `TorchPredictor`."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lodl._arrays import check_count
from lodl._threads import one_torch_thread
from lodl._typing import Array, Masks
from lodl.errors import InvalidInputError
from lodl.losses import LearnedLoss, is_squared_error, squared_error_loss
from lodl.training._features import Scaling, check_masks, check_numbers, count_items, inner_folds
from lodl.training._learner import Learner, Predictor, file_in, unusable
from lodl.training.torch._criterion import LearnedLossModule
from lodl.training.torch._loop import Criterion, TrainingSettings, as_tensor, train_masked

_FILE = "model.safetensors"
_SETTINGS = TrainingSettings(learning_rate=5e-3, n_steps=400, patience=25)
_FROM_BASELINE = replace(_SETTINGS, learning_rate=2e-3, patience=15)
_MORE_PATIENCE = 15  # steps, with batches
_N_FOR_BATCHES = 800  # rows, of instances or of their items
_BATCH_ROWS, _MIN_BATCH, _MAX_BATCH = 2000, 32, 256  # rows of a batch, and limits in instances
_N_FOLDS = 5  # one of which stops the baseline if nothing else does


@dataclass(frozen=True, eq=False)
class TorchPredictor(Predictor):
    """The mean of several trained modules, in the labels' own unit."""

    kind: ClassVar[str] = "torch"
    modules: tuple[nn.Module, ...]  # they share an architecture
    features: Scaling
    labels: Scaling  # outputs are scaled labels
    n_steps: int  # mean over the modules

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.features.centre)

    @property
    def label_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return np.shape(self.labels.centre)

    def predict(self, x: Any) -> Array:
        scaled = self.features.scaled(check_numbers(x, n_features=self.n_features))
        total = 0.0
        with torch.no_grad():
            for module in self.modules:
                outputs = module.eval()(as_tensor(scaled, module))
                total = total + outputs.double().cpu().numpy()
        return np.asarray(self.labels.centre + self.labels.spread * total / len(self.modules))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the state of the modules to a folder. The code of a module is not in it."""
        kind = type(self.modules[0]).__qualname__
        path = self.write(folder, n_modules=len(self.modules), module=kind)
        tensors = {
            f"{scale}.{name}": torch.as_tensor(values)
            for scale in ("features", "labels")
            for name, values in asdict(getattr(self, scale)).items()
        }
        for i, module in enumerate(self.modules):
            for name, rows in module.state_dict().items():
                tensors[f"{i}.{name}"] = rows.detach().cpu().clone().contiguous()
        save_file(tensors, path / _FILE)

    @classmethod
    def load(cls, folder: Path, *, estimator: Any = None, **_: Any) -> "TorchPredictor":
        content = cls.read(folder)
        try:
            tensors = load_file(file_in(folder, _FILE))
        except SafetensorError as error:
            raise unusable(folder, f"its {_FILE} is damaged ({error})") from error
        if not isinstance(estimator, nn.Module):
            raise unusable(
                folder,
                f"it holds the state of a PyTorch module ({content['module']}), not its code: hand "
                f"over the untrained module as `estimator`, got {estimator!r}",
            )
        n_modules = check_count("n_modules", content["n_modules"])
        if n_modules > len(tensors):
            raise ValueError(f"`n_modules` is {n_modules} for {len(tensors)} tensors")
        modules = [deepcopy(estimator).eval() for _ in range(n_modules)]
        for i, module in enumerate(modules):
            own = [name for name in tensors if name.startswith(f"{i}.")]
            state = {name.removeprefix(f"{i}."): tensors[name] for name in own}
            kinds = {rows.dtype for rows in state.values() if rows.dtype.is_floating_point}
            if len(kinds) == 1:
                module.to(kinds.pop())
            try:
                module.load_state_dict(state)
            except RuntimeError as error:
                raise unusable(folder, f"`estimator` is another architecture ({error})") from error
        features, labels = (
            Scaling(tensors[f"{scale}.centre"].numpy(), tensors[f"{scale}.spread"].numpy())
            for scale in ("features", "labels")
        )
        return cls(tuple(modules), features, labels, content["n_steps"])


@dataclass(frozen=True, eq=False)
class TorchLearner(Learner):
    """Train a module on a learned loss, from several initial states, with Adam.

    Features and labels are standardised by the instances that train the model, so a module that
    predicts numbers around 0 and 1 suits labels in any unit. The prediction is the mean over the
    initial states. On a loss made of decisions, training continues from the baseline.

    Example:
        >>> from lodl.training.torch import TorchLearner, mlp
        >>> x, y = np.arange(8.0).reshape(4, 2), np.arange(12.0).reshape(4, 3)
        >>> learner = TorchLearner(mlp(2, (3,)), n_initialisations=1)
        >>> (model,) = learner.train(x, lodl.learn_loss(lodl.domains.TopK(1), y), n_steps=10)
        >>> model.predict(x).shape
        (4, 3)
    """

    stops_early = True

    #: Maps features (n, p), or (n, items, p), to the shape of the labels, on any device. It is not
    #: changed.
    module: nn.Module
    #: Number of initial states: the module's own, then new ones by its layers' `reset_parameters`.
    n_initialisations: int = 2
    #: How fast and how long to train. Defaults to at most 400 steps, in batches if there are at
    #: least 800 instances or items of all instances.
    settings: TrainingSettings | None = None
    #: Whether outputs are scaled. Turn it off if the range of the last layer, such as a ReLU or a
    #: tanh, is meant for the labels themselves.
    scale_labels: bool = True
    seed: int = 0  #: Random seed for initial states, batches and dropout.

    def __post_init__(self) -> None:
        check_count("n_initialisations", self.n_initialisations)
        if not any(parameter.requires_grad for parameter in self.module.parameters()):
            wanted = "a parameter to train"
            raise InvalidInputError(f"`module` must have {wanted}, got none with `requires_grad`.")

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> "_Prepared":
        return _Prepared(self, check_numbers(x, len(y)), y, check_masks(masks, len(y)))

    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: "_Prepared | None" = None,
        n_steps: int | None = None,
    ) -> list[TorchPredictor]:
        known = prepared or self.prepare(x, loss.y, masks)
        stops = n_steps is None and not known.masks.all()
        if stops and is_squared_error(loss):
            return known.baseline
        starts = known.starts if loss.family.uses_slopes else known.initial
        return known.trained(loss, starts, n_steps, stops=stops)


class _Prepared:
    """Scales and initial modules of each mask, and the baseline, trained on first use."""

    def __init__(self, learner: TorchLearner, x: Array, y: Array, masks: Masks) -> None:
        self.learner, self.x, self.y, self.masks = learner, x, y, masks
        _check_outputs(learner.module, x, y.shape[1:])
        self.n_items = count_items(x, y)
        self.features = [Scaling.of_features(x[mask]) for mask in masks]
        self.labels = [Scaling(np.zeros(y.shape[1:]), np.ones(y.shape[1:])) for _ in masks]
        if learner.scale_labels:
            self.labels = [Scaling.of_labels(y[mask], self.n_items) for mask in masks]
        n = learner.n_initialisations
        seeds = range(learner.seed * n + 1, (learner.seed + 1) * n)
        modules = [learner.module, *(_reset(deepcopy(learner.module), seed) for seed in seeds)]
        self.initial: list[Sequence[nn.Module]] = [modules for _ in masks]

    @cached_property
    def baseline(self) -> list[TorchPredictor]:
        """Models of squared error, stopped by the instances outside their masks."""
        return self.trained(squared_error_loss(self.y), self.initial, None, stops=True)

    @cached_property
    def starts(self) -> list[Sequence[nn.Module]]:
        """Modules of the baseline. If nothing stops it, a fifth of the instances says how long."""
        loss, n = squared_error_loss(self.y), len(self.y)
        if not self.masks.all():
            models = self.baseline
        elif n < _N_FOLDS:
            models = self.trained(loss, self.initial, None, stops=False)
        else:
            _, part = next(inner_folds(n, _N_FOLDS, self.learner.seed))
            masks = ~np.isin(np.arange(n), part)[np.newaxis]
            (stopped,) = self.learner.train(self.x, loss, masks)
            models = self.trained(loss, self.initial, stopped.n_steps, stops=False)
        return [model.modules for model in models]

    def trained(
        self,
        loss: LearnedLoss,
        starts: list[Sequence[nn.Module]],
        n_steps: int | None,
        *,
        stops: bool,
    ) -> list[TorchPredictor]:
        """Return a model per mask, trained from its start for `n_steps`, or until it stops."""
        settings, n_items = self.learner.settings, self.n_items or 1
        if settings is None:
            settings = _FROM_BASELINE if loss.family.uses_slopes else _SETTINGS
            settings = replace(settings, seed=self.learner.seed)
            if len(self.y) * n_items >= _N_FOR_BATCHES:
                batch_size = min(max(_BATCH_ROWS // n_items, _MIN_BATCH), _MAX_BATCH)
                batched: Any = {"batch_size": batch_size, "validate_every": 10}
                settings = replace(settings, **batched, patience=settings.patience + _MORE_PATIENCE)
        if n_steps is not None:
            settings = replace(settings, n_steps=n_steps)
        # Modules may work in single precision, relative to a scale for all in double precision.
        common, module = Scaling.of_features(self.x), self.learner.module
        scales = (
            [common.scaled(scale.centre) for scale in self.features],
            [scale.spread / common.spread for scale in self.features],
            [scale.centre for scale in self.labels],
            [scale.spread for scale in self.labels],
        )
        with one_torch_thread():
            trained = train_masked(
                starts,
                common.scaled(self.x),
                _criterion(loss, module),
                self.masks,
                tuple(as_tensor(np.stack(part), module) for part in scales),
                settings,
                stops=stops,
            )
        results = zip(trained, self.features, self.labels, strict=True)
        return [TorchPredictor(modules, xs, ys, steps) for (modules, steps), xs, ys in results]


def _criterion(loss: LearnedLoss, module: nn.Module) -> Criterion:
    """Return a loss in a unit in which it is of ordinary size: Adam should not see the unit."""
    first = next(module.parameters())
    losses = LearnedLossModule(loss, reduction="none", dtype=first.dtype).to(first.device)
    mean = np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)
    unit = float(loss.value(mean).mean()) or 1.0

    def criterion(y_hat: Tensor, index: Tensor) -> Tensor:
        at = None if len(index) == loss.n_instances else index  # all are in order
        if torch.is_grad_enabled():  # then only the slope counts
            return (losses.gradient(y_hat, at) / unit * y_hat).flatten(2).sum(dim=-1)
        values: Tensor = losses(y_hat, at)
        return values / unit

    return criterion


def _check_outputs(module: nn.Module, x: Array, label_shape: tuple[int, ...]) -> None:
    """Check that a module takes the features and returns predictions of the labels' shape."""
    first = as_tensor(x[:2], module)
    try:
        with torch.no_grad():
            outputs = deepcopy(module).eval()(first)
    except RuntimeError as error:
        raise InvalidInputError(
            f"`module` must take features of shape (n, *{x.shape[1:]}): {error}"
        ) from error
    got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if got != (len(first), *label_shape):
        raise InvalidInputError(
            f"`module` must return a tensor of shape (n, *{label_shape}), as the labels have, got "
            f"{got} for {len(first)} instances."
        )


def _reset(module: nn.Module, seed: int) -> nn.Module:
    """Draw new initial parameters in every layer that can."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in module.modules():
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()
    return module
