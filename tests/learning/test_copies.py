"""Exact copies of instances are held out together, and copies in `validation` are reported."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.neighbors import KNeighborsRegressor

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError
from lodl.learning._data import Data
from lodl.learning._split import split

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = RNG.normal(size=(20, 4))
TWICE = np.tile(np.arange(20), 2)
PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
MANY = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "array": np.asarray}


def quick(estimator, **arguments):
    settings = {"families": (), "n_rounds": 0, "n_samples": 2}
    return DecisionFocusedRegressor(PICK, estimator, **(settings | arguments))


def folds_of(x, y, context=None, **arguments):
    data = Data.of(x, y, context, keeps_frames=not isinstance(x, np.ndarray))
    settings = {"validation": None, "groups": None, "shuffle": True, "seed": 0, "rows": x}
    return split(data, **(settings | arguments))


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_copies_do_not_make_a_model_look_better_than_it_is():
    nearest = KNeighborsRegressor(1)  # remembers its training instances
    model = quick(nearest).fit(X[TWICE], Y[TWICE])
    on_new = quick(nearest).fit(X, Y).gain_.two_stage
    assert model.gain_.two_stage > 0.5 * on_new > 0


@pytest.mark.parametrize("kind", MANY.values(), ids=MANY)
@pytest.mark.parametrize("shuffle", [True, False])
def test_copies_are_held_out_together(kind, shuffle, caplog):
    x = X.copy()
    x[3, 1] = np.nan  # a missing value equals a missing value
    _, folds = folds_of(kind(x[TWICE]), Y[TWICE], shuffle=shuffle)
    for part in folds.held_out:
        assert not set(TWICE[part]) & set(TWICE[folds.rest(part)])
    assert len(folds.held_out) == 5
    (told,) = messages(caplog)
    assert told.startswith("20 of 40 instances are exact copies of others")


def test_instances_that_differ_in_label_features_or_context_are_no_copies(caplog):
    x, y = X[TWICE], Y[TWICE]
    x[:10] += 1
    y[10:20] += 1
    context = [{"day": number} if number in (0, 25) else None for number in range(40)]
    same_x, same_y = X[TWICE], Y[TWICE]
    folds_of(x, y)
    folds_of(same_x[[5, 25]], same_y[[5, 25]], [context[5], context[25]])
    assert messages(caplog) == []


def test_copies_join_the_groups_that_hold_them():
    groups = np.arange(40) // 4
    _, folds = folds_of(X[TWICE], Y[TWICE], groups=groups)
    for part in folds.held_out:
        rest = folds.rest(part)
        assert not set(TWICE[part]) & set(TWICE[rest])
        assert not set(groups[part]) & set(groups[rest])


def test_folds_without_copies_are_what_they_were(caplog):
    _, folds = folds_of(X, Y)
    expected = np.array_split(np.random.default_rng(0).permutation(20), 5)
    for part, those in zip(folds.held_out, expected, strict=True):
        np.testing.assert_array_equal(part, np.sort(those))
    assert messages(caplog) == []


def test_validation_instances_that_are_training_instances_are_reported(caplog):
    folds_of(X, Y, validation=(np.r_[X[:3], X[4:5] + 1], Y[:4]))
    (told,) = messages(caplog)
    assert told.startswith("3 of 4 validation instances are also training instances")


def test_copies_of_a_single_instance_cannot_be_held_out():
    with pytest.raises(InvalidInputError, match=r"at least 2 different instances, .* got 1"):
        folds_of(X[[0] * 9], Y[[0] * 9])
    with pytest.raises(InvalidInputError, match=r"from 2 to the number .* \(3\), got 5"):
        folds_of(X[[0, 1, 2] * 3], Y[[0, 1, 2] * 3], validation=5)
