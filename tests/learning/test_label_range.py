"""Labels of any unit give the same model, or a message."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.exp(X @ RNG.normal(size=(4, 5)) / 1.5) * (1 + 0.3 * RNG.random((60, 5)))
PICK = lodl.problem(lambda y: np.eye(5)[np.argmax(y)], lambda z, y: z @ y, sense="max")


def fit(factor, estimator=None, **arguments):
    families = [lodl.DecisionHinges(squared_error=0.1)]
    model = DecisionFocusedRegressor(PICK, estimator, families=families, n_rounds=0, n_samples=10)
    return model.fit(X, factor * Y, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [None, Ridge()], ids=["linear", "ridge"])
@pytest.mark.parametrize("factor", [1e-14, 1e12])
def test_the_unit_of_labels_does_not_change_the_choice(factor, estimator):
    plain, scaled = fit(1.0, estimator), fit(factor, estimator)
    assert scaled.result_.selected_name == plain.result_.selected_name != "squared error"
    assert scaled.result_.mean_selected == pytest.approx(
        factor * plain.result_.mean_selected, rel=0.2
    )  # rounding


@pytest.mark.parametrize("factor", [1e-19, 1e41, 1e300])
def test_labels_beyond_single_precision_are_refused(factor):
    told = "must have its largest number between 1e-15 and 1e\\+15, got .* another unit"
    with pytest.raises(InvalidInputError, match=f"`Y` {told}"):
        fit(factor)
    with pytest.raises(InvalidInputError, match=rf"`validation\[1\]` {told}"):
        fit(1.0, validation=(X + 1, factor * Y))
