"""Data and arguments that `fit` and its siblings refuse, each with a message that says why."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(N, 4))
DAYS = [f"day {number}" for number in range(N)]
DATES = pd.date_range("2024-01-01", periods=N)
LABELS = ["north", "east", "south", "west"]
PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")


def quick(estimator=None, **arguments):
    settings = {"families": (), "n_rounds": 0, "n_samples": 2}
    return DecisionFocusedRegressor(PICK, estimator, **(settings | arguments))


@pytest.fixture(scope="module")
def model():
    return quick().fit(X, Y)


def with_column(values):
    return pd.DataFrame(Y, columns=LABELS).assign(south=values)


NO_NUMBERS = {
    "dates": (DATES, "datetime64"),
    "zoned": (DATES.tz_localize("UTC"), "datetime64"),
    "durations": (DATES - DATES[0], "timedelta64"),
    "categories": (pd.Categorical(DATES), "category"),
    "complex": (np.arange(N) + 1j, "complex128"),
    "texts": ([f"town {i}" for i in range(N)], "str|object"),
}


@pytest.mark.parametrize(("values", "kind"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_label_columns_that_are_no_numbers_are_named(values, kind):
    told = rf"`Y` must have numbers only, got other values in 'south' \(.*({kind}).*\)\. Labels are"
    with pytest.raises(InvalidInputError, match=told):
        quick().fit(X, with_column(values))


@pytest.mark.parametrize(("values", "kind"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_feature_columns_that_are_no_numbers_are_named(values, kind):
    told = rf"must have numbers only, got other values in 'south' \(.*({kind}).*\)\. Encode these"
    with pytest.raises(InvalidInputError, match=f"`X` {told}"):
        quick().fit(with_column(values), Y)


@pytest.mark.parametrize("name", ["dates", "durations", "complex"])
def test_a_model_that_takes_frames_gets_no_columns_that_it_would_misread(name):
    values, kind = NO_NUMBERS[name]
    with pytest.raises(InvalidInputError, match=f"`X` must .*'south' .*{kind}"):
        quick(Ridge()).fit(with_column(values), Y)


def test_polars_columns_of_dates_are_named():
    y = pl.DataFrame(Y, schema=LABELS).with_columns(south=pl.Series(DATES.to_list()))
    with pytest.raises(
        InvalidInputError, match=r"`Y` must have numbers only, .*'south' \(Datetime"
    ):
        quick().fit(X, y)
    with pytest.raises(
        InvalidInputError, match=r"`X` must have numbers only, .*'south' \(Datetime"
    ):
        quick().fit(y, Y)


ARRAYS = {
    "complex": (Y + 1j, "complex numbers"),
    "dates": (Y.astype("datetime64[s]"), "dates"),
    "durations": (Y.astype("timedelta64[s]"), "durations"),
}


@pytest.mark.parametrize(("values", "kind"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_are_no_numbers_are_refused(values, kind):
    told = f"must be an array of numbers: got {kind}"
    with pytest.raises(InvalidInputError, match=f"`Y` {told}"):
        quick().fit(X, values)
    by_sklearn = "Complex data not supported" if kind == "complex numbers" else f"`X` {told}"
    with pytest.raises(ValueError, match=by_sklearn):
        quick().fit(values, Y)


def test_a_missing_label_is_named_by_row_and_column():
    y = Y.copy()
    y[3, 2] = np.nan
    told = "`Y` must be finite, got nan"
    with pytest.raises(InvalidInputError, match=f"{told} in row 3, column 2"):
        quick().fit(X, y)
    with pytest.raises(InvalidInputError, match=f"{told} in row 3, column 'south'"):
        quick().fit(X, pd.DataFrame(y, columns=LABELS))
    with pytest.raises(InvalidInputError, match=f"{told} in row 3, column 'south'"):
        quick().fit(X, pl.DataFrame(y, schema=LABELS))
    named = pd.DataFrame(y, columns=LABELS, index=DAYS)
    with pytest.raises(InvalidInputError, match=rf"{told} in row 3 \('day 3'\), column 'south'"):
        quick().fit(X, named)
    with pytest.raises(InvalidInputError, match=rf"{told} in row 3 \('day 3'\), column 'south'"):
        quick().fit(X, named["south"])


def test_long_frames_with_a_context_are_told_which_shapes_items_have():
    x, y = pd.DataFrame(np.repeat(X, 4, axis=0)), pd.DataFrame(Y.reshape(-1, 1))
    shape = rf"reshape\({N}, 4, -1\)` and `Y\.to_numpy\(\)\.reshape\({N}, 4\)"
    with pytest.raises(InvalidInputError, match=shape):
        quick().fit(x, y, context=[1] * N)


def test_a_long_frame_is_told_which_shape_items_have():
    long = pd.DataFrame(RNG.normal(size=(4 * N, 2)), columns=["price", "age"])
    told = rf"got 120\. If there is a row .* \(n, items, p\): `X.to_numpy\(\).reshape\({N}, -1, 2"
    with pytest.raises(InvalidInputError, match=told):
        quick().fit(long, Y)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            [(i // 5, "a") for i in range(N)],
            "one value per instance .* got tuple for instance 0.* into one text",
        ),
        (pd.DataFrame({"a": DAYS, "b": DAYS}), r"one value per instance .* got shape \(30, 2\)"),
        (pd.DataFrame({"a": DAYS}), r"one value per instance .* got shape \(30, 1\)"),
        ([None, *DAYS[1:]], "must not be missing, got None for instance 0"),
        ([*DAYS[:-1], np.nan], "must not be missing, got nan for instance 29"),
        (pd.Series([pd.NA, *DAYS[1:]]), "must not be missing, got (<NA>|nan) for instance 0"),
        (pd.Series([pd.NaT, *DATES[1:]]), "must not be missing, got NaT for instance 0"),
        ([{"a": 1}] * N, "one value per instance .*, such as a name or a number, got dict"),
        (DAYS[:-1], r"`groups` must have one entry per instance \(30\), got 29"),
        ("x" * N, "one value per instance .* got str"),
        (5, "one value per instance .* got int"),
    ],
)
def test_groups_that_are_not_one_value_per_instance_are_refused(groups, message):
    with pytest.raises(InvalidInputError, match=message):
        quick().fit(X, Y, groups=groups)


def test_groups_may_mix_texts_and_numbers():
    quick().fit(X, Y, groups=["a" if i < 9 else i // 10 for i in range(N)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_seconds": np.nan}, "`max_seconds` must be a number of at least 0, got nan"),
        ({"max_seconds": -1}, "`max_seconds` must be a number of at least 0, got -1"),
        ({"max_seconds": "1"}, "`max_seconds` must be a number of at least 0, got '1'"),
        ({"max_seconds": True}, "`max_seconds` must be a number of at least 0, got True"),
        ({"ensemble": "no"}, "`ensemble` must be True or False, got 'no'"),
        ({"verbose": "no"}, "`verbose` must be True or False, got 'no'"),
        (
            {"families": (family for family in [lodl.DecisionHinges()])},
            "`families` must be a sequence of families, got generator.*list",
        ),
        ({"families": lodl.DecisionHinges()}, "`families` must be a sequence of families, got one"),
        ({"families": [lodl.DecisionHinges]}, "got the class DecisionHinges"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_before_any_solver_call(arguments, message):
    calls = []

    def solve(y_hat):
        calls.append(0)
        return int(y_hat.argmax())

    problem = lodl.problem(solve, lambda z, y: y[z], sense="max")
    model = quick(**arguments)
    model.oracle = problem
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, Y)
    assert not calls


def test_families_that_were_refused_were_not_used_up():
    families = (family for family in [lodl.DecisionHinges()])
    with pytest.raises(InvalidInputError, match="`families` must be a sequence"):
        quick(families=families).fit(X, Y)
    assert len(list(families)) == 1


@pytest.mark.parametrize("method", ["regret", "score"])
def test_labels_of_another_shape_are_refused(model, method):
    use = getattr(model, method)
    told = r"`Y` must have the shape \(30, 4\), one row for each row of `X` .*, got"
    for labels in (Y[:, :3], Y[:-1], Y[:, 0]):
        with pytest.raises(InvalidInputError, match=told):
            use(X, labels)


def test_validation_of_another_shape_is_refused():
    with pytest.raises(InvalidInputError, match=r"`validation\[1\]` must have the shape \(n, 4\)"):
        quick().fit(X, Y, validation=(X, Y[:, :3]))
    with pytest.raises(InvalidInputError, match=r"`validation\[0\]` must have the shape \(n, 3\)"):
        quick().fit(X, Y, validation=(X[:, :2], Y))
