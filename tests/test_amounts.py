import pytest

from lodl._amounts import amounts


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((86.204, 30.536), ["86.2", "30.5"]),
        ((9783.2,), ["9,783"]),
        ((0.2554, 0.03107), ["0.255", "0.031"]),
        ((1.0, -0.0), ["1.00", "0.00"]),
        ((0.0, 0.0), ["0", "0"]),
        ((1.5, float("nan")), ["1.50", "nan"]),
        ((1e-9,), ["1e-09"]),
        ((), []),
    ],
)
def test_numbers_beside_each_other_have_the_same_decimals(values, texts):
    assert amounts(*values) == texts
