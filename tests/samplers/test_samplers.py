from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl import samplers
from lodl.errors import InvalidInputError
from lodl.samplers import (
    BLOCK_SIZE,
    AdjacentVertices,
    AllPerturbed,
    AtPredictions,
    OnePerturbed,
    Sampler,
    TwoPerturbed,
    _stream,
    check_sampler,
    label_scale,
)

PROFILE = settings(deadline=None, max_examples=25, derandomize=True)
LABEL_BASED: dict[str, Any] = {"all": AllPerturbed, "one": OnePerturbed, "two": TwoPerturbed}
CHANGED_COORDINATES = {"all": 12, "one": 1, "two": 2}


def draw(sampler, y, *, seed=0, instance=0, block=0, n=BLOCK_SIZE):
    centre, scale = sampler.centres(y)[instance], sampler.resolve_scale(y)
    return sampler.draw(y[instance], centre, scale, seed=seed, key=instance, block=block, n=n)


def labels(n=5, shape=(3, 4)):
    return np.random.default_rng(7).normal(size=(n, *shape))


@pytest.mark.parametrize("name", LABEL_BASED)
@given(seed=st.integers(0, 2**64 - 1), instance=st.integers(0, 4), block=st.integers(0, 1000))
@PROFILE
def test_a_block_is_a_pure_function_of_seed_instance_and_block(name, seed, instance, block):
    y, sampler = labels(), LABEL_BASED[name](0.5)
    first = draw(sampler, y, seed=seed, instance=instance, block=block)
    draw(sampler, y, seed=seed, instance=instance, block=block + 1)
    np.random.default_rng(0).normal()
    assert np.array_equal(first, draw(sampler, y, seed=seed, instance=instance, block=block))
    for other in (
        {"seed": seed ^ 1, "instance": instance, "block": block},
        {"seed": seed, "instance": (instance + 1) % 5, "block": block},
        {"seed": seed, "instance": instance, "block": block + 1},
    ):
        noise = first - y[instance]
        other_noise = draw(sampler, y, **other) - y[other["instance"]]
        assert not np.allclose(noise, other_noise)


@pytest.mark.parametrize("name", LABEL_BASED)
@given(seed=st.integers(0, 10_000))
@PROFILE
def test_k_perturbed_changes_exactly_k_coordinates(name, seed):
    y = labels()
    changed = (draw(LABEL_BASED[name](2.0), y, seed=seed) != y[0]).reshape(BLOCK_SIZE, -1)
    assert (changed.sum(axis=1) == CHANGED_COORDINATES[name]).all()


@pytest.mark.parametrize("name", LABEL_BASED)
def test_fewer_points_are_the_first_of_more(name):
    y, sampler = labels(), LABEL_BASED[name](1.0)
    assert np.array_equal(draw(sampler, y, n=7), draw(sampler, y)[:7])
    assert sampler.has_stable_prefix((3, 4))
    unstable = own_sampler(lambda rng, n, shape: np.full((n, *shape), n), 1.0)
    assert not unstable.has_stable_prefix((3, 4))


def test_every_pair_of_coordinates_is_perturbed():
    changed = draw(TwoPerturbed(1.0), labels(shape=(4,))) != labels(shape=(4,))[0]
    pairs, counts = np.unique(np.argwhere(changed)[:, 1].reshape(-1, 2), axis=0, return_counts=True)
    assert len(pairs) == 6
    assert counts.min() > BLOCK_SIZE / 6 / 2


def test_points_without_noise_are_counted_and_settings_name_what_points_depend_on():
    y = labels()
    at = AtPredictions(y + 1, 0.5, margin=3.0, n_exact=1)
    assert at.settings() == {"margin": 3.0, "n_exact": 1}
    assert AllPerturbed(0.5).settings() == {}
    assert at.exact(y, y + 1).shape == (5, 1, 3, 4)
    assert AllPerturbed(0.5).exact(y, y).shape == (5, 0, 3, 4)


