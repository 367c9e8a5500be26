"""Samples to fit: the best of a few items is chosen, and errors cost what was missed."""

from dataclasses import dataclass

import numpy as np
import pytest


@pytest.fixture
def top_one():
    """Returns errors (n, dim) and regrets (n,) of choosing the best of `dim` items."""

    def draw(n_samples, dim, seed=0):
        rng = np.random.default_rng(seed)
        y, d = rng.standard_normal(dim), rng.standard_normal((n_samples, dim))
        return d, y.max() - y[(y + d).argmax(axis=1)]

    return draw


@pytest.fixture
def make_samples():
    """Returns a maker of samples from errors (n, k, *label_shape) and regrets (n, k)."""

    # The classes are local, so that workers receive them by value.
    @dataclass(frozen=True)
    class Instance:
        y_hat: np.ndarray
        regret: np.ndarray

    @dataclass(frozen=True)
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

        def instance(self, index):
            return Instance(self.y[index] + self.d[index], self.regret[index])

        def provenance(self):
            return {"sampler": "by hand"}

    def make(d, regret):
        y = np.random.default_rng(0).standard_normal((len(d), *d.shape[2:]))
        return ArraySamples(y, d, regret)

    return make
