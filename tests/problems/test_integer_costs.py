from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lodl.errors import InvalidInputError
from lodl.problems.ortools import integer_costs

COSTS = arrays(np.float64, 5, elements=st.floats(-1e12, 1e12, allow_subnormal=False))


@given(COSTS, st.integers(1, 1000))
def test_whole_numbers_fit_and_the_bound_of_the_error_holds(costs, largest):
    integers, scale = integer_costs(costs, largest)
    total = np.abs(costs).sum() * largest
    assert sum(abs(n) * largest for n in integers.tolist()) <= 2**51
    assert np.abs(integers / scale - costs).max() <= 0.5 / scale
    assert 5 * largest / scale <= max(total * 2.0**-49 * 5 * largest, 2.0**-900) or total == 0


@given(COSTS)
def test_the_best_decision_is_within_the_bound_of_the_best(costs):
    integers, scale = integer_costs(costs)
    every = np.array(list(product([0, 1], repeat=5)))
    chosen = every[(every @ integers).argmin()]
    assert chosen @ costs <= (every @ costs).min() + 5 / scale


def test_whole_costs_stay_in_proportion():
    integers, scale = integer_costs([3.0, 7.0, -1000.0])
    np.testing.assert_array_equal(integers, np.array([3, 7, -1000]) * int(scale))
    assert integer_costs(np.zeros((2, 2)))[0].shape == (2, 2)


def test_costs_without_a_safe_scale_are_refused():
    with pytest.raises(InvalidInputError, match="`costs` must be finite"):
        integer_costs([1.0, np.nan])
    with pytest.raises(InvalidInputError, match=r"up to 2e\+12 in total.*narrower bounds"):
        integer_costs([1.0, 2.0], largest=1e12)
