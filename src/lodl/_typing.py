"""Types that several packages share."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
"""A float64 array. Labels and predictions have the instance on the first axis."""

FilePath: TypeAlias = str | PathLike[str]
"""The name of a file or a folder."""

Flags: TypeAlias = npt.NDArray[np.bool_]
"""Booleans: whether something holds for each instance or sample."""

Index: TypeAlias = npt.NDArray[np.intp]
"""Positions of instances, decisions or variables, from 0."""

Masks: TypeAlias = npt.NDArray[np.bool_]
"""Shape (n_models, n): whether model k trains on instance i."""

Decision: TypeAlias = Any
"""What a solver returns."""

InstanceContext: TypeAlias = Any
"""What the solver knows about one instance besides the prediction, or None."""

Context: TypeAlias = Sequence[Any] | npt.NDArray[Any] | None
"""One entry per instance, or None if the problem has no context."""

Sense: TypeAlias = Literal["min", "max"]
"""Whether the objective is a cost ("min") or a gain ("max")."""
