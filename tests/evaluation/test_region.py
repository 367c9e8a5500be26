import dataclasses

import numpy as np
import pytest

import lodl
from lodl.domains import TopK
from lodl.evaluation import diagnose

pytestmark = pytest.mark.slow

SCALE = 0.3


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(0).random((100, 20))


@pytest.fixture(scope="module")
def learn(y):
    """Learns a loss with the given sampler; hardly a sample is needed."""

    def learn(sampler):
        return lodl.learn_loss(TopK(1), y, family=lodl.WeightedMSE(), sampler=sampler, n_samples=10)

    return learn


def region(loss, y, y_hat, **arguments):
    return diagnose(loss, TopK(1), y, y_hat, **arguments).region


@pytest.mark.parametrize(
    "sampler",
    [lodl.AllPerturbed(SCALE), lodl.OnePerturbed(SCALE), lodl.TwoPerturbed(SCALE)],
    ids=lambda sampler: type(sampler).__name__,
)
def test_predictions_like_the_samples_are_neither_outside_nor_far_inside(learn, y, sampler):
    y_hat = y + SCALE * sampler.noise(np.random.default_rng(1), len(y), y.shape[1:])
    found = region(learn(sampler), y, y_hat)
    assert found.scale == SCALE
    assert found.size_ratio == pytest.approx(1, abs=0.2)
    assert found.share_wider == 0
    assert found.share_outside <= 0.08  # 1 % of sizes and 1 % of largest coordinates are expected
    assert found.share_inside <= 0.05


@pytest.mark.parametrize("factor", [0.1, 5.0])
def test_the_size_of_errors_is_told_in_units_of_those_sampled(learn, y, factor):
    y_hat = y + factor * SCALE * np.random.default_rng(1).standard_normal(y.shape)
    found = region(learn(lodl.AllPerturbed(SCALE)), y, y_hat)
    assert found.size_ratio == pytest.approx(factor, rel=0.1)
    assert (found.share_outside, found.share_inside) == ((1, 0) if factor > 1 else (0, 1))


def test_one_coordinate_far_off_is_outside_though_the_whole_is_not(learn, y):
    noise = np.random.default_rng(1).standard_normal(y.shape)
    noise[:, 0] = 4.5
    noise[:, 1:] *= 0.5
    found = region(learn(lodl.AllPerturbed(SCALE)), y, y + SCALE * noise)
    assert found.size_ratio == pytest.approx(1, abs=0.2)
    assert found.share_outside == 1


def test_errors_in_all_coordinates_are_no_larger_than_those_sampled_one_by_one(learn, y):
    y_hat = y + SCALE * np.random.default_rng(1).standard_normal(y.shape)
    assert region(learn(lodl.OnePerturbed(SCALE)), y, y_hat).size_ratio < 2


@pytest.mark.parametrize(
    ("sampler", "n_at_once"),
    [(lodl.OnePerturbed(SCALE), 1), (lodl.TwoPerturbed(SCALE), 2), (lodl.AllPerturbed(SCALE), 20)],
)
def test_errors_in_more_coordinates_at_once_than_were_sampled_are_outside(
    learn, y, sampler, n_at_once
):
    y_hat = y + 0.5 * SCALE  # smaller than samples are, in every coordinate
    found = diagnose(learn(sampler), TopK(1), y, y_hat)
    is_wider = n_at_once < 20
    assert found.region.n_at_once == n_at_once
    assert found.region.share_wider == is_wider
    assert found.region.share_outside == is_wider
    assert ("wrong in more coordinates at once 100%" in " ".join(str(found).split())) == is_wider


def test_a_trace_of_error_in_other_coordinates_does_not_count(learn, y):
    y_hat = y + 1e-6
    y_hat[:, 3] += SCALE
    found = region(learn(lodl.OnePerturbed(SCALE)), y, y_hat)
    assert (found.share_wider, found.share_outside) == (0, 0)


def test_samples_that_the_valid_range_took_back_to_the_label_do_not_count(y):
    class Positive(TopK):
        def project(self, y_hats):
            return y_hats.clip(0.0, None)

    labels = np.zeros_like(y)
    loss = lodl.learn_loss(
        Positive(1), labels, family=lodl.WeightedMSE(), sampler=lodl.OnePerturbed(1), n_samples=10
    )
    y_hat = labels.copy()
    y_hat[:, 3] = 0.67  # half of all standard normal numbers are smaller in size
    assert diagnose(loss, Positive(1), labels, y_hat).region.size_ratio == pytest.approx(1, rel=0.2)


def test_where_no_sample_differs_from_the_label_any_error_is_outside(y):
    class Certain(TopK):
        def project(self, y_hats):
            return np.zeros_like(y_hats)

    labels = np.zeros_like(y)
    loss = lodl.learn_loss(Certain(1), labels, sampler=lodl.AllPerturbed(1), n_samples=10)
    found = diagnose(loss, Certain(1), labels, labels + 0.5).region
    assert np.isnan(found.size_ratio)
    assert (found.share_outside, found.share_inside) == (1, 0)


def test_coordinates_that_the_valid_range_takes_back_were_sampled_all_the_same(y):
    class Blunt(TopK):
        def project(self, y_hats):
            return np.where(np.arange(y_hats.shape[-1]) == 0, y_hats, 0.0)

    labels = np.zeros_like(y)
    loss = lodl.learn_loss(
        Blunt(1), labels, family=lodl.WeightedMSE(), sampler=lodl.AllPerturbed(1), n_samples=10
    )
    assert diagnose(loss, Blunt(1), labels, labels + 0.5).region.share_wider == 0


def test_a_scale_for_each_coordinate_asks_for_the_sampler(learn, y):
    sampler = lodl.AllPerturbed(np.array([0.0, *np.linspace(0.1, 10, y.shape[1] - 1)]))
    loss = learn(sampler)
    noise = np.random.default_rng(1).standard_normal(y.shape)
    y_hat = y + np.asarray(sampler.scale) * noise
    y_hat[:, 0] += 100  # a coordinate that was not sampled does not count
    assert "give `sampler`" in str(diagnose(loss, TopK(1), y, y_hat))
    assert region(loss, y, y_hat) is None
    found = region(loss, y, y_hat, sampler=sampler)
    assert found.scale == 10
    assert found.size_ratio == pytest.approx(1, abs=0.1)


def test_samples_around_predictions_lie_where_the_predictions_are(learn, y):
    y_hat = y + 3.0
    sampler = lodl.AtPredictions(y_hat, scale=SCALE, n_exact=0)
    found = region(learn(sampler), y, y_hat, sampler=sampler)
    assert found.size_ratio == pytest.approx(1, abs=0.05)


def test_samples_count_as_they_were_brought_into_the_valid_range(y):
    class Positive(TopK):
        def project(self, y_hats):
            return y_hats.clip(0.0, None)

    labels = np.zeros_like(y)
    loss = lodl.learn_loss(
        Positive(1), labels, family=lodl.WeightedMSE(), sampler=lodl.AllPerturbed(1), n_samples=10
    )
    y_hat = np.abs(np.random.default_rng(1).standard_normal(y.shape))
    found = diagnose(loss, Positive(1), labels, y_hat).region
    assert found.size_ratio == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("provenance", [{}, {"sampler": "Mine", "scale": 1.0}])
def test_a_loss_that_does_not_tell_its_sampler_has_no_region(learn, y, provenance):
    loss = dataclasses.replace(learn(lodl.AllPerturbed(SCALE)), provenance=provenance)
    found = diagnose(loss, TopK(1), y, y + 1)
    assert found.region is None
    assert found.to_dict()["region"] is None
