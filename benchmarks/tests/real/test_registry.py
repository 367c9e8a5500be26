import numpy as np
import pandas as pd
import pytest

from lodl.errors import DataError
from lodl.oracle import Oracle
from lodl_benchmarks.real import bikes, flight_staff, reserve_crews, restaurant

TASKS = {
    "restaurant": restaurant,
    "bikes": lambda folder, **how: bikes(folder / "Bikeshare.csv", **how),
    "flight staff": flight_staff,
    "reserve crews": reserve_crews,
}


@pytest.mark.parametrize("name", TASKS)
def test_the_last_quarter_tests_and_a_choosing_split_does_not_see_it(data, name):
    split, choosing = TASKS[name](data), TASKS[name](data, choosing=True)
    n_train, n_test = len(split.y_train), len(split.y_test)
    assert n_test == (n_train + n_test) // 4
    assert len(split.x_train) == n_train
    assert len(split.x_test) == n_test
    np.testing.assert_array_equal(np.vstack([choosing.y_train, choosing.y_test]), split.y_train)
    assert not pd.isna(np.asarray(split.x_train)).any()


@pytest.mark.parametrize("name", TASKS)
def test_the_solver_takes_labels_and_contexts(data, name):
    split = TASKS[name](data)

    oracle = Oracle(split.problem, progress=False)
    y_hat = np.broadcast_to(split.y_train.mean(axis=0), split.y_test.shape)
    assert oracle.regret(y_hat, split.y_test, context=split.context_test).min() >= -1e-9


def test_demands_of_the_restaurant_are_known_up_to_the_day_before(data):
    demand = pd.read_csv(data / "yaz_target.csv").drop(index=40).to_numpy()
    split = restaurant(data)
    lag = split.x_train[:, 15:22]  # after 9 of the calendar and 6 of the day
    before = demand[27 : 27 + len(lag)]
    np.testing.assert_allclose(lag, (before - before.mean(axis=0)) / before.std(axis=0))
    np.testing.assert_array_equal(split.y_train[0], demand[28])


def test_hours_without_a_row_have_no_rentals(data):
    table = pd.read_csv(data / "Bikeshare.csv")
    split = bikes(data / "Bikeshare.csv")
    day = table[table["day"] == 8]
    np.testing.assert_array_equal(split.y_train[0], day["bikers"])
    assert split.levels[0] == pytest.approx(0.75)


def test_categories_are_those_of_airports_and_weekdays(data):
    split = flight_staff(data)
    assert [str(kind) for kind in split.x_train.dtypes[:2]] == ["category", "category"]
    assert list(split.x_train["origin"].cat.categories) == ["EWR", "JFK"]
    assert split.context_train[0] == 6  # a person for ten of 60 flights


def test_files_that_do_not_belong_together_are_refused(data, tmp_path):
    (tmp_path / "yaz_data.csv").write_bytes((data / "yaz_data.csv").read_bytes())
    lines = (data / "yaz_target.csv").read_text().splitlines()[:-1]
    (tmp_path / "yaz_target.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match="as many rows"):
        restaurant(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        flight_staff(tmp_path)
