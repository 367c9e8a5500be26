"""Files of data and decisions, as users have them."""

import json

import numpy as np
import pandas as pd
import pytest

from lodl.cli._tables import (
    check_features,
    check_out,
    columns_of_fit,
    read_data,
    write_decisions,
)
from lodl.errors import DataError, InvalidInputError


@pytest.fixture
def read(tmp_path):
    def run(names=None, **texts):
        paths = {}
        for what, text in texts.items():
            paths[what] = tmp_path / f"{what}.csv"
            paths[what].write_text(text, encoding="utf-8")
        return read_data(paths.get("features"), paths.get("labels"), paths.get("context"), names)

    return run


def test_rows_in_another_order_need_the_column_that_names_them(read):
    files = {"features": "day,a\n1,5\n2,6\n", "context": "day,room\n2,9\n1,8\n"}
    with pytest.raises(InvalidInputError, match="'day' is in another order"):
        read(**files)
    assert read("day", **files)[2]["room"].tolist() == [8, 9]
    read(features="a\n1\n2\n", context="a\n2\n3\n")  # other values: no names


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1.5,2\n3.5,4\n",
        "\ufeffa,b\r\n1.5,2\r\n3.5,4\r\n",
        "a;b\n1,5;2\n3,5;4\n",
        "a;b\n1.5;2\n3.5;4\n",
        "a\tb\n1.5\t2\n3.5\t4\n",
        "a|b\n1.5|2\n3.5|4\n",
        ",a,b\n0,1.5,2\n1,3.5,4\n",
    ],
    ids=["commas", "windows", "continental", "semicolons", "tabs", "bars", "index of pandas"],
)
def test_separators_decimal_commas_and_the_index_of_pandas_are_understood(read, text):
    table = read(labels=text)[1]
    assert list(table) == ["a", "b"]
    assert table.to_numpy().tolist() == [[1.5, 2], [3.5, 4]]
    assert list(table.index) == [0, 1]


@pytest.mark.parametrize(("text", "n"), [("3,1\n2,2\n", 2), ("0.5\n1\n", 2), ("7,8,9\n1,2,3\n", 1)])
def test_a_first_line_of_numbers_is_data_unless_they_increase_like_hours(read, text, n):
    assert len(read(labels=text)[1]) == n


def test_ids_of_an_unnamed_column_name_the_rows(read):
    assert list(read(labels=",a\nmon,1\ntue,2\n")[1].index) == ["mon", "tue"]


def test_files_with_ids_are_put_in_the_order_of_the_first(read):
    x, y, context = read(
        "day",
        features="day,t\n2024-01-02,1\n2024-01-01,2\n",
        labels="day,a,b\n2024-01-01,5,6\n2024-01-02,7,8\n2024-01-03,9,9\n",
        context="open,day\n3,2024-01-01\n4,2024-01-02\n",
    )
    assert x["t"].tolist() == [1, 2]
    assert y.to_numpy().tolist() == [[7, 8], [5, 6]]
    assert context.to_dict("records") == [{"open": 4}, {"open": 3}]
    assert x.index.dtype.kind == "M"


