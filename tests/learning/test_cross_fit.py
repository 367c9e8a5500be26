"""Parts that are held out in turn, and models that have not seen what they predict."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl.errors import InvalidInputError
from lodl.learning._folds import Average, Folds, cross_fit
from lodl.losses import squared_error_loss
from lodl.training import Learner, Predictor

PROFILE = settings(deadline=None, max_examples=50, derandomize=True)
VALIDATIONS = st.none() | st.integers(2, 6) | st.floats(0.01, 0.99)


def folds_of(n, validation, *, shuffle=False, seed=0, groups=None):
    return Folds.of(n, validation, shuffle=shuffle, seed=seed, groups=groups)


def parts_of(*arguments, **options):
    return [part.tolist() for part in folds_of(*arguments, **options).held_out]


@given(n=st.integers(6, 60), validation=VALIDATIONS, shuffle=st.booleans(), seed=st.integers(0, 9))
@PROFILE
def test_every_instance_is_held_out_once_or_one_part_is(n, validation, shuffle, seed):
    folds = folds_of(n, validation, shuffle=shuffle, seed=seed)
    judged = np.concatenate(folds.held_out)
    assert len(set(judged)) == len(judged)
    np.testing.assert_array_equal(folds.judged, sorted(judged))
    sizes = [len(part) for part in folds.held_out]
    if isinstance(validation, float):
        assert sizes == [min(max(1, round(validation * n)), n - 1)]
    else:
        assert len(sizes) == (validation or 5)
        assert sum(sizes) == n
        assert max(sizes) - min(sizes) <= 1
    for part in folds.held_out:
        assert (np.diff(part) > 0).all()
        np.testing.assert_array_equal(folds.rest(part), sorted(set(range(n)) - set(part.tolist())))
    assert (folds.n, folds.n_final) == (n, n)


@given(n=st.integers(6, 40), validation=VALIDATIONS, shuffle=st.booleans(), seed=st.integers(0, 9))
@PROFILE
def test_groups_are_held_out_as_instances_would_be(n, validation, shuffle, seed):
    """Groups of one instance are instances; groups of two that stand apart, pairs of them."""
    options = {"shuffle": shuffle, "seed": seed}
    expected = parts_of(n, validation, **options)
    names = np.array([f"{(7 * i) % n:02d}" for i in range(n)]) if n % 7 else np.arange(n)
    assert parts_of(n, validation, groups=names, **options) == expected
    twice = folds_of(2 * n, validation, groups=np.tile(names, 2), **options)
    assert [part.tolist() for part in twice.held_out] == [
        part + [n + i for i in part] for part in expected
    ]
    assert (twice.n, twice.n_final) == (2 * n, 2 * n)


def test_two_instances_have_two_folds_and_few_have_one_each():
    assert parts_of(2, None) == [[0], [1]]
    assert parts_of(4, None) == [[0], [1], [2], [3]]
    assert parts_of(4, 4) == [[0], [1], [2], [3]]
    assert parts_of(2, 0.99) == [[1]]
    assert parts_of(2, 0.01) == [[1]]


def test_from_3000_instances_on_a_fifth_is_held_out_whatever_the_groups():
    assert [len(part) for part in parts_of(2999, None)] == [600] * 4 + [599]
    assert parts_of(3000, None) == [list(range(2400, 3000))]
    groups = np.arange(3000) // 300  # ten of them
    assert parts_of(3000, None, groups=groups) == [list(range(2400, 3000))]
    assert len(parts_of(2990, None, groups=groups[:2990])) == 5


def test_a_draw_depends_on_the_seed_and_a_share_is_drawn_from_all():
    first, again, other = (parts_of(50, 0.5, shuffle=True, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first != [list(range(25, 50))]


@pytest.mark.parametrize("validation", [1, 0, -1, 7, 0.0, 1.0, -0.5, np.nan, True, "5", (1, 2, 3)])
def test_a_validation_that_is_neither_folds_nor_a_share_is_refused(validation):
    with pytest.raises(InvalidInputError, match=r"^`validation`.* must be .* got "):
        folds_of(6, validation)


def test_given_validation_instances_come_last_and_train_nothing():
    folds = Folds.given(7, 3)
    assert (folds.n, folds.n_final) == (10, 7)
    assert [part.tolist() for part in folds.held_out] == [[7, 8, 9]]
    assert folds.rest(folds.judged).tolist() == list(range(7))


def test_the_mean_label_of_an_instance_is_that_of_the_others():
    y = np.random.default_rng(0).normal(size=(9, 2, 3))
    means = folds_of(9, 3).means(y)
    for i in range(9):
        others = [k for k in range(9) if k // 3 != i // 3]
        np.testing.assert_allclose(means[i], sum(y[k] for k in others) / 6)
    means = folds_of(9, 1 / 3).means(y)
    np.testing.assert_allclose(means[6:], np.broadcast_to(sum(y[:6]) / 6, (3, 2, 3)))
    np.testing.assert_allclose(means[:6], np.broadcast_to(sum(y) / 9, (6, 2, 3)))


def test_folds_say_what_judges():
    assert folds_of(9, 2).in_words(9) == "9 instances, 2 folds"
    assert folds_of(9, 1 / 3).in_words(3) == "3 instances, held out once"


@dataclass(frozen=True)
class Constant(Predictor):
    """Predicts one label."""

    label: np.ndarray
    n_steps: int

    def predict(self, x):
        return np.broadcast_to(self.label, (len(x), *self.label.shape)).copy()


class MeanLearner(Learner):
    """Notes its arguments. The number of steps is that of the instances, squared."""

    max_steps = 9

    def __init__(self):
        self.seen = []

    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        self.seen.append((x, masks, prepared, n_steps))
        return [Constant(loss.y[mask].mean(axis=0), int(mask.sum()) ** 2) for mask in masks]


@pytest.mark.parametrize("stops", [True, False])
def test_a_model_has_not_seen_what_it_predicts(stops):
    x, y = np.arange(7.0)[:, np.newaxis], np.random.default_rng(0).normal(size=(7, 2))
    learner, folds = MeanLearner(), folds_of(7, 3)  # parts of 3, 2 and 2
    found = cross_fit(learner, x, squared_error_loss(y), folds, prepared="known", stops=stops)
    np.testing.assert_allclose(found.y_hat, folds.means(y))
    assert [model.n_steps for model in found.models] == [16, 25, 25]
    assert found.n_steps == 22
    ((x_seen, masks, prepared, n_steps),) = learner.seen
    assert x_seen is x
    assert prepared == "known"
    assert n_steps == (None if stops else 9)
    for part, mask in zip(folds.held_out, masks, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(~mask), part)


def test_instances_never_held_out_are_predicted_by_the_last_model():
    y = np.random.default_rng(0).normal(size=(6, 2))
    found = cross_fit(MeanLearner(), np.zeros((6, 1)), squared_error_loss(y), folds_of(6, 0.5))
    np.testing.assert_allclose(found.y_hat, np.tile(y[:3].mean(axis=0), (6, 1)))


def test_an_average_predicts_the_mean_in_the_shape_of_a_label():
    models = [Constant(np.array([1.0, 2.0, 3.0, 4.0]), 1), Constant(np.full(4, 3.0), 1)]
    expected = np.tile([2.0, 2.5, 3.0, 3.5], (5, 1))
    np.testing.assert_array_equal(Average(models).predict(np.zeros((5, 1))), expected)
    shaped = Average(models, (2, 2)).predict(np.zeros((5, 1)))
    np.testing.assert_array_equal(shaped, expected.reshape(5, 2, 2))


def test_a_learner_that_returns_too_few_models_is_an_error():
    class TooFew(MeanLearner):
        def train(self, *_, **__):
            return [Constant(np.zeros(6), 3)]

    loss = squared_error_loss(np.eye(6))
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        cross_fit(TooFew(), np.zeros((6, 1)), loss, folds_of(6, 2))
