"""TorchPredictor: trained modules with their scales, and their file."""

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
from lodl.training._learner import Predictor, file_in, unusable
from lodl.training.torch._stack import as_tensor

_FILE = "model.safetensors"


@dataclass(frozen=True, eq=False)
class TorchPredictor(Predictor):
    """The mean of several trained modules, in the labels' own unit.

    Attributes:
        modules: The modules, of one architecture.
        features: The scale of features.
        labels: The scale of outputs.
        n_steps: Steps of training, the mean over the modules.
    """

    kind: ClassVar[str] = "torch"
    modules: tuple[nn.Module, ...]
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
        scaled = self.features.scaled(check_numbers(x, n_features=self.n_features))
        total = 0.0
        with torch.no_grad():
            for module in self.modules:
                outputs = module.eval()(as_tensor(scaled, module))
                total = total + outputs.double().cpu().numpy()
        return np.asarray(self.labels.centre + self.labels.spread * total / len(self.modules))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the state of the modules to a folder. The code of a module is not in it."""
        content = {
            "n_steps": self.n_steps,
            "n_modules": len(self.modules),
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
        for i, copy in enumerate(modules):
            _load_state(copy, f"{i}.", tensors, folder)
        features, labels = (
            Scaling(tensors[f"{scale}.centre"].numpy(), tensors[f"{scale}.spread"].numpy())
            for scale in ("features", "labels")
        )
        n_steps = check_count("n_steps", content["n_steps"], minimum=0)
        return cls(tuple(modules), features, labels, n_steps)


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
