"""A family with fitted parameters for every instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl import _arrays as validation
from lodl._typing import Array
from lodl.errors import InvalidInputError
from lodl.losses._family import Family, pad_rows, shapes_like
from lodl.losses._fit_errors import FitErrors
from lodl.losses._loss_file import read_loss, unusable, write_loss
from lodl.losses._summary import FitSummary, summarise

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True, eq=False)
class LossRows:
    """Labels and parameters of some instances, as NumPy arrays."""

    y: Array
    phi: Mapping[str, Array]


@dataclass(frozen=True, eq=False, repr=False)
class LearnedLoss:
    """A locally optimized decision loss for every instance.

    Attributes:
        family: The parametric loss.
        y: Labels, shape (n_instances, *label_shape), at which each loss is zero.
        phi: The family's parameters, each of shape (n_instances, *shape of the parameter).
        errors: How well the loss reproduces the regrets.
        provenance: Where it came from, JSON values only: sampler, scale, seed, number of samples,
            name of the problem, version of lodl.

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

    family: Family
    y: Array
    phi: Mapping[str, Array]
    errors: FitErrors
    provenance: Mapping[str, Any]

    def __post_init__(self) -> None:
        if len(self.y.shape) < 2 or 0 in self.y.shape:
            raise InvalidInputError(
                f"`y` must have shape (n_instances, *label_shape), got {self.y.shape}."
            )
        first = {name: rows[0] for name, rows in self.phi.items() if np.ndim(rows)}
        shapes = shapes_like(self.family, first, self.dim)
        if set(self.phi) != set(shapes):
            raise InvalidInputError(
                f"`phi` of {self.family} must have the parameters {sorted(shapes)}, "
                f"got {sorted(self.phi)}."
            )
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
        return (
            f"LearnedLoss({self.family}, n_instances={self.n_instances}, "
            f"label_shape={self.label_shape})"
        )

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
        """How many numbers a label has."""
        return prod(self.label_shape)

    def value(self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None = None) -> Array:
        """Return the loss of one prediction per instance, shape (n,).

        Args:
            y_hat: Predictions, shape (n, *label_shape).
            index: The instances they are for, shape (n,); all in order if None.
        """
        rows, d = self._rows_and_errors(y_hat, index)
        return np.asarray(self.family.value(rows.phi, d)[:, 0])

    def gradient(self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None = None) -> Array:
        """Return the gradient with respect to the predictions, shape (n, *label_shape)."""
        rows, d = self._rows_and_errors(y_hat, index)
        return np.asarray(self.family.gradient(rows.phi, d).reshape(rows.y.shape))

    def curvature(self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None = None) -> Array:
        """Return the diagonal of the second derivative, shape (n, *label_shape)."""
        rows, d = self._rows_and_errors(y_hat, index)
        return np.asarray(self.family.curvature(rows.phi, d).reshape(rows.y.shape))

    def rows(self, index: npt.ArrayLike | None = None) -> LossRows:
        """Return labels and parameters of the instances `index`; of all in order if None."""
        if index is None:
            return LossRows(self.y, self.phi)
        chosen = self._check_index(index)
        return LossRows(self.y[chosen], {name: rows[chosen] for name, rows in self.phi.items()})

    def subset(self, index: npt.ArrayLike) -> LearnedLoss:
        """Return the loss of some instances, in the order of `index`.

        Its provenance is that of the whole, and says of how many instances that was.
        """
        rows = self.rows(index)
        errors = self.errors.take(np.asarray(index))
        provenance = {"subset_of": self.n_instances, **self.provenance}
        return LearnedLoss(self.family, rows.y, rows.phi, errors, provenance)

    @staticmethod
    def concatenate(losses: Sequence[LearnedLoss]) -> LearnedLoss:
        """Return one loss for the instances of several, in their order.

        Its provenance keeps what they share, and lists what they do not under "parts".
        """
        if not losses:
            raise InvalidInputError("`losses` must hold at least one learned loss, got none.")
        first = losses[0]
        for loss in losses:
            if (loss.family, loss.label_shape) != (first.family, first.label_shape):
                raise InvalidInputError(
                    f"`losses` must share family and label shape, got {first!r} and {loss!r}."
                )
        parts = [loss.rows() for loss in losses]
        return LearnedLoss(
            first.family,
            np.concatenate([part.y for part in parts]),
            {
                name: pad_rows([part.phi[name] for part in parts], first.family.padded[name])
                if name in first.family.padded
                else np.concatenate([part.phi[name] for part in parts])
                for name in first.phi
            },
            FitErrors.concatenate([loss.errors for loss in losses]),
            _join_provenance(losses),
        )

    def check_labels(self, y: npt.ArrayLike) -> None:
        """Check that `y` are the labels this loss was learned for, in the same order.

        Labels held in single precision on either side are compared in single precision.

        Raises:
            InvalidInputError: They are not; the message names the first instance that differs.
        """
        labels = validation.check_labels(y)
        if labels.shape != self.y.shape:
            raise InvalidInputError(
                f"`y` must be the labels the loss was learned for, shape {self.y.shape}, got shape "
                f"{labels.shape}. For some of its instances, use `loss.subset(index)`."
            )
        single = np.dtype(np.float32) in (self.y.dtype, np.asarray(y).dtype)
        dtype = np.float32 if single else np.float64
        differs = labels.astype(dtype, copy=False) != self.y.astype(dtype, copy=False)
        if differs.any():
            raise InvalidInputError(
                "`y` must be the labels the loss was learned for, in the same order: instance "
                f"{np.argwhere(differs)[0, 0]} differs."
            )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the loss to a file that `load_loss` reads (safetensors).

        You can also save a family that you wrote; to load it, import its module first.
        """
        arrays = {"y": self.y}
        arrays |= {f"phi.{name}": rows for name, rows in self.phi.items()}
        for name, rows in self.errors.arrays().items():
            arrays[f"errors.{name}"] = rows.astype(FitErrors.dtypes[name], copy=False)
        write_loss(Path(path), self.family, arrays, dict(self.provenance))

    def summary(self) -> FitSummary:
        """Return how well the loss fits the samples, and what would help; print the result."""
        n_parameters = sum(prod(rows.shape[1:]) for rows in self.phi.values())
        return summarise(self.family, self.errors, n_parameters=n_parameters)

    def _rows_and_errors(
        self, y_hat: npt.ArrayLike, index: npt.ArrayLike | None
    ) -> tuple[LossRows, Array]:
        rows = self.rows(index)
        d = validation.check_predictions(y_hat, rows.y) - rows.y
        return rows, d.reshape(len(d), 1, self.dim)

    def _check_index(self, index: npt.ArrayLike) -> npt.NDArray[np.integer[Any]]:
        chosen = np.asarray(index)
        if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind not in "iu":
            raise InvalidInputError(
                "`index` must be a list of at least one whole number, got "
                f"{chosen.dtype} of shape {chosen.shape}. A mask? Use `np.flatnonzero(mask)`."
            )
        if chosen.min() < 0 or chosen.max() >= self.n_instances:
            raise InvalidInputError(
                f"`index` must be from 0 to {self.n_instances - 1}, "
                f"got {chosen.min()} to {chosen.max()}."
            )
        return chosen


def load_loss(path: str | PathLike[str], y: npt.ArrayLike | None = None) -> LearnedLoss:
    """Read a learned loss from a file written by `LearnedLoss.save`.

    Args:
        path: The file.
        y: Labels that the loss must have been learned for; None skips the check.

    Raises:
        LossFileError: The file is damaged, has another format version, is for other labels, or
            names a family whose module has not been imported.

    Example:
        >>> y = np.array([[3.0, 1.0], [0.0, 2.0]])
        >>> lodl.learn_loss(lodl.domains.TopK(1), y).save("items.safetensors")
        >>> lodl.load_loss("items.safetensors", y=y).n_instances
        2
    """
    if y is not None:
        validation.check_labels(y)  # a bad argument is not the file's fault
    family, arrays, provenance = read_loss(Path(path))
    try:
        loss = LearnedLoss(family, *_split_arrays(arrays), provenance)
        if y is not None:
            loss.check_labels(y)
    except (LookupError, ValueError) as error:  # arrays without rows, or without an axis
        raise unusable(path, str(error)) from error
    return loss


def _split_arrays(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[Array, dict[str, Array], FitErrors]:
    """Return labels, parameters and errors from the arrays of a file."""
    phi = {key.removeprefix("phi."): rows for key, rows in arrays.items() if key[:4] == "phi."}
    expected = {"y", *(f"phi.{name}" for name in phi), *(f"errors.{n}" for n in FitErrors.dtypes)}
    if set(arrays) != expected:
        raise InvalidInputError(f"its arrays are {sorted(arrays)}, not {sorted(expected)}.")
    errors = {name: arrays[f"errors.{name}"] for name in FitErrors.dtypes}
    for name, dtype in FitErrors.dtypes.items():
        if errors[name].dtype != dtype:
            raise InvalidInputError(f"`errors.{name}` is {errors[name].dtype}, not {dtype}.")
    return arrays["y"], phi, FitErrors(**errors)


def _check_shape(name: str, rows: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    if tuple(rows.shape) != shape:
        raise InvalidInputError(f"`{name}` must have shape {shape}, got {tuple(rows.shape)}.")


def _check_numbers(name: str, rows: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Check that rows are finite numbers of the right shape."""
    _check_shape(name, rows, shape)
    if rows.dtype not in _FLOATS:
        raise InvalidInputError(f"`{name}` must be float32 or float64, got {rows.dtype}.")
    if not np.isfinite(rows).all():
        raise InvalidInputError(f"`{name}` must be finite.")


def _join_provenance(losses: Sequence[LearnedLoss]) -> dict[str, Any]:
    first = losses[0].provenance
    shared = {
        key: value
        for key, value in first.items()
        if all(key in loss.provenance and loss.provenance[key] == value for loss in losses)
    }
    parts = [
        {
            "n_instances": loss.n_instances,
            **{key: value for key, value in loss.provenance.items() if key not in shared},
        }
        for loss in losses
    ]
    return {**shared, "parts": parts}
