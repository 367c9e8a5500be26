"""`evaluate`: five ways to predict, compared on data that selected nothing."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import lodl

pytestmark = pytest.mark.slow

NAMES = ["plain model", "mean label", "squared error", "squared error, corrected", "this model"]


class Stock(lodl.Problem):
    """Order before demand is known: a missing unit costs 9, an unsold one 1."""

    sense = "min"
    unit = "EUR"

    def solve(self, y_hat, context):
        return y_hat.copy()

    def objective(self, z, y, context):
        return float(np.sum(np.where(y > z, 9 * (y - z), z - y))) + float(y.sum())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    return x, 20 + x @ rng.normal(size=(3, 2)) + rng.normal(size=(400, 2))


@pytest.fixture(scope="module")
def model(data):
    x, y = data
    return lodl.DecisionFocusedRegressor(Stock(), LinearRegression()).fit(x[:200], y[:200])


def test_the_rows_are_five_models_and_their_regrets_are_the_solvers(model, data):
    x, y = data[0][200:], data[1][200:]
    evaluation = model.evaluate(x, y)
    assert list(evaluation.regrets) == NAMES
    plain = clone(LinearRegression()).fit(data[0][:200], data[1][:200])
    regret = {
        "plain model": lodl.evaluation.regret(Stock(), plain.predict(x), y),
        "mean label": lodl.evaluation.regret(
            Stock(), np.broadcast_to(data[1][:200].mean(axis=0), y.shape), y
        ),
        "this model": model.regret(x, y),
    }
    for name, expected in regret.items():
        assert evaluation.regrets[name] == pytest.approx(expected)
    assert evaluation.optimum == pytest.approx(y.sum(axis=1))
    assert evaluation.n_calls <= 6 * len(y)


def test_a_shift_towards_the_costly_side_is_found_and_never_ignored(model, data):
    evaluation = model.evaluate(data[0][200:], data[1][200:])
    means = evaluation.means
    assert means["squared error, corrected"] < 0.8 * means["squared error"]
    assert means["this model"] < 1.05 * means["squared error, corrected"]


def test_a_loaded_model_gives_the_same_table(model, data, tmp_path):
    x, y = data[0][300:], data[1][300:]
    folder = model.save(tmp_path / "model")
    loaded = lodl.load_model(folder, Stock())
    assert loaded.evaluate(x, y).regrets == model.evaluate(x, y).regrets


class SmallStock(Stock):
    """The same shop, where no more than 20 units fit on the shelf."""

    def solve(self, y_hat, context):
        return np.minimum(y_hat, 20.0)


def test_another_problem_decides_if_one_is_given(model, data):
    x, y = data[0][200:], data[1][200:]
    under = model.evaluate(x, y, problem=SmallStock())
    expected = lodl.evaluation.regret(SmallStock(), model.predict(x), y)
    assert under.regrets["this model"] == pytest.approx(expected)
    assert under.regrets["this model"] != model.evaluate(x, y).regrets["this model"]
