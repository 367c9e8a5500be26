import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl.errors import DataError
from lodl_benchmarks.pages import Row, parse_row, read_rows


def test_three_names_are_enough_for_a_row(write_rows):
    folder = write_rows({"domain": "mine", "method": "trees", "test": [0.5, 1]})
    assert read_rows(folder / "rows.jsonl") == [Row("mine", "trees", (0.5, 1.0))]


def test_a_row_of_an_experiment_is_read_in_full(row, write_rows):
    folder = write_rows(row("web", "Quadratic", 3, [0.9, 0.8], surrogate="SoftTopK(k=1)"))
    (found,) = read_rows(folder / "rows.jsonl")
    assert (found.domain, found.method, found.seed) == ("web", "Quadratic", 3)
    assert found.test == found.validation == (0.9, 0.8)
    assert dict(found.settings) == {
        "sampler": "AllPerturbed(0.1)",
        "n_samples": "2000",
        "n_initialisations": "2",
        "learning_rate": "0.001",
        "surrogate": "SoftTopK(k=1)",
        "n_steps": "100",
        "batch_size": "none",
    }
    assert dict(found.seconds) == {"sampling": 0.5, "fitting": 6.0, "training": 4.0}
    assert (found.oracle_calls, found.gaussian_error) == (200_100, 0.05)
    assert found.empirical_error == (0.01, 0.01)
    assert dict(found.versions) == {"lodl": "0.1.0", "numpy": "2.4.6"}


def test_of_rows_of_one_experiment_the_last_counts(row, write_rows):
    folder = write_rows(row("web", "NN", 0, [0.1]), row("web", "NN", 0, [0.2]))
    assert [found.test for found in read_rows(folder / "rows.jsonl")] == [(0.2,)]


def test_rows_without_a_seed_are_all_kept(write_rows):
    one = {"domain": "mine", "method": "trees", "test": [0.5]}
    assert len(read_rows(write_rows(one, one) / "rows.jsonl")) == 2


def test_null_means_absent(row, write_rows):
    needed = {"domain": "mine", "method": "trees", "test": [0.5]}
    nulls = dict.fromkeys(row("mine", "trees", 0, [0.5]).keys() - needed.keys())
    folder = write_rows(needed | nulls)
    assert read_rows(folder / "rows.jsonl") == [Row("mine", "trees", (0.5,))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": []}, "`test` must have the quality of at least one run"),
        ({"test": None}, "`test` must be a list of finite numbers, got None"),
        ({"test": [float("nan")]}, "`test` must be a list of finite numbers, got .nan."),
        ({"test": [True]}, "`test` must be a list of finite numbers"),
        ({"test": ["0.5"]}, "`test` must be a list of finite numbers"),
        ({"test": [10**400]}, "`test` must be a list of finite numbers"),
        ({"domain": 3}, "`domain` must be a text, got 3"),
        ({"method": ""}, "`method` must be a text, got ''"),
        ({"method": "a\nb"}, "`method` must be printable"),
        ({"method": "x" * 501}, "`method` must be printable and of at most 500 characters"),
        ({"seed": "0"}, "`seed` must be a finite number, got '0'"),
        ({"oracle_calls": -1}, "`oracle_calls` must be a finite number of at least 0, got -1"),
        ({"seconds_fitting": "long"}, "`seconds_fitting` must be a finite number"),
        ({"empirical_error": 0.1}, "`empirical_error` must be a list of finite numbers"),
        ({"versions": ["1.0"]}, "`versions` must be an object with names and values"),
        ({"training": "adam"}, "`training` must be an object with names and values"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_line(row, write_rows, change, message):
    good = row("web", "NN", 0, [0.1])
    path = write_rows(good, good | change) / "rows.jsonl"
    with pytest.raises(DataError, match=rf"rows\.jsonl, line 2: {message}"):
        read_rows(path)


def test_a_file_without_rows_is_an_error(tmp_path):
    (tmp_path / "rows.jsonl").write_text("\n")
    with pytest.raises(DataError, match="has no rows yet"):
        read_rows(tmp_path / "rows.jsonl")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
NAMES = ["domain", "method", "test", "seed", "settings", "training", "versions", "seconds_fitting"]


@settings(deadline=None, max_examples=150, derandomize=True)
@given(change=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3))
def test_whatever_a_row_holds_it_is_read_or_refused(change):
    try:
        said = parse_row({"domain": "web", "method": "NN", "test": [0.1]} | change).method
    except ValueError as error:
        said = str(error)
    assert said
    assert said.isprintable()