@pytest.mark.parametrize(
    ("names", "texts", "message"),
    [
        (
            "dya",
            {"labels": "day,a\n1,2\n"},
            "`names` must be a column, got 'dya'. .* 'day'. .* are day, a",
        ),
        ("d", {"features": "d,t\nu,1\nv,2\n", "labels": "d,a\nu,1\n"}, "each d, but v is missing"),
        (
            "d",
            {"features": "d,t\n1.3.2024,1\n2.3.2024,2\n", "labels": "d,a\n1.3.2024,1\n"},
            r"each d, but 02\.03\.2024 is missing",
        ),
        (
            "d",
            {"features": "d,t\n2024-03-01,1\n2024-03-02,2\n", "labels": "d,a\n2024-03-01,1\n"},
            "each d, but 2024-03-02 is missing",
        ),
        (None, {"labels": "a,b\n1,2\n3,x\n"}, r"got 'x' in row 1, column 'b'\. Leave a missing"),
        ("d", {"labels": "d,b\nu,2\nv,x\n"}, r"got 'x' in row 1 \('v'\), column 'b'"),
        (None, {"labels": "day,b\nmon,2\n"}, "column 'day'.* names the instances, add --id day"),
        (None, {"features": "t\n1\n2\n-\n"}, "`features` must .* got '-' in row 2, column 't'"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_by_row_and_column(read, names, texts, message):
    with pytest.raises(InvalidInputError, match=message):
        read(names, **texts)


def test_texts_that_never_repeat_are_no_categories(read):
    check_features(read(features="town,t\nUlm,1\nUlm,2\nBern,3\n")[0], "linear")
    with pytest.raises(InvalidInputError, match=r"'day' has a different one .* add --id day"):
        check_features(read(features="day,t\nmon,1\ntue,2\nwed,3\n")[0], "linear")


def test_a_gap_is_named_if_the_model_takes_none(read):
    table = read("day", features="day,town,t\n2024-01-01,Ulm,1\n2024-01-02,Ulm,\n")[0]
    check_features(table, "lightgbm")
    place = r"got none in row 1 \('2024-01-02'\), column 't'\. Fill the gap"
    for model in ("linear", "mlp"):
        with pytest.raises(InvalidInputError, match=place):
            check_features(table, model)


def test_columns_that_a_model_does_not_use_say_which_instance_it_is(read):
    table = read(features="day,t,shop\nmon,1,a\ntue,2,b\n")[0]
    features, instances = columns_of_fit(table, ["t"])
    assert list(features) == ["t"]
    assert instances == {"day": ["mon", "tue"], "shop": ["a", "b"]}
    assert columns_of_fit(np.zeros((2, 3)), None)[1] == {"instance": ["0", "1"]}


def test_decisions_in_csv_have_names_and_six_digits_and_gaps_where_calls_failed(tmp_path):
    path, instances = tmp_path / "z.csv", {"day": ["mon", "tue"]}
    write_decisions(path, [np.array([0.99999999, -1e-12]), None], instances, ["bread", "cake"], {})
    assert path.read_text() == "day,bread,cake\nmon,1,0\ntue,,\n"
    write_decisions(path, [np.array([123456.789, 2.0]), np.ones(2)], instances, "abc", {})
    assert path.read_text() == "day,z0,z1\nmon,123456.79,2\ntue,1,1\n"
    write_decisions(path, [np.array([1e-9]), np.array([2.123456789e-9])], instances, None, {})
    assert pd.read_csv(path)["z0"].tolist() == [1e-9, 2.12346e-9]


def test_decisions_in_json_keep_the_letters_of_names(tmp_path):
    path = tmp_path / "z.json"
    write_decisions(path, [np.ones(1)], {"Tag": ["Österreich"]}, ["Süd"], {})
    assert path.read_text(encoding="utf-8").splitlines()[1] == (
        '{"Tag": "Österreich", "decision": {"Süd": 1.0}}'
    )


def test_decisions_in_json_keep_all_digits(tmp_path):
    path, z = tmp_path / "z.json", np.array([0.1 + 0.2, 1.0])
    write_decisions(path, [z, {"stops": [1]}], {"instance": ["0", "1"]}, ["a", "b"], {})
    assert json.loads(path.read_text()) == [
        {"instance": "0", "decision": {"a": 0.1 + 0.2, "b": 1.0}},
        {"instance": "1", "decision": {"stops": [1]}},
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("\ufeffTag;Käse\n31.12.2024;1,5\n", "\ufeffTag;a;b\n31.12.2024;0,5;2\n"),
        ("Tag;Käse\n31.12.2024;1\n", "Tag;a;b\n31.12.2024;0,5;2\n"),
        ("Tag\tKäse\n2024-12-31\t1\n", "Tag\ta\tb\n2024-12-31\t0.5\t2\n"),
    ],
    ids=["continental", "continental whole numbers", "tabs"],
)
@pytest.mark.parametrize("names", ["Tag", None], ids=["an id", "a column that is not used"])
def test_decisions_are_written_in_the_form_of_the_features(text, written, names, read, tmp_path):
    x, instances = columns_of_fit(read(names, features=text)[0], ["Käse"])
    write_decisions(tmp_path / "z.csv", [[0.5, 2]], instances, "ab", x.attrs["csv"])
    with (tmp_path / "z.csv").open(encoding="utf-8", newline="") as file:
        assert file.read() == written.replace("\n", "\r\n")


def test_a_file_in_another_encoding_is_refused_with_advice(tmp_path):
    (tmp_path / "y.csv").write_bytes("Käse\n1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"labels in .*y\.csv cannot be read: save it as UTF-8"):
        read_data(None, tmp_path / "y.csv", None, None)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("plan.txt", r"`out` must end with \.csv, \.json or \.npy, got .*plan\.txt"),
        ("nowhere/plan.csv", "`out` must be a file in a folder that exists, got "),
        ("folder.csv", "`out` must be a file in a folder that exists, got "),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(tmp_path, place, message):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match=message):
        check_out(tmp_path / place, ".csv", ".json", ".npy")
