"""`LearnedLoss`: a family with parameters for every instance, and the errors of its fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl import _arrays as checks
from lodl._html import notebook_html
from lodl._typing import Array, FilePath
from lodl.errors import InvalidInputError, LossFileError
from lodl.losses._family import Family, Parameters, shapes_like
from lodl.losses._loss_file import read_loss, write_loss
from lodl.losses._shared_slopes import SharedSlopes, join_slopes, split_slopes

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class FitStatus(IntEnum):
    """Whether an instance was fitted, or why it has a fallback loss: a weak squared error."""

    FITTED = 0
    NOTHING_TO_DECIDE = 1  # no regret is above zero
    NO_SAMPLES = 2  # too few solver calls succeeded


@dataclass(frozen=True, eq=False)
class FitErrors:
    """Errors of each instance's loss on fitted and held-out samples.

    Every field has shape (n_instances,) and is NaN if it is not defined. Regret families have mean
    absolute errors and R2; decision families, which do not repeat regrets, two shares instead.
    """

    mae_fitted: Array  #: Mean absolute error on fitted samples.
    mae_held_out: Array  #: Mean absolute error on held-out samples.
    r2_held_out: Array  #: Share of the variance of held-out regrets that is explained.
    rank_correlation_held_out: Array  #: Of loss and regret on held-out samples.
    met_held_out: Array  #: Share of the costly held-out samples that led to a known decision.
    #: Share of the held-out samples whose decision is the cheapest by slope.
    explained_held_out: Array
    mean_regret: Array  #: Mean regret of all samples.
    n_fitted: npt.NDArray[np.int64]  #: Number of fitted samples.
    n_held_out: npt.NDArray[np.int64]  #: Number of held-out samples.
    status: npt.NDArray[np.int8]  #: A `FitStatus`.

    @classmethod
    def dtypes(cls) -> dict[str, np.dtype[Any]]:
        """Return the type of each field."""
        whole = {"n_fitted": np.int64, "n_held_out": np.int64, "status": np.int8}
        return {field.name: np.dtype(whole.get(field.name, np.float64)) for field in fields(cls)}

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, float]]) -> FitErrors:
        """Return the errors of all instances from the fields that each has, by name."""
        columns = {}
        for name, dtype in cls.dtypes().items():
            missing = np.nan if dtype.kind == "f" else 0
            columns[name] = np.array([row.get(name, missing) for row in rows], dtype)
        return cls(**columns)

    @classmethod
    def empty(cls, n_instances: int) -> FitErrors:
        """Return fields without values: NaN, and 0 for whole numbers."""
        missing = {"f": np.nan, "i": 0}
        return cls(**{k: np.full(n_instances, missing[t.kind], t) for k, t in cls.dtypes().items()})

    def arrays(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, index: Any) -> FitErrors:
        """Return the errors of the instances `index`."""
        return FitErrors(**{name: rows[index] for name, rows in self.arrays().items()})


@dataclass(frozen=True, eq=False, repr=False)
class LearnedLoss:
    """A locally optimized decision loss for every instance.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> loss = lodl.learn_loss(lodl.domains.TopK(1), y)
        >>> loss.value(y), loss.gradient(y).shape
        (array([0., 0.]), (2, 2))
        >>> loss.value([[1.0, 0.0]], index=[1]) > 0  # the second instance, with the wrong item
        array([ True])
        >>> loss.subset([1]).y
        array([[0., 2.]])
    """

    family: Family  #: The parametric loss.
    y: Array  #: Labels, shape (n_instances, *label_shape), at which each loss is zero.
    #: Parameters, each of shape (n_instances, *shape of the parameter). Slopes of decisions that
    #: instances share are no array, but `np.asarray` makes one.
    phi: Parameters
    errors: FitErrors  #: Errors of the fit.
    #: Sampler, seed, problem, version of lodl and others, as JSON values.
    provenance: Mapping[str, Any]

    def __post_init__(self) -> None:
        if len(self.y.shape) < 2 or 0 in self.y.shape:
            wanted = "shape (n_instances, *label_shape)"
            raise InvalidInputError(f"`y` must have {wanted}, got {self.y.shape}.")
        own_shapes = {name: rows.shape[1:] for name, rows in self.phi.items()}
        shapes = shapes_like(self.family, own_shapes, self.dim)
        if set(self.phi) != set(shapes):
            wanted = f"the parameters {sorted(shapes)}"
            got = sorted(self.phi)
            raise InvalidInputError(f"`phi` of {self.family} must have {wanted}, got {got}.")
        _check_numbers("y", self.y, self.y.shape)
        for name, shape in shapes.items():
            _check_numbers(f"phi[{name!r}]", self.phi[name], (self.n_instances, *shape))
        for name in self.family.non_negative:
            if (self.phi[name] < 0).any():
                raise InvalidInputError(
                    f"`phi[{name!r}]` of {self.family} must not be negative, "
                    f"got {self.phi[name].min()}."
                )
        for name, rows in self.errors.arrays().items():
            _check_shape(f"errors.{name}", rows, (self.n_instances,))

    def __repr__(self) -> str:
        n, shape = self.n_instances, self.label_shape
        return f"LearnedLoss({self.family}, n_instances={n}, label_shape={shape})"

    def _repr_html_(self) -> str:
        fitted = int(np.sum(self.errors.status == FitStatus.FITTED))
        rows = {
            "family": str(self.family),
            "instances": f"{self.n_instances:,}, of which {fitted:,} were fitted",
            "label shape": str(self.label_shape),
            "problem": str(self.provenance.get("problem", "")),
        }
        return notebook_html("LearnedLoss", (), rows.items())

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.y)

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Shape of one label."""
        return tuple(self.y.shape[1:])

    @property
    def dim(self) -> int:
        """Number of values in a label."""
        return prod(self.label_shape)

    def value(self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None = None) -> Array:
        """Return the loss of one prediction per instance, shape (n,).

        Args:
            y_hat: Predictions, shape (n, *label_shape).
            index: The instances of the predictions, shape (n,). Defaults to all, in order.
        """
        _, phi, d = self._at(y_hat, index)
        return np.asarray(self.family.value(phi, d)[:, 0])

    def gradient(self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None = None) -> Array:
        """Return the gradient with respect to the predictions, shape (n, *label_shape)."""
        y, phi, d = self._at(y_hat, index)
        return np.asarray(self.family.gradient(phi, d).reshape(y.shape))

    def curvature(self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None = None) -> Array:
        """Return the diagonal of the second derivative, shape (n, *label_shape)."""
        y, phi, d = self._at(y_hat, index)
        return np.asarray(self.family.curvature(phi, d).reshape(y.shape))

    def subset(self, index: npt.ArrayLike) -> LearnedLoss:
        """Return the loss of the instances `index`, in that order."""
        y, phi = self._rows(index)
        errors = self.errors.take(np.asarray(index))
        provenance = {"subset_of": self.n_instances, **self.provenance}
        return LearnedLoss(self.family, y, phi, errors, provenance)

    def check_labels(self, y: npt.ArrayLike) -> None:
        """Check that `y` are the labels of this loss, in single precision if either array is."""
        labels = checks.check_labels(y)
        if labels.shape != self.y.shape:
            wanted = f"the labels the loss was learned for, shape {self.y.shape}"
            got = f"shape {labels.shape}. For some of its instances, use `loss.subset(index)`"
            raise InvalidInputError(f"`y` must be {wanted}, got {got}.")
        single = np.dtype(np.float32) in (self.y.dtype, np.asarray(y).dtype)
        dtype = np.float32 if single else np.float64
        differs = labels.astype(dtype, copy=False) != self.y.astype(dtype, copy=False)
        if differs.any():
            raise InvalidInputError(
                "`y` must be the labels the loss was learned for, in the same order: instance "
                f"{np.argwhere(differs)[0, 0]} differs."
            )

    def save(self, path: FilePath) -> None:
        """Write the loss to a file that `load_loss` reads (safetensors)."""
        phi = split_slopes(self.phi)
        arrays = {"y": self.y} | {f"phi.{name}": rows for name, rows in phi.items()}
        for name, dtype in FitErrors.dtypes().items():
            arrays[f"errors.{name}"] = getattr(self.errors, name).astype(dtype, copy=False)
        write_loss(Path(path), self.family, arrays, dict(self.provenance))

    def _at(
        self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None
    ) -> tuple[Array, Parameters, Array]:
        """Return labels, parameters and errors (n, 1, D) of predictions."""
        y, phi = (self.y, self.phi) if index is None else self._rows(index)
        d = checks.check_predictions(y_hat, y) - y
        return y, phi, d.reshape(len(d), 1, self.dim)

    def _rows(self, index: npt.ArrayLike) -> tuple[Array, Parameters]:
        """Return labels and parameters of the instances `index`."""
        selected = np.asarray(index)
        if selected.ndim != 1 or not len(selected) or selected.dtype.kind not in "iu":
            wanted = "a list of at least one whole number"
            got = f"{selected.dtype} of shape {selected.shape}. A mask? Use `np.flatnonzero(mask)`"
            raise InvalidInputError(f"`index` must be {wanted}, got {got}.")
        if selected.min() < 0 or selected.max() >= self.n_instances:
            got = f"{selected.min()} to {selected.max()}"
            raise InvalidInputError(f"`index` must be from 0 to {self.n_instances - 1}, got {got}.")
        return self.y[selected], {name: rows[selected] for name, rows in self.phi.items()}


