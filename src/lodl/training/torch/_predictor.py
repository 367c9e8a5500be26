"""TorchPredictor: trained modules with their scales, and their file."""

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.training._features import Scaling, check_numbers
from lodl.training._learner import Predictor, file_in, shape_in, unusable
from lodl.training.torch._mlp import mlp
from lodl.training.torch._stack import device_of, dtype_of

_FILE = "model.safetensors"


@dataclass(frozen=True)
class LinearShape:
    """The arguments of a built-in linear model.

    Attributes:
        n_features: Size of the last axis of the features.
        label_shape: Shape of a label.
        n_items: Number of items that one model predicts, or None if features are joint.
    """

    n_features: int
    label_shape: tuple[int, ...]
    n_items: int | None

    def model(self, seed: int = 0) -> nn.Module:
        """Return the model, in double precision."""
        model = mlp(self.n_features, self.label_shape, hidden=(), n_items=self.n_items, seed=seed)
        return model.double()


@dataclass(frozen=True, eq=False)
class TorchPredictor(Predictor):
    """The mean of several trained modules, in the labels' own unit.

    Attributes:
        modules: The modules, of one architecture.
        linear: The shape of built-in linear models. None for the user's modules.
        features: The scale of features.
        labels: The scale of outputs.
        n_steps: Steps of training, the mean over the modules.
    """

    kind: ClassVar[str] = "torch"
    modules: tuple[nn.Module, ...]
    linear: LinearShape | None
    features: Scaling
    labels: Scaling
    n_steps: int

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of features."""
        return len(self.features.centre)

    @property
    def label_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Shape of a label."""
        return np.shape(self.labels.centre)

    def predict(self, x: Any) -> Array:
        checked = check_numbers(x, n_features=self.n_features)
        scaled = self.features.scaled(checked)
        total = 0.0
        with torch.no_grad():
            for module in self.modules:
                inputs = torch.as_tensor(scaled, dtype=dtype_of(module), device=device_of(module))
                total = total + module.eval()(inputs).double().cpu().numpy()
        return np.asarray(self.labels.centre + self.labels.spread * total / len(self.modules))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the state of the modules to a folder. The code of a module is not in it."""
        content = {
            "n_steps": self.n_steps,
            "n_modules": len(self.modules),
            "linear": None if self.linear is None else asdict(self.linear),
            "module": type(self.modules[0]).__qualname__,
        }
        path = self.write(folder, content)
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
        linear = _linear_shape(content, tensors)
        module = estimator if linear is None else linear.model()
        if not isinstance(module, nn.Module):
            raise unusable(
                folder,
                f"it holds the state of a PyTorch module ({content['module']}), not its code: hand "
                f"over the untrained module as `estimator`, got {module!r}",
            )
        n_modules = check_count("n_modules", content["n_modules"])
        if n_modules > len(tensors):
            raise ValueError(f"`n_modules` is {n_modules} for {len(tensors)} tensors")
        modules = [deepcopy(module).eval() for _ in range(n_modules)]
        for i, copy in enumerate(modules):
            _load_state(copy, f"{i}.", tensors, folder)
        features, labels = (
            Scaling(tensors[f"{scale}.centre"].numpy(), tensors[f"{scale}.spread"].numpy())
            for scale in ("features", "labels")
        )
        n_steps = check_count("n_steps", content["n_steps"], minimum=0)
        return cls(tuple(modules), linear, features, labels, n_steps)


def _linear_shape(content: Mapping[str, Any], tensors: dict[str, Tensor]) -> LinearShape | None:
    """Return the shape of a built-in linear model, or None if the module is the user's."""
    if content["linear"] is None:
        return None
    values = content["linear"]
    n_features, n_items = check_count("n_features", values["n_features"]), values["n_items"]
    label_shape = shape_in(values)
    n_outputs = math.prod(label_shape) // (
        1 if n_items is None else check_count("n_items", n_items)
    )
    if n_features * n_outputs > sum(rows.numel() for rows in tensors.values()):
        raise ValueError("its tensors are too small for its features and labels")
    return LinearShape(n_features, label_shape, n_items)


def _load_state(module: nn.Module, prefix: str, tensors: dict[str, Tensor], folder: Path) -> None:
    start = len(prefix)
    state = {name[start:]: rows for name, rows in tensors.items() if name.startswith(prefix)}
    kinds = {rows.dtype for rows in state.values() if rows.dtype.is_floating_point}
    if len(kinds) == 1:
        module.to(kinds.pop())
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise unusable(folder, f"`estimator` is another architecture ({error})") from error
