"""Summaries of learned losses with given errors."""

import dataclasses

import numpy as np
import pytest

from lodl.evaluation import summarise
from lodl.losses import FitErrors, LearnedLoss, WeightedMSE

GOOD = {
    "mae_fitted": 0.4,
    "mae_held_out": 0.42,
    "r2_held_out": 0.8,
    "mean_regret": 2.0,
    "n_fitted": 70,
    "n_held_out": 30,
}


@dataclasses.dataclass(frozen=True)
class Bound(WeightedMSE):
    """A family that counts as made of decisions."""

    uses_slopes = True


@pytest.fixture
def summary_of():
    """Summarise a loss of ten instances with the given errors, by default good ones."""

    def make(family=None, **errors):
        values = {**FitErrors.empty(10).arrays(), **GOOD, **errors}
        columns = {
            name: np.broadcast_to(np.asarray(value, FitErrors.dtypes()[name]), 10)
            for name, value in values.items()
        }
        phi, y = {"w": np.ones((10, 4))}, np.zeros((10, 4))
        return summarise(LearnedLoss(family or WeightedMSE(), y, phi, FitErrors(**columns), {}))

    return make


@pytest.fixture
def summary_of_decisions(summary_of):
    """Summarise a loss made of decisions, by default one without findings."""

    def make(**errors):
        decisions = {
            "rank_correlation_held_out": 0.35,
            "met_held_out": 0.5,
            "explained_held_out": 1.0,
        }
        return summary_of(Bound(), **decisions | errors)

    return make
