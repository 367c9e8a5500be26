"""Learner and Predictor, the contract of every model; when a model stops; how both are found."""

import importlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from lodl._arrays import check_count, check_instance_of
from lodl._json import write_json
from lodl._typing import Array, FilePath, Flags, Masks
from lodl.errors import InvalidInputError, MissingExtraError, ModelFolderError
from lodl.losses import LearnedLoss

_FILE = "predictor.json"
_VERSION = 3
_KINDS: "dict[str, type[Predictor]]" = {}
_MODULES = {  # kinds of predictors, and the modules that register them
    "corrected": "lodl.training.corrected",
    "linear": "lodl.training.linear",
    "torch": "lodl.training.torch",
    "sklearn": "lodl.training.sklearn",
    "xgboost": "lodl.training.boosting.xgboost",
    "lightgbm": "lodl.training.boosting.lightgbm",
    "catboost": "lodl.training.boosting.catboost",
}
_LEARNERS = {  # the class of estimators in a package, and our learner
    "torch": ("nn.Module", "TorchLearner"),
    "xgboost": ("XGBRegressor", "XGBoostLearner"),
    "lightgbm": ("LGBMRegressor", "LightGBMLearner"),
    "catboost": ("CatBoostRegressor", "CatBoostLearner"),
}


class Predictor(ABC):
    """A trained model. A subclass with a `kind` that overrides `save` and `load` has a file format.

    `n_features` and `label_shape` are needed only to save the model.
    """

    kind: ClassVar[str]  #: Unique name of the class in files.
    n_steps: int  #: Length of the training: steps, trees or rounds, whatever the learner counts.
    n_features: int  #: Number of features.
    label_shape: tuple[int, ...]  #: Shape of a label.

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            known = _KINDS.setdefault(cls.kind, cls)
            if known.__qualname__ != cls.__qualname__:
                raise TypeError(f"`kind` must be unique, but {known} is {cls.kind!r} already.")
            _KINDS[cls.kind] = cls

    @abstractmethod
    def predict(self, x: Any) -> Array:
        """Return predictions of shape (n, *label_shape)."""

    def save(self, folder: FilePath) -> None:
        """Write the model to a folder that `lodl.training.load_predictor` reads."""
        raise ModelFolderError(
            f"{type(self).__name__} cannot be saved to {str(folder)!r}: it has no file format. "
            "Give the class a `kind`, and override `save` and `load`."
        )

    @classmethod
    def load(cls, folder: Path, *, estimator: Any = None, trusted: Sequence[str] = ()) -> Self:  # noqa: ARG003
        """Return the model that `save` wrote to a folder. Called by `load_predictor`."""
        raise unusable(folder, f"{cls.__name__} does not override `load`")

    @classmethod
    def mean(cls, predictors: Sequence[Self]) -> list[Self]:
        """Return models with the same mean prediction, one if the class can average."""
        return list(predictors)

    def write(self, folder: FilePath, **content: Any) -> Path:
        """Write `predictor.json` for `save`. Returns the folder, created if necessary."""
        path = Path(folder)
        names = ("kind", "n_steps", "n_features", "label_shape")
        record = {"version": _VERSION, **{name: getattr(self, name) for name in names}, **content}
        write_json(path / _FILE, record)
        return path

    @staticmethod
    def read(folder: FilePath) -> dict[str, Any]:
        """Return the content of `predictor.json` for `load`."""
        if not (Path(folder) / _FILE).is_file():
            raise unusable(folder, f"there is no {_FILE} in it")
        try:
            content = json.loads((Path(folder) / _FILE).read_text(encoding="utf-8"))
            kind, version = content["kind"], content["version"]
            if not isinstance(kind, str) or version != _VERSION:
                reads = f"this package reads version {_VERSION}"
                raise unusable(folder, f"it is of kind {kind!r} and version {version!r}; {reads}")
            check_count("n_features", content["n_features"])
            check_count("n_steps", content["n_steps"], minimum=0)
            label_shape = tuple(check_count("label_shape", n) for n in content["label_shape"])
            if not label_shape:
                raise ValueError("`label_shape` is empty")
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise unusable(folder, f"its {_FILE} is damaged ({error})") from error
        return {**content, "label_shape": label_shape}


class Learner(ABC):
    """Trains models on a learned loss. `lodl.testing.check_learner` checks a custom learner.

    Features have shape (n, p), from which the whole label is predicted, or (n, items, p), where one
    model predicts each item's part of it. The baseline is `lodl.losses.squared_error_loss(y)`.
    """

    #: Whether features may be pandas or polars frames. Other learners get arrays.
    takes_frames: ClassVar[bool] = False
    #: Whether instances outside a mask stop the training on squared error.
    stops_early: ClassVar[bool] = False

    @property
    def max_steps(self) -> int | None:
        """Steps of a second baseline that nothing stops. None if it would not be worth training."""
        return None

    def prepare(self, x: Any, y: Array, masks: Masks | None = None) -> Any:
        """Return what losses share, for every `train` with the same features, labels and masks."""
        return None

    def train_plainly(self, x: Any, y: Array) -> Predictor | None:
        """Return the estimator as its user would fit it, if `train` stops it early."""
        return None

    @abstractmethod
    def train(
        self,
        x: Any,
        loss: LearnedLoss,
        masks: Masks | None = None,
        *,
        prepared: Any = None,
        n_steps: int | None = None,
    ) -> Sequence[Predictor]:
        """Train one model per mask. The same arguments give the same models.

        Args:
            x: Features of all instances.
            loss: Their loss, in the same order.
            masks: Which instances each model trains on, shape (n_models, n). It has the state in
                which the mean loss of the others was least. Defaults to one model of all instances.
            prepared: The result of `prepare` for the same features, labels and masks.
            n_steps: How many steps to train, such as the `n_steps` of a model that was stopped.
                Nothing stops the models then. Defaults to the learner's choice.
        """