def test_every_sampler_of_the_module_is_a_public_name():
    kinds = {name: kind for name, kind in vars(samplers).items() if isinstance(kind, type)}
    defined = {name for name, kind in kinds.items() if issubclass(kind, Sampler)}
    assert len(defined) == 6
    assert defined <= set(samplers.__all__)


def test_adjacent_vertices_take_the_predictions_of_their_instances():
    y, y_hat, rows = labels(), labels() + 100, np.array([4, 1])
    assert np.array_equal(AdjacentVertices(y_hat).take(rows).centres(y[rows]), y_hat[rows])
    assert np.array_equal(AdjacentVertices().take(rows).centres(y[rows]), y[rows])


def test_the_two_coordinates_are_distinct_even_when_there_are_only_two():
    y = labels(shape=(2,))
    for seed in range(20):
        assert (draw(TwoPerturbed(1.0), y, seed=seed) != y[0]).all()


@pytest.mark.parametrize("name", ["one", "two"])
def test_every_coordinate_is_chosen_equally_often(name):
    y = labels(shape=(6,))
    blocks = [draw(LABEL_BASED[name](1.0), y, block=block) for block in range(100)]
    counts = (np.concatenate(blocks) != y[0]).sum(axis=0)
    expected = 100 * BLOCK_SIZE * CHANGED_COORDINATES[name] / 6
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize("name", LABEL_BASED)
def test_noise_has_the_scale_and_is_centred_on_the_label(name):
    y, scale = labels(shape=(3,)), np.array([0.1, 1.0, 10.0])
    sampler = LABEL_BASED[name](scale)
    noise = np.concatenate([draw(sampler, y, instance=2, block=b) for b in range(200)]) - y[2]
    for coordinate in range(3):
        moved = noise[noise[:, coordinate] != 0, coordinate]
        assert abs(moved.mean()) < 5 * scale[coordinate] / np.sqrt(moved.size)
        assert moved.std() == pytest.approx(scale[coordinate], rel=0.05)


def test_auto_is_the_standard_deviation_of_each_coordinate():
    sizes = np.array([700.0, 30.0, 1.0, 0.0])
    y = 5.0 + sizes * np.random.default_rng(0).standard_normal((50, 4))
    scale = AllPerturbed().resolve_scale(y)
    np.testing.assert_allclose(scale[:3], np.sqrt(((y - y.mean(axis=0)) ** 2).mean(axis=0))[:3])
    assert scale[3] == pytest.approx(np.sqrt(((y - y.mean()) ** 2).mean()))


def test_auto_of_few_labels_is_the_standard_deviation_of_all_values_together():
    y = np.random.default_rng(0).standard_normal((9, 4))
    assert AllPerturbed().resolve_scale(y) == np.sqrt(((y - y.mean()) ** 2).mean())


def test_auto_needs_labels_that_vary():
    with pytest.raises(InvalidInputError, match=r"All labels are equal, .*is 0. Give a number"):
        AllPerturbed().resolve_scale(np.ones((3, 2)))


def test_an_array_scale_broadcasts_to_the_label():
    y = labels(shape=(3, 4))
    noise = draw(AllPerturbed(np.array([1.0, 0.0, 1.0, 0.0])), y) - y[0]
    assert (noise[..., [1, 3]] == 0).all()
    assert (noise[..., [0, 2]] != 0).all()


def test_a_scale_that_does_not_broadcast_is_refused():
    with pytest.raises(InvalidInputError, match=r"label's shape \(3, 4\), got shape \(3,\)"):
        AllPerturbed(np.ones(3)).resolve_scale(labels())


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, [1.0, -1.0], [0.0, 0.0]])
@pytest.mark.parametrize("name", LABEL_BASED)
def test_a_scale_must_be_finite_and_positive(name, scale):
    with pytest.raises(InvalidInputError, match="`scale` must be finite, nowhere negative"):
        LABEL_BASED[name](scale)


