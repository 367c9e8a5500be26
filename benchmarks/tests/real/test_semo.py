from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lodl.errors import DataError, InvalidInputError
from lodl_benchmarks.real import SEMO_TASKS, JobScheduling, semo

Files = tuple[Path, Path]


@pytest.fixture(scope="module")
def files(data):
    return data / "semo_prices.csv.gz", data / "semo_tasks.json"


@pytest.mark.parametrize(
    ("features", "shape"), [("item", (48, 8)), ("item and weight", (48, 17)), ("day", (384,))]
)
def test_features_are_those_of_a_half_hour_or_of_the_day(files: Files, features, shape):
    split = semo(*files, SEMO_TASKS[0], features=features)
    assert split.x_train.shape == (151, *shape)
    assert split.y_test.shape == (139, 48)
    assert split.is_ordered


def test_random_splits_differ_by_seed_and_are_not_ordered(files: Files):
    one, other = (semo(*files, SEMO_TASKS[0], seed=seed) for seed in (1, 2))
    assert not one.is_ordered
    assert not np.array_equal(one.y_test, other.y_test)


def test_choosing_splits_have_no_test_day_of_the_time_order(files: Files):
    test = semo(*files, SEMO_TASKS[0]).y_test
    choosing = semo(*files, SEMO_TASKS[0], seed=1, choosing=True)
    days = np.vstack([choosing.y_train, choosing.y_test])
    assert len(days) == 290 - 139
    assert not (days[:, np.newaxis] == test).all(axis=2).any()


def test_schedules_have_prices_and_no_weights(files: Files):
    split = semo(*files, "scheduling 1")
    assert isinstance(split.problem, JobScheduling)
    prices, values = split.y_test, semo(*files, SEMO_TASKS[0]).y_test
    np.testing.assert_allclose(prices * 5, values)
    with pytest.raises(InvalidInputError, match="Jobs have no weights"):
        semo(*files, "scheduling 1", features="item and weight")


def test_unknown_tasks_and_incomplete_days_are_refused(files: Files, tmp_path):
    with pytest.raises(InvalidInputError, match="`task` must be one of"):
        semo(*files, "knapsack 7")
    path = tmp_path / "days.csv"
    pd.read_csv(files[0]).drop(index=5).to_csv(path, index=False)
    with pytest.raises(DataError, match="a row for each of"):
        semo(path, files[1], SEMO_TASKS[0])
