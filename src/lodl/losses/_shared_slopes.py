"""`SharedSlopes`: slopes of decisions that instances share, in NumPy or torch, each stored once.

The slope of decision k at an instance with best decision z* is g_k - g*, the difference between the
derivatives of their costs by the label. An array of all slopes would repeat the derivatives for
every instance. If instances use all decisions, G d is one product for all of them. If each uses its
own selection, its slopes are gathered when they are needed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lodl._typing import Array, Index
from lodl.errors import InvalidInputError
from lodl.losses._family import Tensor, largest

_MOST_MORE = 20  # times as many decisions as an instance's, whose products take less than gathering
_MAX_AT_ONCE = 4e6  # numbers that are gathered or multiplied at once: 32 MB
_APART, _FEWEST = 0.95, 50  # share and number of best decisions, if hardly two are the same
_MAX_NUMBERS = 5e7  # slopes that are gathered for training: 200 MB in single precision


@dataclass(frozen=True, eq=False)
class SharedSlopes:
    """Slopes of shape (n, M, D), like an array: `gaps` is `d @ slope'`, `mixed` `w @ slope`."""

    gradient: Tensor  # derivative of each decision's cost by the label, shape (P, D)
    own: Tensor  # number of each instance's best decision, shape (n, 1)
    # Numbers of each instance's decisions, shape (n, M): its best decision first, which also pads
    # the others. None if every instance has all P, in order.
    decision: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape (n, M, D)."""
        n_decisions = len(self.gradient) if self.decision is None else self.decision.shape[1]
        return len(self.own), n_decisions, self.gradient.shape[1]

    @property
    def dtype(self) -> Any:
        """Type of the slopes."""
        return self.gradient.dtype

    def __getitem__(self, rows: Any) -> "SharedSlopes":
        """Return the slopes of some instances, which share the same decisions."""
        decision = None if self.decision is None else self.decision[rows]
        return replace(self, own=self.own[rows], decision=decision)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all slopes as an array, which repeats the decisions."""
        decision = np.arange(len(self.gradient)) if self.decision is None else self.decision
        return np.asarray(self.gradient[decision] - self.gradient[self.own], dtype=dtype)

    def parts(self) -> dict[str, Tensor]:
        """Return the arrays by name, with which the class can be called again."""
        parts = {"gradient": self.gradient, "own": self.own, "decision": self.decision}
        return {name: part for name, part in parts.items() if part is not None}

    def astype(self, dtype: Any, copy: bool = True) -> "SharedSlopes":
        """Return slopes of another type of NumPy. Numbers of decisions stay as they are."""
        return replace(self, gradient=self.gradient.astype(dtype, copy=copy))

    def to(self, dtype: Any) -> "SharedSlopes":
        """Return slopes of another type of torch. Numbers of decisions stay as they are."""
        return replace(self, gradient=self.gradient.to(dtype))

    def gaps(self, d: Tensor) -> Tensor:
        is_quick = isinstance(d, np.ndarray) and len(self.gradient) <= _MOST_MORE * self.shape[1]
        is_gathered = self.decision is not None and not is_quick
        n_each = math.prod(self.shape[1:]) if is_gathered else d.shape[1] * len(self.gradient)
        if len(parts := self._parts(d, n_each)) > 1:
            return np.concatenate([self[rows].gaps(d[rows]) for rows in parts])
        if is_gathered:
            return d @ self._slopes.swapaxes(-1, -2)
        n, m, dim = d.shape
        products = d.swapaxes(0, 1).reshape(m * n, dim) @ self.gradient.T
        products = products.reshape(m, n, -1).swapaxes(0, 1)
        taken = products if self.decision is None else _take(products, self.decision[:, None])
        return taken - _take(products, self.own[:, None])

    def mixed(self, weights: Tensor) -> Tensor:
        if len(parts := self._parts(weights, math.prod(self.shape[1:]))) > 1:
            return np.concatenate([self[rows].mixed(weights[rows]) for rows in parts])
        if self.decision is not None:
            return weights @ self._slopes
        n, m, n_decisions = weights.shape
        total = weights.swapaxes(0, 1).reshape(m * n, n_decisions) @ self.gradient
        own = self.gradient[self.own] * weights.sum(-1)[..., None]
        return total.reshape(m, n, -1).swapaxes(0, 1) - own

    def _parts(self, rows: Tensor, n_each: int) -> list[slice]:
        """Return slices of instances which need little memory with `n_each` numbers each."""
        n = len(rows)
        if self.decision is None or not isinstance(rows, np.ndarray):
            return [slice(n)]
        size = max(1, int(_MAX_AT_ONCE // max(1, n_each)))
        return [slice(start, start + size) for start in range(0, n, size)]

    @cached_property
    def _slopes(self) -> Tensor:
        return self.gradient[self.decision] - self.gradient[self.own]

    def check(self, name: str) -> None:
        """Check arrays that may come from a file."""
        for part, array in list(self.parts().items())[1:]:
            if array.ndim != 2 or len(array) != len(self.own) or array.dtype.kind not in "iu":
                wanted = "whole numbers of shape (n, m)"
                got = f"{array.dtype} of shape {array.shape}"
                raise InvalidInputError(f"`{name}.{part}` must be {wanted}, got {got}.")
            if array.size and not 0 <= array.min() <= array.max() < len(self.gradient):
                wanted = f"from 0 to {len(self.gradient) - 1}"
                got = f"{array.min()} to {array.max()}"
                raise InvalidInputError(f"`{name}.{part}` must be {wanted}, got {got}.")


def are_apart(gradient: Array, own: Index) -> bool:
    """Return whether hardly two instances have the same best decision, as on a smooth set."""
    if len(np.unique(own)) <= max(_APART * len(own), _FEWEST):
        return False
    # Combinatorial decisions may all differ, too, but are made of a few numbers such as 0 and 1.
    numbers = gradient[:_FEWEST][gradient[:_FEWEST] != 0]
    return len(np.unique(numbers)) > len(numbers) / 2


def gaps(slope: Tensor | SharedSlopes, d: Tensor) -> Tensor:
    """Return s_k . d of errors (n, m, D), shape (n, m, M)."""
    return slope.gaps(d) if isinstance(slope, SharedSlopes) else d @ slope.swapaxes(-1, -2)


def mixed(weights: Tensor, slope: Tensor | SharedSlopes) -> Tensor:
    """Return sum_k w_k s_k of weights (n, m, M), shape (n, m, D)."""
    return slope.mixed(weights) if isinstance(slope, SharedSlopes) else weights @ slope


def bounds(slope: Tensor | SharedSlopes) -> tuple[Tensor, Tensor]:
    """Return the lowest and the highest slope in each coordinate, both of shape (n, D)."""
    own: Any = 0.0
    if isinstance(slope, SharedSlopes):
        own = slope.gradient[slope.own[:, 0]]
        slope = slope.gradient[None] if slope.decision is None else slope.gradient[slope.decision]
    columns = slope.swapaxes(-1, -2)
    return -largest(-columns) - own, largest(columns) - own


def gathered(phi: Mapping[str, Tensor | SharedSlopes]) -> dict[str, Tensor | SharedSlopes]:
    """Return parameters for training: slopes as an array if that is quicker and not too large."""
    slope = phi.get("slope")
    if not isinstance(slope, SharedSlopes) or slope.decision is None:
        return dict(phi)
    is_large = np.prod(slope.shape, dtype=float) > _MAX_NUMBERS
    return {**phi, "slope": slope if is_large else np.asarray(slope)}


def split_slopes(phi: Mapping[str, Tensor | SharedSlopes]) -> dict[str, Tensor]:
    """Return parameters as plain arrays, with names such as `slope.own`, for files and buffers."""
    arrays = dict(phi)
    slope = arrays.get("slope")
    if isinstance(slope, SharedSlopes):
        del arrays["slope"]
        arrays |= {f"slope.{part}": array for part, array in slope.parts().items()}
    return arrays


def join_slopes(arrays: Mapping[str, Tensor]) -> dict[str, Tensor | SharedSlopes]:
    """Return the parameters that `split_slopes` split."""
    phi = {name: array for name, array in arrays.items() if not name.startswith("slope.")}
    parts = {name[6:]: array for name, array in arrays.items() if name not in phi}
    if parts and {"gradient", "own"} != set(parts) - {"decision"}:
        wanted = "the arrays `gradient`, `own` and perhaps `decision`"
        raise InvalidInputError(f"Shared slopes must have {wanted}, got {sorted(parts)}.")
    return {**phi, "slope": SharedSlopes(**parts)} if parts else phi


def _take(values: Tensor, index: Tensor) -> Tensor:
    """Return the values of the last axis at an index of the other axes' shape, or 1 of them."""
    is_array = isinstance(values, np.ndarray)
    return np.take_along_axis(values, index, -1) if is_array else values.take_along_dim(index, -1)
