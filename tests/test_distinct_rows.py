import numpy as np
import pytest

from lodl._arrays import distinct_rows


def by_bytes(rows):
    """The same by sorting the bytes of whole rows."""
    rows = np.ascontiguousarray(rows + 0.0)
    whole = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    _, first, kind = np.unique(whole, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)


RNG = np.random.default_rng(0)
FEW = RNG.integers(-2, 3, size=(5, 4)).astype(float)
ROWS = {
    "few kinds": FEW[RNG.integers(5, size=60)],
    "many kinds": RNG.normal(size=(30, 4)),
    "one row": FEW[:1],
    "zeros of both signs": np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, 1.0]]),
    "different rows of one sum": np.outer([0, 1, 0, 1, 0, 1], [1.0, -1.0 / np.cos(1.0)]),
    "not a number": np.array([[np.nan, 1.0], [np.nan, 1.0], [np.nan, 2.0], [1.0, 1.0], [1.0, 1.0]]),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_kinds_are_those_of_whole_rows_in_the_same_order(rows):
    for ours, expected in zip(distinct_rows(rows), by_bytes(rows), strict=True):
        assert np.array_equal(ours, expected)