@pytest.mark.parametrize("scale", ["automatic", {"a": 1}, "0.5"])
def test_a_scale_must_be_a_number_an_array_or_auto(scale):
    with pytest.raises(InvalidInputError, match='must be a number, an array or "auto"'):
        AllPerturbed(scale)


def test_a_sampler_keeps_its_own_copy_of_the_scale():
    scale = np.ones(4)
    sampler = AllPerturbed(scale)
    scale[:] = 9
    assert (sampler.resolve_scale(labels()) == 1).all()


def own_sampler(noise, scale):
    class Own(Sampler):
        def noise(self, rng, n, label_shape):
            return noise(rng, n, label_shape)

    sampler = Own()
    sampler.scale = scale
    return sampler


def test_a_sampler_of_ones_own_needs_a_noise_and_a_scale():
    sampler = own_sampler(lambda rng, n, shape: rng.integers(2, size=(n, *shape)), 0.5)
    assert set(np.unique(draw(sampler, np.zeros((1, 2))))) == {0.0, 0.5}


def test_a_sampler_of_ones_own_is_checked():
    with pytest.raises(InvalidInputError, match="""an array or "auto", got 'atuo'"""):
        own_sampler(lambda rng, n, shape: rng.normal(size=(n, *shape)), "atuo").resolve_scale(
            labels()
        )
    sampler = own_sampler(lambda rng, n, shape: rng.normal(size=shape), 1.0)
    with pytest.raises(InvalidInputError, match=r"`noise` of Own must return shape \(500, 3, 4\)"):
        draw(sampler, labels())


def test_around_predictions_keeps_its_own_copy():
    y_hat = labels()
    sampler = AtPredictions(y_hat, 0.5, n_exact=0)
    y_hat[:] = 9
    assert np.array_equal(sampler.centres(labels()), labels())


def test_two_perturbed_needs_two_coordinates():
    with pytest.raises(InvalidInputError, match="at least 2 numbers, got shape"):
        draw(TwoPerturbed(1.0), labels(shape=(1,)))


def test_around_predictions_perturbs_the_predictions():
    y, y_hat = labels(), labels() + 100
    points = draw(AtPredictions(y_hat, 0.5, n_exact=0), y, instance=3)
    np.testing.assert_allclose(points, draw(AllPerturbed(0.5), y, instance=3) + 100)


def test_around_predictions_hands_over_only_the_rows_asked_for():
    y, y_hat = labels(), labels() + 100
    rows = np.array([4, 1])
    part = AtPredictions(y_hat, 0.5, n_exact=0).take(rows)
    assert np.array_equal(part.centres(y[rows]), y_hat[rows])


def test_around_predictions_needs_one_prediction_per_label():
    with pytest.raises(InvalidInputError, match=r"labels' shape \(5, 3, 4\), got \(4, 3, 4\)"):
        AtPredictions(labels(4), 0.5, n_exact=0).centres(labels(5))
    with pytest.raises(InvalidInputError, match="`y_hat` must be finite"):
        AtPredictions(np.full((2, 2), np.nan), 0.5, n_exact=0)


@pytest.mark.parametrize("n_exact", [0, 1, 2])
def test_the_first_points_are_the_prediction_and_the_one_beyond_it(n_exact):
    y, y_hat = labels(), labels() + 100
    noisy, at = AtPredictions(y_hat, 0.5, n_exact=0), AtPredictions(y_hat, 0.5, n_exact=n_exact)
    exact = np.array([y_hat[0], 2 * y_hat[0] - y[0]])
    assert np.array_equal(draw(at, y)[:n_exact], exact[:n_exact])
    assert np.array_equal(draw(at, y)[n_exact:], draw(noisy, y)[n_exact:])
    assert np.array_equal(draw(at, y, block=1), draw(noisy, y, block=1))
    assert np.array_equal(draw(at, y, n=1), draw(at, y)[:1])