class EarlyStopping:
    """The best step of each model, and the models that go on.

    A model stops more than `patience` steps after its best score. If `patience` is None, no model
    stops, and its last step counts as the best. Scores that are NaN are never better, nor are those
    above zero that are lower by less than the share `least_gain`.
    """

    def __init__(self, patience: int | None, n_models: int, least_gain: float = 0.0) -> None:
        self.patience, self.least_gain = patience, least_gain
        self.running = np.arange(n_models)  # models that go on, as numbers from 0
        self.is_better = np.zeros(n_models, dtype=np.bool_)  # at the last update
        self.best_scores = np.full(n_models, np.inf)
        self.best_steps = np.zeros(n_models, dtype=np.int64)
        self.last_steps = np.zeros(n_models, dtype=np.int64)  # last step at which a model ran

    def update(self, scores: Array, step: int) -> Flags:
        """Take the scores of the running models. Returns which of them go on, as booleans."""
        running = self.running
        self.last_steps[running] = step
        least = (1 - self.least_gain) * self.best_scores[running]
        self.is_better = (scores < least) | (self.patience is None)
        improved = running[self.is_better]
        self.best_scores[improved] = scores[self.is_better]
        self.best_steps[improved] = step
        if self.patience is None:
            return self.is_better
        going_on: Flags = step - self.best_steps[running] <= self.patience
        self.running = running[going_on]
        return going_on


def learner_for(estimator: Any, *, seed: int = 0) -> Learner:
    """Return the learner of an estimator. Frameworks are imported only if they are needed.

    Args:
        estimator: None for a linear model, a PyTorch module, a regressor of XGBoost, LightGBM or
            CatBoost, a scikit-learn regressor or pipeline, or a `Learner`, returned unchanged.
        seed: Random seed of the training.

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> type(lodl.training.learner_for(Ridge())).__name__
        'SklearnLearner'
    """
    if estimator is None:
        linear: Learner = importlib.import_module("lodl.training.linear").LinearLearner()
        return linear
    check_instance_of(object, "estimator", estimator, wanted="an estimator")  # not its class
    if isinstance(estimator, Learner):
        return estimator
    for package, (kind, learner) in _LEARNERS.items():
        module = sys.modules.get(package)
        if module is not None and isinstance(estimator, attrgetter(kind)(module)):
            return _learner(package, learner, estimator, seed)
    is_regressor = hasattr(estimator, "predict") or hasattr(estimator, "get_params")
    if hasattr(estimator, "fit") and is_regressor:  # searches get `predict` when they are fitted
        return _learner("sklearn", "SklearnLearner", estimator, seed)
    raise InvalidInputError(
        "`estimator` must be None, a PyTorch module, a scikit-learn regressor or a subclass of "
        f"`lodl.training.Learner`, got {estimator!r}."
    )


def _learner(kind: str, name: str, estimator: Any, seed: int) -> Learner:
    learner: Learner = getattr(importlib.import_module(_MODULES[kind]), name)(estimator, seed=seed)
    return learner


def load_predictor(
    folder: FilePath, estimator: Any = None, *, trusted: Sequence[str] = ()
) -> Predictor:
    """Return the model that a predictor's `save` wrote to a folder.

    Nothing in the folder is code, and no pickle is read. Import the class of a custom model first.

    Args:
        folder: The folder.
        estimator: The untrained PyTorch module, if one was saved.
        trusted: Types that a scikit-learn model may hold besides harmless ones; errors name them.

    Raises:
        ModelFolderError: The folder cannot be used; the message gives the reason.
        MissingExtraError: The model's framework is not installed.
    """
    kind = Predictor.read(folder)["kind"]
    if kind not in _KINDS and kind in _MODULES:
        importlib.import_module(_MODULES[kind])
    if kind not in _KINDS:
        raise unusable(
            folder,
            f"it is of kind {kind!r}, which is none of {', '.join(sorted({*_MODULES, *_KINDS}))}. "
            "Import the module that defines its class first",
        )
    try:
        return _KINDS[kind].load(Path(folder), estimator=estimator, trusted=trusted)
    except (MissingExtraError, ModelFolderError):
        raise
    except Exception as error:  # frameworks raise anything for damaged files
        raise unusable(folder, f"a part of it is missing or damaged ({error})") from error


def file_in(folder: Path, name: str) -> Path:
    """Return a file of a model. Anything but a regular file is refused: a pipe would hang."""
    path = folder / name
    if not path.is_file():
        raise unusable(folder, f"{name} is missing or damaged: it is not a regular file")
    return path


def unusable(path: object, reason: str) -> ModelFolderError:
    """Return an error that names the folder and the reason why it cannot be used."""
    return ModelFolderError(f"The model in {str(path)!r} cannot be used: {reason.rstrip('.')}.")
