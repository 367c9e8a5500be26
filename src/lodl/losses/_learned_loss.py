"""A family with fitted parameters for every instance."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from lodl.losses._family import Family
from lodl.typing import Array


class FitStatus(IntEnum):
    """How the parameters of an instance came about."""

    FITTED = 0
    NOTHING_TO_DECIDE = 1  # every regret is zero: a plain squared error stands in
    NO_SAMPLES = 2  # too few oracle calls succeeded: a plain squared error stands in


@dataclass(frozen=True, eq=False)
class FitErrors:
    """How well each instance's loss repeats the regrets, on fitted and on held-out samples.

    Every field has shape (n_instances,). A figure that is not defined (no held-out samples,
    constant regrets) is NaN.
    """

    mae_fitted: Array
    mae_held_out: Array
    r2_held_out: Array
    rank_correlation_held_out: Array
    mean_regret: Array
    n_fitted: npt.NDArray[np.int64]
    n_held_out: npt.NDArray[np.int64]
    status: npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class LearnedLoss:
    """A locally optimized decision loss for every instance.

    Attributes:
        family: The parametric loss.
        y: Labels, shape (n_instances, *label_shape); where each loss is zero.
        phi: The family's parameters, each of shape (n_instances, *shape of the parameter).
        errors: How well the regrets are repeated.
        provenance: Where it came from, JSON values only: sampler, scale, seed, number of samples,
            fingerprints of problem and labels, package version.
    """

    family: Family
    y: Array
    phi: Mapping[str, Array]
    errors: FitErrors
    provenance: Mapping[str, Any]
