"""Models that stay as they are, with corrections that are trained on a learned loss."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from lodl.errors import InvalidInputError
from lodl.losses import DirectedWeightedMSE, FitErrors, LearnedLoss, squared_error_loss
from lodl.testing import check_learner
from lodl.training import load_predictor
from lodl.training.corrected import Corrected
from lodl.training.linear import LinearLearner
from lodl.training.sklearn import SklearnLearner

pytestmark = pytest.mark.slow

FOREST = RandomForestRegressor(5, min_samples_leaf=5, random_state=0)


def line(n=80):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return x, x @ rng.normal(size=(2, 3)) + rng.normal(size=(n, 3))


def directed(y, over=10.0, under=0.1):
    phi = {"w_plus": np.full(y.shape, over), "w_minus": np.full(y.shape, under)}
    return LearnedLoss(DirectedWeightedMSE(), y, phi, FitErrors.empty(len(y)), {})


@pytest.mark.parametrize(
    "base", [FOREST, LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1), None]
)
def test_a_base_that_is_not_fitted_keeps_the_contract(base):
    check_learner(Corrected(base), trusted=["sklearn.tree._tree.Tree"])


def test_a_fitted_base_stays_as_it_is():
    x, y = line()
    tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(x[:40], y[:40])
    learner, new = Corrected(tree), slice(40, None)
    (baseline,) = learner.train(x[new], squared_error_loss(y[new]))
    np.testing.assert_array_equal(baseline.predict(x), tree.predict(x))
    (moved,) = learner.train(x[new], directed(y[new]))
    assert (moved.predict(x) - tree.predict(x)).mean() < -0.5


def test_a_correction_is_learned_from_out_of_fold_predictions():
    x, y = line()
    deep = DecisionTreeRegressor(random_state=0).fit(x, y)  # knows its labels by heart
    (blind,) = Corrected(deep).train(x, directed(y))
    np.testing.assert_allclose(blind.predict(x), y)
    (seeing,) = Corrected(deep, out_of_fold=0.0 * y).train(x, directed(y))
    assert (seeing.predict(x) - y).mean() < -0.3
    with pytest.raises(InvalidInputError, match=r"`out_of_fold` must have the shape of the labels"):
        Corrected(deep, out_of_fold=y[1:]).train(x, directed(y))


@pytest.mark.parametrize("max_shift", [0.0, 0.5])
def test_a_correction_is_bounded(max_shift):
    x, y = line()
    base = LinearLearner().train(x, squared_error_loss(y))[0]
    (moved,) = Corrected(base, max_shift=max_shift).train(x, directed(y, 100.0, 0.01))
    shift = np.abs(moved.predict(x) - base.predict(x)).max(axis=0)
    deviation = (y - base.predict(x)).std(axis=0)
    np.testing.assert_allclose(shift, max_shift * deviation, atol=1e-12)


def test_boosted_trees_correct_a_linear_model(tmp_path):
    x, y = line()
    learner = Corrected(Ridge(), LGBMRegressor(n_estimators=20, min_child_samples=5, verbose=-1))
    (model,) = learner.train(x, directed(y))
    assert model.n_steps == 20
    before = learner.train(x, squared_error_loss(y))[0].predict(x)
    assert directed(y).value(model.predict(x)).mean() < directed(y).value(before).mean()
    model.save(tmp_path)
    np.testing.assert_array_equal(load_predictor(tmp_path).predict(x), model.predict(x))


@pytest.mark.parametrize("is_frame", [False, True])
def test_features_that_a_linear_model_cannot_take_are_encoded(is_frame):
    x, y = line()
    base = HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype")
    if is_frame:
        x = pd.DataFrame(x, columns=["wind", "sun"])
        x["place"] = pd.Categorical(np.where(x["wind"] > 0, "north", "south"))
    else:
        x[3, 1] = np.nan
    (before,) = Corrected(base).train(x, squared_error_loss(y))
    (after,) = Corrected(base).train(x, directed(y))
    assert (after.predict(x) - before.predict(x)).mean() < -0.3


def test_forests_predict_their_training_rows_out_of_bag():
    x, y = line()
    forest = RandomForestRegressor(50, random_state=0)
    (part,) = SklearnLearner(forest).prepare(x, y, np.arange(len(y))[np.newaxis] < 60)
    (model,) = part.base.models
    assert model.oob_score
    expected = y[:60] - model.oob_prediction_
    np.testing.assert_allclose(part.residuals[:60], expected)
    np.testing.assert_allclose(part.residuals[60:], y[60:] - part.base.predict(x[60:]))
    assert part.residuals[:60].std() > 1.5 * (y[:60] - part.base.predict(x[:60])).std()


def test_folds_share_models_that_leave_out_two_of_them():
    x, y = line()
    parts, fitted = np.arange(len(y)) % 4, []

    class Counted(Ridge):
        def fit(self, x, y):
            fitted.append(len(x))
            return super().fit(x, y)

    masks = np.stack([parts != k for k in range(4)])
    other = y + 100.0 * (parts == 0)[:, np.newaxis]
    first, moved = (Corrected(Counted()).prepare(x, labels, masks)[0] for labels in (y, other))
    seen = (first.residuals[masks[0]], moved.residuals[masks[0]])
    np.testing.assert_allclose(*seen)  # no model knows the labels that the mask leaves out
    assert fitted == [*[40] * 6, 60] * 2
