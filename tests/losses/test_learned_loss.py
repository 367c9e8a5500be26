import dataclasses
import pickle

import numpy as np
import pytest

from lodl import losses
from lodl.errors import InvalidInputError

FAMILIES = [
    losses.WeightedMSE(),
    losses.DirectedWeightedMSE(),
    losses.Quadratic(rank=2),
    losses.DirectedQuadratic(rank=2),
    losses.DecisionHinges(max_decisions=4),
    losses.DecisionRanking(max_decisions=4),
    losses.NeuralLoss(n_units=4),
]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)


@pytest.fixture
def y_hat():
    return np.random.default_rng(1).normal(size=(7, 2, 3))


def test_value_of_a_weighted_loss_is_the_weighted_sum_of_squares(make_loss, y_hat):
    loss = make_loss()
    by_hand = [
        sum(
            loss.phi["w"][i, j] * (y_hat[i].flat[j] - loss.y[i].flat[j]) ** 2
            for j in range(loss.dim)
        )
        for i in range(loss.n_instances)
    ]
    np.testing.assert_allclose(loss.value(y_hat), by_hand)


def test_a_loss_knows_its_sizes(make_loss):
    loss = make_loss(n_instances=5, label_shape=(2, 3))
    assert (loss.n_instances, loss.label_shape, loss.dim) == (5, (2, 3), 6)
    assert repr(loss).endswith("n_instances=5, label_shape=(2, 3))")


@every_family
def test_index_chooses_the_instances_of_the_predictions(make_loss, y_hat, family):
    loss = make_loss(family)
    index = [4, 0, 4]
    predictions = y_hat[:3]
    for method in ("value", "gradient", "curvature"):
        results = getattr(loss, method)(predictions, index)
        for row, instance in enumerate(index):
            alone = {name: rows[instance : instance + 1] for name, rows in loss.phi.items()}
            d = (predictions[row] - loss.y[instance]).reshape(1, 1, -1)
            expected = np.ravel(getattr(family, method)(alone, d))
            np.testing.assert_allclose(np.ravel(results[row]), expected, rtol=1e-12)


@every_family
def test_gradient_is_the_slope_of_the_value_in_the_shape_of_the_prediction(
    make_loss, y_hat, family
):
    loss = make_loss(family)
    gradient = loss.gradient(y_hat)
    assert gradient.shape == loss.curvature(y_hat).shape == y_hat.shape
    step = np.zeros((2, 3))
    step[1, 2] = 1e-6
    slope = (loss.value(y_hat + step) - loss.value(y_hat - step)) / 2e-6
    np.testing.assert_allclose(gradient[:, 1, 2], slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 7], "from 0 to 6, got 0 to 7"),
        ([-1], "from 0 to 6, got -1 to -1"),
        ([0.0], "whole number, got float64"),
        ([], "at least one"),
        (3, r"shape \(\)"),
        ([True] * 7, "np.flatnonzero"),
    ],
)
def test_an_index_that_chooses_no_instances_is_refused(make_loss, index, message):
    with pytest.raises(InvalidInputError, match=message):
        make_loss().subset(index)


def test_predictions_must_have_the_shape_of_the_chosen_labels(make_loss, y_hat):
    loss = make_loss()
    with pytest.raises(InvalidInputError, match=r"`y_hat` must have the labels' shape \(2, 2, 3\)"):
        loss.value(y_hat, [0, 1])
    with pytest.raises(InvalidInputError, match=r"got \(7, 6\)"):
        loss.gradient(y_hat.reshape(7, 6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(7)}, r"`y` must have shape \(n_instances, \*label_shape\), got \(7,\)"),
        ({"phi": {}}, r"must have the parameters \['w'\], got \[\]"),
        ({"phi": {"w": np.zeros((7, 5))}}, r"`phi\['w'\]` must have shape \(7, 6\), got \(7, 5\)"),
        ({"phi": {"w": np.zeros((7, 6), int)}}, "must be float32 or float64, got int64"),
        ({"phi": {"w": np.full((7, 6), np.nan)}}, "must be finite"),
    ],
)
def test_arrays_that_do_not_make_a_loss_are_refused(make_loss, change, message):
    with pytest.raises(InvalidInputError, match=message):
        dataclasses.replace(make_loss(), **change)


def test_errors_of_another_number_of_instances_are_refused(make_loss):
    with pytest.raises(InvalidInputError, match=r"`errors.mae_fitted` must have shape \(7,\)"):
        dataclasses.replace(make_loss(), errors=make_loss(n_instances=6).errors)


@every_family
def test_a_subset_gives_the_values_of_the_whole(make_loss, y_hat, family):
    loss = make_loss(family)
    subset = loss.subset([5, 2])
    np.testing.assert_array_equal(subset.value(y_hat[:2]), loss.value(y_hat[:2], [5, 2]))
    np.testing.assert_array_equal(subset.errors.mae_fitted, loss.errors.mae_fitted[[5, 2]])
    assert subset.subset([0]).provenance == {**loss.provenance, "subset_of": 7}


def test_labels_of_the_loss_pass_and_others_do_not(make_loss):
    loss = make_loss()
    loss.check_labels(loss.y)
    loss.check_labels(loss.y.astype(np.float32))
    other = loss.y.copy()
    other[4, 1, 0] += 1e-9
    with pytest.raises(InvalidInputError, match="instance 4 differs"):
        loss.check_labels(other)
    with pytest.raises(InvalidInputError, match=r"shape \(7, 2, 3\), got shape \(6, 2, 3\)"):
        loss.check_labels(loss.y[:6])


def test_a_loss_survives_pickling_to_a_worker(make_loss, y_hat):
    loss = make_loss()
    copy = pickle.loads(pickle.dumps(loss))  # noqa: S301
    np.testing.assert_array_equal(copy.value(y_hat), loss.value(y_hat))