def load_loss(path: FilePath, y: npt.ArrayLike | None = None) -> LearnedLoss:
    """Read a learned loss from a file written by `LearnedLoss.save`.

    Args:
        path: The file.
        y: Labels that the loss must have been learned for. Not checked by default.

    Raises:
        LossFileError: The file cannot be used; the message gives the reason.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> lodl.learn_loss(lodl.domains.TopK(1), y).save("items.safetensors")
        >>> lodl.load_loss("items.safetensors", y=y).n_instances
        2
    """
    if y is not None:
        checks.check_labels(y)  # outside the `try`: a bad argument is not the file's fault
    if Path(path).is_dir():
        raise LossFileError(f"{path} is a folder, not a loss file. A store is for `lodl.Oracle`.")
    try:
        family, arrays, provenance = read_loss(Path(path))
        phi = {key.removeprefix("phi."): rows for key, rows in arrays.items() if key[:4] == "phi."}
        dtypes = FitErrors.dtypes()
        expected = {"y", *(f"phi.{name}" for name in phi), *(f"errors.{name}" for name in dtypes)}
        if set(arrays) != expected:
            raise ValueError(f"its arrays are {sorted(arrays)}, not {sorted(expected)}")
        errors = {name: arrays[f"errors.{name}"] for name in dtypes}
        for name, dtype in dtypes.items():
            if errors[name].dtype != dtype:
                raise ValueError(f"`errors.{name}` is {errors[name].dtype}, not {dtype}")
        loss = LearnedLoss(family, arrays["y"], join_slopes(phi), FitErrors(**errors), provenance)
        if y is not None:
            loss.check_labels(y)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        reason = str(error).rstrip(".")
        raise LossFileError(f"The loss file {str(path)!r} cannot be used: {reason}.") from error
    return loss


def _check_shape(name: str, rows: Any, shape: tuple[int, ...]) -> None:
    if tuple(rows.shape) != shape:
        raise InvalidInputError(f"`{name}` must have shape {shape}, got {tuple(rows.shape)}.")


def _check_numbers(name: str, rows: Any, shape: tuple[int, ...]) -> None:
    """Check that an array or shared slopes are finite floats of the right shape."""
    if isinstance(rows, SharedSlopes):
        rows.check(name)
        _check_shape(name, rows, shape)
        rows, shape = rows.gradient, rows.gradient.shape
    _check_shape(name, rows, shape)
    if rows.dtype not in _FLOATS:
        raise InvalidInputError(f"`{name}` must be float32 or float64, got {rows.dtype}.")
    if not np.isfinite(rows).all():
        raise InvalidInputError(f"`{name}` must be finite.")
