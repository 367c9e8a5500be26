"""Samples to fit, and learned losses with random parameters, which need no fit."""

from dataclasses import dataclass

import numpy as np
import pytest

from lodl import losses
from lodl.oracle import Answers


@pytest.fixture
def top_one():
    """Returns errors (n, dim) and regrets (n,) of choosing the best of `dim` items."""

    def draw(n_samples, dim, seed=0):
        rng = np.random.default_rng(seed)
        y, d = rng.standard_normal(dim), rng.standard_normal((n_samples, dim))
        return d, y.max() - y[(y + d).argmax(axis=1)]

    return draw


@pytest.fixture(scope="session")
def make_loss():
    """Makes a learned loss with random parameters; `seed` decides them."""

    def make(family=None, *, n_instances=7, label_shape=(2, 3), dtype=np.float64, seed=0):
        rng = np.random.default_rng(seed)
        family = family or losses.WeightedMSE()
        shapes = family.parameter_shapes(int(np.prod(label_shape)))
        return losses.LearnedLoss(
            family=family,
            y=rng.normal(size=(n_instances, *label_shape)).astype(dtype),
            phi={
                name: rng.uniform(0.1, 1.0, size=(n_instances, *shape)).astype(dtype)
                for name, shape in shapes.items()
            },
            errors=losses.FitErrors(
                mae_fitted=rng.uniform(0.1, 0.2, n_instances),
                mae_held_out=rng.uniform(0.2, 0.3, n_instances),
                r2_held_out=rng.uniform(0.5, 1.0, n_instances),
                rank_correlation_held_out=np.full(n_instances, np.nan),
                met_held_out=np.full(n_instances, np.nan),
                explained_held_out=np.full(n_instances, np.nan),
                mean_regret=rng.uniform(0.5, 1.0, n_instances),
                n_fitted=np.full(n_instances, 70),
                n_held_out=np.full(n_instances, 30),
                status=np.zeros(n_instances, dtype=np.int8),
            ),
            provenance={"sampler": "AllPerturbed", "scale": 0.5, "seed": seed},
        )

    return make


@pytest.fixture
def make_samples():
    """Returns a maker of samples from errors (n, k, *label_shape) and regrets (n, k)."""

    @dataclass(frozen=True)  # a local class, so that workers receive it by value
    class ArraySamples:
        y: np.ndarray
        d: np.ndarray
        regret: np.ndarray

        @property
        def n_instances(self):
            return len(self.y)

        def select(self, indices):
            chosen = list(indices)
            return ArraySamples(self.y[chosen], self.d[chosen], self.regret[chosen])

        def __getitem__(self, index):
            return Answers(self.y[index], self.y[index] + self.d[index], self.regret[index])

        def provenance(self):
            return {"sampler": "by hand"}

    def make(d, regret):
        y = np.random.default_rng(0).standard_normal((len(d), *d.shape[2:]))
        return ArraySamples(y, d, regret)

    return make
