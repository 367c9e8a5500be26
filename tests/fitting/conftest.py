"""Samples to fit: the best of a few items is chosen, and errors cost what was missed."""

from dataclasses import dataclass

import numpy as np
import pytest

from lodl.losses import Answers


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

        def instance(self, index):
            return Answers(self.y[index], self.y[index] + self.d[index], self.regret[index])

        def provenance(self):
            return {"sampler": "by hand"}

    def make(d, regret):
        y = np.random.default_rng(0).standard_normal((len(d), *d.shape[2:]))
        return ArraySamples(y, d, regret)

    return make
