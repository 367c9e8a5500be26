"""Folds: parts that are held out, copies, groups, splitters, and models trained without them."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError
from lodl.learning._data import Data
from lodl.learning._folds import Folds, Trainer
from lodl.losses import squared_error_loss
from lodl.training import Learner, Predictor

PROFILE = settings(deadline=None, max_examples=50, derandomize=True)
VALIDATIONS = st.none() | st.integers(2, 6) | st.floats(0.01, 0.99)


def folds_of(x, y=None, context=None, *, validation=None, groups=None, seed=0):
    """Return the folds of features, or of so many different instances."""
    if isinstance(x, int):
        x = y = np.arange(1.0, x + 1)[:, np.newaxis]
    y = x if y is None else y
    data = Data.of(x, y, context, takes_frames=not isinstance(x, np.ndarray))
    return Folds.of(data, validation, groups, seed=seed, rows=x)


def parts_of(*arguments, **options):
    return [np.flatnonzero(part).tolist() for part in folds_of(*arguments, **options).parts]


@given(n=st.integers(6, 60), validation=VALIDATIONS, seed=st.integers(0, 9))
@PROFILE
def test_every_instance_is_held_out_once_or_one_part_is(n, validation, seed):
    folds = folds_of(n, validation=validation, seed=seed)
    assert folds.parts.sum(axis=0).max() == 1
    np.testing.assert_array_equal(folds.validation, np.flatnonzero(folds.parts.any(axis=0)))
    sizes = folds.parts.sum(axis=1).tolist()
    if isinstance(validation, float):
        assert sizes == [min(max(1, round(validation * n)), n - 1)]
    else:
        assert len(sizes) == (validation or 5)
        assert sum(sizes) == n
        assert max(sizes) - min(sizes) <= 1
    np.testing.assert_array_equal(folds.masks, ~folds.parts)
    assert folds.n_final == n


@given(n=st.integers(6, 40), validation=VALIDATIONS, seed=st.integers(0, 9))
@PROFILE
def test_groups_are_held_out_as_instances_would_be(n, validation, seed):
    """Groups of one instance are instances; groups of two that are apart, pairs of them."""
    expected = parts_of(n, validation=validation, seed=seed)
    names = np.array([f"{(7 * i) % n:02d}" for i in range(n)]) if n % 7 else np.arange(n)
    assert parts_of(n, validation=validation, seed=seed, groups=names) == expected
    twice = parts_of(2 * n, validation=validation, seed=seed, groups=np.tile(names, 2))
    assert twice == [part + [n + i for i in part] for part in expected]


def test_two_instances_have_two_folds_and_few_have_one_each():
    assert sorted(parts_of(2)) == [[0], [1]]
    assert sorted(parts_of(4)) == [[0], [1], [2], [3]]
    assert sorted(parts_of(4, validation=4)) == [[0], [1], [2], [3]]
    assert len(parts_of(2, validation=0.99)) == 1
    assert len(parts_of(2, validation=0.01)[0]) == 1


def test_from_3000_instances_on_a_fifth_is_held_out_whatever_the_groups():
    assert [len(part) for part in parts_of(2999)] == [600] * 4 + [599]
    assert [len(part) for part in parts_of(3000)] == [600]
    groups = np.arange(3000) // 300  # ten of them
    assert [len(part) for part in parts_of(3000, groups=groups)] == [600]
    assert len(parts_of(2990, groups=groups[:2990])) == 5


def test_folds_are_drawn_by_the_seed():
    expected = np.array_split(np.random.default_rng(3).permutation(20), 5)
    assert parts_of(20, seed=3) == [sorted(part.tolist()) for part in expected]
    first, again, other = (parts_of(50, validation=0.5, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("validation", [1, 0, -1, 7, 0.0, 1.0, -0.5, np.nan, True, "5", [1, 2]])
def test_a_validation_that_is_neither_folds_nor_a_share_nor_a_splitter_is_refused(validation):
    with pytest.raises(InvalidInputError, match=r"^`validation`.* must be .* got "):
        folds_of(6, validation=validation)


def test_given_validation_instances_come_last_and_train_nothing():
    x = np.arange(10.0)[:, np.newaxis]
    folds = Folds.given(Data.of(x, x, None, takes_frames=False), 7)
    assert folds.n_final == 7
    assert folds.validation.tolist() == [7, 8, 9]
    assert np.flatnonzero(folds.masks[0]).tolist() == list(range(7))


def test_the_mean_label_of_an_instance_is_that_of_the_others():
    y = np.random.default_rng(0).normal(size=(9, 2, 3))
    means = folds_of(9, validation=KFold(3)).means(y)
    for i in range(9):
        others = [k for k in range(9) if k // 3 != i // 3]
        np.testing.assert_allclose(means[i], sum(y[k] for k in others) / 6)
    folds = folds_of(9, validation=1 / 3)
    means, part = folds.means(y), folds.parts[0]
    np.testing.assert_allclose(means[part], np.broadcast_to(y[~part].mean(axis=0), (3, 2, 3)))
    np.testing.assert_allclose(means[~part], np.broadcast_to(y.mean(axis=0), (6, 2, 3)))


DAYS = pd.date_range("2020-01-01", periods=10)


def in_time(index):
    return pd.DataFrame({"a": np.arange(10.0)}, index=index)


@pytest.mark.parametrize(
    "index",
    [DAYS, DAYS.tz_localize("Europe/Berlin"), pd.period_range("2020-01", periods=10, freq="M")],
    ids=["dates", "zone", "months"],
)
def test_instances_in_the_order_of_time_are_held_out_in_blocks(index):
    folds = folds_of(in_time(index))
    assert [np.flatnonzero(part).tolist() for part in folds.parts] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
        [8, 9],
    ]
    assert folds.describe(10) == "10 instances, 5 folds in the order of time"


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_dates_shows_the_order_of_time(kind):
    x = kind({"a": np.arange(10.0), "day": DAYS.to_numpy()})
    data = Data.of(x, np.arange(10.0), None, takes_frames=True)
    assert data.time_order == 1
    parts = Folds.of(data, 0.2, None, seed=0, rows=x).parts
    assert np.flatnonzero(parts[0]).tolist() == [8, 9]


def test_the_latest_instances_are_held_out_if_they_come_first():
    x = in_time(DAYS[::-1])
    assert np.flatnonzero(folds_of(x, validation=0.2).parts[0]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "index", [DAYS[[1, 0, *range(2, 10)]], [DAYS[0]] * 10, [pd.NaT, *DAYS[1:]], range(10)]
)
def test_other_instances_are_held_out_at_random(index):
    x = in_time(index)
    assert not folds_of(x).are_blocks
    np.testing.assert_array_equal(folds_of(x).parts, folds_of(10).parts)


def test_groups_and_splitters_come_before_the_order_of_time():
    x = in_time(DAYS)
    assert not folds_of(x, groups=[0, 1] * 5, validation=2).are_blocks
    assert not folds_of(x, validation=KFold(2, shuffle=True)).are_blocks


def test_the_group_of_an_instance_is_its_fold_or_its_fifth_of_a_single_part():
    folds = folds_of(9, validation=3)
    for row, group in enumerate(folds.groups):
        assert folds.parts[group, row]
    assert folds_of(20, validation=0.5).groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_folds_are_described():
    assert folds_of(9, validation=2).describe(9) == "9 instances, 2 folds"
    assert folds_of(9, validation=1 / 3).describe(1) == "1 instance, held out once"


# Splitters of scikit-learn ----------------------------------------------------------------------


def test_a_splitter_says_which_instances_train_and_which_validate():
    folds = folds_of(12, validation=TimeSeriesSplit(3))
    for mask, part, (train, test) in zip(
        folds.masks, folds.parts, TimeSeriesSplit(3).split(np.zeros(12)), strict=True
    ):
        assert np.flatnonzero(mask).tolist() == train.tolist()
        assert np.flatnonzero(part).tolist() == test.tolist()
    assert folds.validation.tolist() == list(range(3, 12))


def test_a_splitter_gets_the_groups():
    groups = [f"town {i // 3}" for i in range(12)]
    folds = folds_of(12, validation=GroupKFold(2), groups=groups)
    for mask, part in zip(folds.masks, folds.parts, strict=True):
        assert not set(np.array(groups)[mask]) & set(np.array(groups)[part])
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        folds_of(12, validation=GroupKFold(2))


def test_an_instance_that_several_models_hold_out_has_their_mean_prediction():
    y = np.random.default_rng(0).normal(size=(6, 2))
    folds = folds_of(6, validation=RepeatedKFold(n_splits=2, n_repeats=3, random_state=0))
    assert folds.parts.shape == (6, 6)
    _, y_hat = trainer(MeanLearner(), y, folds).train(squared_error_loss(y))
    for i in range(6):
        held_out = folds.parts[:, i]
        means = [y[mask].mean(axis=0) for mask in folds.masks[held_out]]
        np.testing.assert_allclose(y_hat[i], np.mean(means, axis=0))
        assert len(means) == 3


@pytest.mark.parametrize("splits", [[], [([0, 1], [2]), ([], [3])], [([0, 1], [2]), ([0, 1], [])]])
def test_a_splitter_without_instances_to_train_or_to_validate_is_refused(splits):
    class Splitter:
        def split(self, *_):
            return ((np.array(a, dtype=int), np.array(b, dtype=int)) for a, b in splits)

    with pytest.raises(InvalidInputError, match="`validation` must give instances to train"):
        folds_of(6, validation=Splitter())


# Copies ------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = RNG.normal(size=(20, 4))
TWICE = np.tile(np.arange(20), 2)
PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "array": np.asarray}


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_copies_do_not_make_a_model_look_better_than_it_is():
    nearest = KNeighborsRegressor(1)  # remembers its training instances
    model = DecisionFocusedRegressor(PICK, nearest, families=(), n_rounds=0, n_samples=2)
    on_new = model.fit(X, Y).result_.mean_baseline
    assert model.fit(X[TWICE], Y[TWICE]).result_.mean_baseline > 0.5 * on_new > 0


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_copies_are_held_out_together(kind, caplog):
    x = X.copy()
    x[3, 1] = np.nan  # a missing value equals a missing value
    folds = folds_of(kind(x[TWICE]), Y[TWICE])
    for mask, part in zip(folds.masks, folds.parts, strict=True):
        assert not set(TWICE[part]) & set(TWICE[mask])
        np.testing.assert_array_equal(mask, ~part)
    assert len(folds.parts) == 5
    (message,) = messages(caplog)
    assert message.startswith("20 of 40 instances are exact copies of others")


def test_instances_that_differ_in_label_features_or_context_are_no_copies(caplog):
    x, y = X[TWICE], Y[TWICE]
    x[:10] += 1
    y[10:20] += 1
    folds_of(x, y)
    folds_of(X[[5, 5]], Y[[5, 5]], [None, {"day": 25}])
    assert messages(caplog) == []


@pytest.mark.parametrize("validation", [None, 0.3, KFold(5, shuffle=True, random_state=0)])
def test_copies_in_other_groups_or_parts_train_no_model_that_an_instance_validates(validation):
    groups = None if hasattr(validation, "split") else np.arange(40) // 4
    folds = folds_of(X[TWICE], Y[TWICE], groups=groups, validation=validation)
    for mask, part in zip(folds.masks, folds.parts, strict=True):
        assert not set(TWICE[part]) & set(TWICE[mask])
        assert mask.sum() >= 10
        if groups is not None:
            assert not set(groups[part]) & set(groups[mask])


def test_validation_instances_that_are_training_instances_are_reported(caplog):
    data = Data.of(X, Y, None, takes_frames=False)
    more = data.followed_by((np.r_[X[:3], X[4:5] + 1], Y[:4]))
    Folds.given(more, 20)
    (message,) = messages(caplog)
    assert message.startswith("3 of 4 validation instances are also training instances")


def test_copies_of_a_single_instance_cannot_be_held_out():
    with pytest.raises(InvalidInputError, match=r"at least 2 different instances, .* got 1"):
        folds_of(X[[0] * 9], Y[[0] * 9])
    with pytest.raises(InvalidInputError, match=r"from 2 to the number .* \(3\), got 5"):
        folds_of(X[[0, 1, 2] * 3], Y[[0, 1, 2] * 3], validation=5)


# Models ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant(Predictor):
    """Predicts one label."""

    label: np.ndarray
    n_steps: int

    def predict(self, x):
        return np.broadcast_to(self.label, (len(x), *self.label.shape)).copy()


class MeanLearner(Learner):
    """Notes its arguments. The number of steps is that of the instances, squared."""

    def __init__(self):
        self.seen = []

    def prepare(self, x, y, masks=None):
        assert x.shape == (len(y), 1)
        return "known"

    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        self.seen.append((x, masks, prepared, n_steps))
        masks = np.ones((1, loss.n_instances), dtype=bool) if masks is None else masks
        return [Constant(loss.y[mask].mean(axis=0), int(mask.sum()) ** 2) for mask in masks]


def trainer(learner, y, folds):
    data = Data.of(np.arange(float(len(y)))[:, np.newaxis], y, None, takes_frames=False)
    return Trainer(learner, data, folds)


@pytest.mark.parametrize("n_steps", [None, 9])
def test_a_model_has_not_seen_what_it_predicts(n_steps):
    y, learner = np.random.default_rng(0).normal(size=(7, 2)), MeanLearner()
    folds = folds_of(7, validation=KFold(3))  # parts of 3, 2 and 2
    models, y_hat = trainer(learner, y, folds).train(squared_error_loss(y), n_steps)
    np.testing.assert_allclose(y_hat, folds.means(y))
    assert [model.n_steps for model in models] == [16, 25, 25]
    assert [seen[2:] for seen in learner.seen] == [("known", n_steps)]
    assert learner.seen[0][1] is folds.masks


def test_without_an_ensemble_a_model_is_trained_on_all_instances_for_as_many_steps():
    y, learner = np.random.default_rng(0).normal(size=(7, 2)), MeanLearner()
    trains, loss = trainer(learner, y, folds_of(7, validation=KFold(3))), squared_error_loss(y)
    models, _ = trains.train(loss)
    (final,) = trains.final([(loss, models)], ensemble=False)
    np.testing.assert_allclose(final.label, y.mean(axis=0))
    assert learner.seen[-1][1:] == (None, "known", 22)
    assert trains.final([(loss, models), (loss, models)], ensemble=True) == [*models, *models]
    plain, _ = trains.train_plainly(loss, models)
    np.testing.assert_array_equal(plain.label, final.label)
    assert learner.seen[-1][3] == 22


class Failing(MeanLearner):
    error: Exception

    def train(self, *_, **__):
        raise self.error


def test_a_loss_that_the_estimator_cannot_be_trained_on_is_left_out(caplog):
    y, folds, failing = np.eye(6), folds_of(6, validation=3), Failing()
    loss = squared_error_loss(y)
    models, y_hat = trainer(MeanLearner(), y, folds).train_if_possible(loss)
    assert len(models) == 3
    np.testing.assert_allclose(y_hat, folds.means(y))
    failing.error = ZeroDivisionError("no rows")
    assert trainer(failing, y, folds).train_if_possible(loss) is None
    assert "could not be trained on it: ZeroDivisionError: no rows" in caplog.text
    failing.error = InvalidInputError("wrong")
    with pytest.raises(InvalidInputError, match="wrong"):
        trainer(failing, y, folds).train_if_possible(loss)


class Stopping(MeanLearner):
    stops_early = True


class Own(Stopping):
    def train_plainly(self, x, y):
        if len(y) < 7:
            raise ValueError("no eval set")
        return Constant(2 * y.mean(axis=0), 1)


def test_the_plain_model_is_the_users_own_if_it_can_be_fitted(caplog):
    caplog.set_level(logging.INFO, "lodl")
    y, folds = np.random.default_rng(0).normal(size=(7, 2)), folds_of(7, validation=KFold(3))
    loss = squared_error_loss(y)

    def plainly(learner, n=7):
        trains = trainer(learner, y, replace(folds, n_final=n))
        plain, is_own = trains.train_plainly(loss, trains.train(loss)[0])
        return plain.label / y[:n].mean(axis=0), is_own

    for learner, n, times, expected in (
        (MeanLearner(), 7, 1, True),
        (Stopping(), 7, 1, False),
        (Own(), 7, 2, True),
        (Own(), 6, 1, False),
    ):
        factor, is_own = plainly(learner, n)
        np.testing.assert_allclose(factor, times)
        assert is_own == expected
    assert "own `fit` raised ValueError: no eval set" in caplog.text


def test_instances_never_held_out_are_predicted_by_the_last_model():
    y, folds = np.random.default_rng(0).normal(size=(6, 2)), folds_of(6, validation=0.5)
    _, y_hat = trainer(MeanLearner(), y, folds).train(squared_error_loss(y))
    np.testing.assert_allclose(y_hat, np.tile(y[folds.masks[0]].mean(axis=0), (6, 1)))


def test_a_learner_that_returns_too_few_models_is_an_error():
    class TooFew(MeanLearner):
        def train(self, *_, **__):
            return [Constant(np.zeros(6), 3)]

    with pytest.raises(ValueError, match="argument 2 is longer"):
        trainer(TooFew(), np.eye(6), folds_of(6, validation=2)).train(squared_error_loss(np.eye(6)))