def test_two_points_are_exact_by_default():
    assert AtPredictions(labels()).n_exact == 2


def test_predictions_and_scales_are_checked_once_and_then_stay_as_they_are():
    y_hat = labels()
    sampler = AtPredictions(y_hat)
    y_hat += 1
    assert not np.array_equal(sampler.y_hat, y_hat)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(sampler.y_hat)[0] = 0
    with pytest.raises(InvalidInputError, match="`scale` must be finite"):
        AtPredictions(y_hat, scale=-1.0)


@pytest.mark.parametrize("n_exact", [-1, 3, 0.5, None])
def test_at_most_two_points_are_exact(n_exact):
    with pytest.raises(InvalidInputError, match="`n_exact` must be 0, 1 or 2, got"):
        AtPredictions(labels(), n_exact=n_exact)


@pytest.mark.parametrize("margin", [1.25, 2.0, 5.0])
def test_the_point_beyond_a_prediction_meets_the_decision_whose_hinge_is_most_violated(margin):
    """Decision k costs c_k + g_k . v, and its hinge at y_hat is r_k - margin (r_k + s_k . d)."""
    rng = np.random.default_rng(0)
    c, g = 5 * rng.normal(size=40), rng.normal(size=(40, 3))
    y, y_hat = rng.normal(size=(2, 20, 3))
    sampler = AtPredictions(y_hat, 0.5, margin=margin)
    for i in range(20):
        costs, best = c + g @ y[i], np.argmin(c + g @ y[i])
        regret, slope = costs - costs[best], g - g[best]
        hinges = regret - margin * (regret + slope @ (y_hat[i] - y[i]))
        beyond = draw(sampler, y, instance=i)[1]
        assert np.argmin(c + g @ beyond) == np.argmax(hinges)


def test_at_predictions_checks_its_predictions_and_its_margin():
    with pytest.raises(InvalidInputError, match="`y_hat` must be finite"):
        AtPredictions(np.full((2, 2), np.nan), 0.5)
    for margin in (1.0, 0.5, np.inf, np.nan):
        with pytest.raises(InvalidInputError, match=f"`margin` must be .* above 1, got {margin}"):
            AtPredictions(labels(), 0.5, margin=margin)


@pytest.mark.parametrize("n_bits", [0, 1, 32, 33, 64])
def test_a_stream_is_that_of_a_seed_sequence_with_a_spawn_key(n_bits):
    seed, key = 2**n_bits - 1, 2 ** (2 * n_bits) - 1
    expected = np.random.SeedSequence(seed, spawn_key=(key, 3)).generate_state(8)
    assert np.array_equal(_stream(seed, key, 3).generate_state(8), expected)


def test_each_coordinate_has_its_own_scale_from_ten_labels_on():
    y = np.random.default_rng(0).normal(size=(10, 3)) * [1.0, 2.0, 0.0]
    expected = [*y.std(axis=0)[:2], y.std()]  # nothing is known about the last
    assert np.array_equal(AllPerturbed().resolve_scale(y), expected)
    assert AllPerturbed().resolve_scale(y[:9]) == y[:9].std()


def test_the_scale_of_labels_has_their_shape_and_is_nowhere_zero():
    y = np.random.default_rng(0).normal(size=(12, 2, 3))
    assert np.array_equal(label_scale(y), y.std(axis=0))
    assert np.array_equal(label_scale(y[:3]), np.full((2, 3), y[:3].std()))
    assert np.array_equal(label_scale(np.full((12, 2), -5.0)), [5.0, 5.0])
    assert np.array_equal(label_scale(np.zeros((12, 2))), [1.0, 1.0])


def test_the_class_of_a_sampler_is_refused():
    with pytest.raises(InvalidInputError, match="`sampler` must be an instance, got the class All"):
        check_sampler(AllPerturbed)
