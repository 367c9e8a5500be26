import numpy as np
import pytest
from scipy.stats import spearmanr

from lodl._arrays import rank_correlation


def test_it_is_that_of_scipy_with_ties_or_without():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=(2, 30)), rng.integers(5, size=(2, 30)).astype(float)):
        assert rank_correlation(*values) == pytest.approx(spearmanr(*values).statistic)


def test_it_is_not_defined_if_one_side_is_constant_or_empty():
    assert np.isnan(rank_correlation(np.ones(3), np.arange(3.0)))
    assert np.isnan(rank_correlation(np.arange(3.0), np.ones(3)))
    assert np.isnan(rank_correlation(np.empty(0), np.empty(0)))
