import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError
from lodl_benchmarks.quality import (
    QualityScale,
    decision_quality,
    normalised_decision_quality,
    quality_scale,
)

CHEAPEST = lodl.problem(np.argmin, lambda z, y: y.flat[z], sense="min")
DEAREST = lodl.problem(np.argmax, lambda z, y: y.flat[z], sense="max")
PROBLEMS = {"min": CHEAPEST, "max": DEAREST}


@pytest.fixture
def y():
    return np.random.default_rng(0).random((30, 2, 3))


@pytest.mark.parametrize("sense", PROBLEMS)
def test_random_predictions_give_zero_and_labels_give_one(sense, y):
    problem = PROBLEMS[sense]
    assert normalised_decision_quality(problem, y, y) == pytest.approx(1)
    scale = quality_scale(problem, y, random_state=3)
    y_random = np.random.default_rng(3).random((10, *y.shape))
    assert scale.normalise(decision_quality(problem, y_random, y)).mean() == pytest.approx(0)


def test_the_worst_predictions_score_below_random(y):
    assert normalised_decision_quality(CHEAPEST, -y, y) < -0.5


def test_normalise_is_affine():
    scale = QualityScale(random=2.0, optimal=4.0)
    assert scale.normalise([[2.0, 2.0], [4.0, 4.0], [3.0, 5.0]]).tolist() == [0.0, 1.0, 1.0]


def test_labels_that_decide_nothing_cannot_be_normalised():
    with pytest.raises(InvalidInputError, match=r"normalised.*labels change the decision"):
        quality_scale(CHEAPEST, np.ones((3, 2)))


def test_zero_may_be_what_the_labels_of_others_are_worth():
    y = 200 + np.random.default_rng(0).random((40, 5))
    y_random = np.random.default_rng(1).permutation(y)[np.newaxis]
    scale = quality_scale(CHEAPEST, y, y_random=y_random)
    assert scale.random == pytest.approx(decision_quality(CHEAPEST, y_random, y).mean())
    quality = normalised_decision_quality(CHEAPEST, y_random[0], y, y_random=y_random)
    assert quality == pytest.approx(0)


def test_random_predictions_that_are_passed_must_cover_all_instances(y):
    with pytest.raises(InvalidInputError, match=r"`y_random` must hold .*\(m, 30, 2, 3\)"):
        quality_scale(CHEAPEST, y, y_random=y)


def test_normalised_quality_is_of_one_model_and_refuses_more_before_any_call(y):
    def never(y_hat):
        raise AssertionError("called")

    problem = lodl.problem(never, lambda z, y: 0.0, sense="min")
    with pytest.raises(InvalidInputError, match=r"`y_hat` must have the labels' shape"):
        normalised_decision_quality(problem, np.stack([y, y]), y)


@pytest.mark.parametrize(("offset", "n_warnings"), [(0.0, 0), (100.0, 1)])
def test_labels_far_from_random_predictions_are_reported(y, offset, n_warnings, caplog):
    quality_scale(CHEAPEST, y + offset)
    assert caplog.text.count("Pass `y_random`") == n_warnings
