"""Stores that somebody has forged, and places that are no stores."""

import os
import signal
import sqlite3
import tracemalloc
from typing import Any

import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle import Oracle, Progress, _database
from lodl.oracle._store import ANSWER, Store, _checksum
from lodl.samplers import AllPerturbed

ARGUMENTS = {"sampler": AllPerturbed(), "n_samples": 4}
FIELDS = ("id", "start", "answers", "gradient", "messages")


@pytest.fixture
def store(loop, y, tmp_path):
    Oracle(loop(), store=tmp_path / "store.db").sample(y, **ARGUMENTS)
    return tmp_path / "store.db"


@pytest.fixture(autouse=True)
def _never_hang():
    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def edit(store, *queries):
    connection = sqlite3.connect(store)
    with connection:
        for query, *values in queries:
            connection.execute(query, values)
    connection.close()


def forge(store, change, *, has_checksum=True):
    """Change the answers about one instance's samples; checksums are made anew."""
    connection = sqlite3.connect(store)
    number, *values = connection.execute(
        f"SELECT rowid, {', '.join(FIELDS)} FROM answers "
        "WHERE length(answers) > 13 ORDER BY rowid LIMIT 1"
    ).fetchone()
    run = dict(zip(FIELDS, values, strict=True))
    answers = np.frombuffer(run["answers"], ANSWER).copy()
    for name in change.keys() & set(ANSWER.names):
        answers[name] = change[name]
    run |= {"answers": answers.tobytes()} | {name: change[name] for name in change if name in run}
    new = [(name, run[name]) for name in FIELDS]
    if has_checksum:
        new.append(("checksum", _checksum(*run.values())))
    with connection:
        for name, value in new:
            query = f"UPDATE answers SET {name} = ? WHERE rowid = ?"
            connection.execute(query, (value, number))
    connection.close()


# Answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"status": 99},
        {"status": 0},
        {"status": [1, 1, 1, 2]},
        {"answers": b""},
        {"answers": b"\x00" * 51},
        {"loss": [1, 2, np.nan, 3.0]},
        {"decision": -2},
        {"decision": 7},
        {"decision": 0},
        {"decision": 1, "gradient": np.zeros(5).tobytes()},
        {"decision": 0, "gradient": np.full(5, np.inf).tobytes()},
        {"gradient": np.zeros(7).tobytes()},
        {"gradient": b"\x00"},
        {"decision": -99},
        {"messages": "[]"},
        {"messages": "{"},
        {"messages": 9000 * "["},
        {"start": -1},
        {"start": -(2**63)},
        {"start": 2**63 - 1},
    ],
    ids=str,
)
def test_forged_answers_with_a_right_checksum_are_left_out(store, loop, y, caplog, change):
    expected = [one.regret.tobytes() for one in Oracle(loop(), store=store).sample(y, **ARGUMENTS)]
    forge(store, change)
    assert Progress.read(store).n_answers == 30
    caplog.clear()
    samples = Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    assert [one.regret.tobytes() for one in samples] == expected
    assert caplog.text.count("are damaged. They are ignored") == ("start" not in change)


@pytest.mark.parametrize(
    "change",
    [{name: value} for name in FIELDS[1:] for value in (None, "text", 1.5, b"other")],
    ids=str,
)
def test_values_of_another_type_are_left_out(store, loop, y, caplog, change):
    forge(store, change, has_checksum=False)
    caplog.clear()
    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    assert caplog.text.count("are damaged. They are ignored") == 1


def test_slopes_of_another_number_of_coordinates_are_left_out(loop, y, store, tmp_path, caplog):
    wide = tmp_path / "wide.db"
    Oracle(loop(), store=wide).sample(np.c_[y, y], slopes=True, **ARGUMENTS)
    connection = sqlite3.connect(wide)
    rows = connection.execute("SELECT answers, gradient FROM answers").fetchall()
    connection.close()
    longest = max(rows, key=lambda row: len(row[0]))
    forge(store, dict(zip(FIELDS[2:], longest, strict=False)) | {"gradient": longest[1][:-8]})
    samples = Oracle(loop(), store=store).sample(y, slopes=True, **ARGUMENTS)
    assert samples[0].slope.shape[1] == 5
    assert "are damaged" in caplog.text


@pytest.mark.slow
def test_a_huge_value_is_refused_and_not_read(store, loop, y, monkeypatch):
    edit(store, ("UPDATE answers SET gradient = zeroblob(?)", 2**23))
    monkeypatch.setattr(_database, "MAX_VALUE", 2**22)
    tracemalloc.start()
    with pytest.raises(StoreError, match=r"cannot be read: string or blob too big"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


# Header ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("label_scale", "[1.0, 1.0, 0.0, 1.0, 1.0]"),
        ("label_scale", "[1.0, 1.0, -1.0, 1.0, 1.0]"),
        ("label_scale", "[1.0, 1.0, NaN, 1.0, 1.0]"),
        ("label_scale", "[1.0, 1.0, Infinity, 1.0, 1.0]"),
        ("label_scale", f"[1{400 * '0'}]"),
        ("label_scale", "[[1.0], 2.0]"),
        ("label_scale", "{}"),
        ("label_scale", "[]"),
        ("label_scale", '"wide"'),
        ("label_scale", "null"),
        ("label_scale", "[" * 100_000),
        ("label_scale", ""),
        ("label_scale", None),
        ("label_scale", b"\xff\xfe"),
        ("version", "[" * 100_000),
        ("version", b"\xff\xfe\xfd"),
        ("problem", '["class"]'),
        ("problem", "[]"),
        ("problem", "7"),
        ("problem", "[" * 100_000),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_forged_header_is_an_error(store, loop, y, key, text):
    edit(store, ("UPDATE header SET value = ? WHERE key = ?", text, key))
    with pytest.raises(StoreError, match=r"header of .* is damaged: .* Remove it and sample again"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)


def test_forged_parameters_are_those_of_another_problem(store, loop, y):
    text = '{"class": {"name": "Loop"}}'
    edit(store, ("UPDATE header SET value = ? WHERE key = 'problem'", text))
    with pytest.raises(StoreError, match=r"another problem: its class is \{'name': 'Loop'\}"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "1e999", '"many"', "[]", "-3", "NaN", "", None, b"\xff", "9" * 400, "true"],
    ids=lambda value: repr(value)[:20],
)
def test_forged_totals_and_facts_count_as_none(store, loop, y, text):
    edit(
        store,
        ("INSERT OR REPLACE INTO header VALUES ('n_planned', ?)", text),
        ("UPDATE header SET value = ? WHERE key IN ('n_answers', 'n_failures', 'seconds')", text),
        ("INSERT INTO header VALUES ('fact x', ?)", text),
    )
    Store(store).recall("x")
    assert "missing" not in str(Progress.read(store)).replace("no planned call is missing", "")
    samples = Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    assert samples.seconds >= 0
    Oracle(loop(), store=store).sample(y + 1, **ARGUMENTS)
    assert Progress.read(store).n_answers >= 0


def test_answers_are_verified_even_if_the_header_says_that_there_are_none(store, loop: Any, y):
    class Other(loop):
        def objective(self, z, y, context):
            return 7 + 3 * super().objective(z, y, context)

    edit(store, ("UPDATE header SET value = 0",))
    edit(store, ("UPDATE header SET value = 5 WHERE key = 'version'",))
    scale = str([1.0] * 5)
    edit(store, ("UPDATE header SET value = ? WHERE key = 'label_scale'", scale))
    edit(store, ("UPDATE header SET value = '{}' WHERE key = 'problem'",))
    with pytest.raises(StoreError, match="answers of another problem"):
        Oracle(Other(), store=store).sample(y, **ARGUMENTS)


# Schema ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "queries",
    [
        ["CREATE TABLE more (x)"],
        ["CREATE VIEW more AS SELECT 1"],
        ["CREATE TRIGGER answers AFTER INSERT ON answers BEGIN DELETE FROM answers; END"],
        ["CREATE INDEX more ON answers (start)"],
        ["CREATE UNIQUE INDEX more ON answers (start, id)"],
        ["DROP INDEX answers_by_id"],
        ["ALTER TABLE answers ADD COLUMN more"],
        ["DROP TABLE header", "CREATE VIEW header AS SELECT 'version' AS key, 3 AS value"],
        ["DROP TABLE header", "CREATE TABLE header (key, value DEFAULT (randomblob(9)))"],
    ],
    ids=str,
)
def test_a_file_whose_tables_are_not_ours_is_refused_and_not_changed(store, loop, y, queries):
    edit(store, *((query,) for query in queries))
    before = store.read_bytes()
    with pytest.raises(StoreError, match=r"is a database, but not a store of answers. Choose ano"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    assert store.read_bytes() == before


def test_a_trigger_hidden_behind_the_name_of_a_table_is_refused(store, loop, y):
    """A schema may hold several entries of one name."""
    trigger = "CREATE TRIGGER answers AFTER INSERT ON answers BEGIN DELETE FROM answers; END"
    entry = "INSERT INTO sqlite_master VALUES ('trigger', 'answers', 'answers', 0, ?)"
    edit(store, ("PRAGMA writable_schema = on",), (entry, trigger))
    with pytest.raises(StoreError, match=r"not a store of answers|malformed"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)


def test_the_database_of_another_program_is_refused_and_not_changed(loop, y, tmp_path):
    edit(tmp_path / "photos.db", ("CREATE TABLE photos (name)",))
    before = (tmp_path / "photos.db").read_bytes()
    for run in (
        lambda: Oracle(loop(), store=tmp_path / "photos.db").sample(y, **ARGUMENTS),
        lambda: Progress.read(tmp_path / "photos.db"),
    ):
        with pytest.raises(
            StoreError, match=r"not a store of answers. Choose another file"
        ) as told:
            run()
        assert "emove it" not in str(told.value)
    assert (tmp_path / "photos.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["photos.db"]


# Places ----------------------------------------------------------------------------------------


def test_an_empty_name_is_refused_and_nothing_is_written(loop, y, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for run in (lambda: Oracle(loop(), store="").sample(y, **ARGUMENTS), lambda: Progress.read("")):
        with pytest.raises(InvalidInputError, match="`store` must be the name of a file, got ''"):
            run()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("place", "match"),
    [
        ("s3://bucket/answers", "`store` must be a file, got 's3://bucket/answers'. Copy a store"),
        ("n" * 300, "cannot be opened: File name too long"),
        ("n" * 255, "cannot be opened: File name too long"),
        ("null\0byte", "`store` must be the name of a file, got 'null"),
        ("file/below", "No store can be made at .*: .*(exists|Not a directory)"),
    ],
    ids=["scheme", "long", "long for a log", "null", "file"],
)
def test_a_place_that_cannot_be_is_a_clear_error(loop, y, tmp_path, monkeypatch, place, match):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises((InvalidInputError, StoreError), match=match):
        Oracle(loop(), store=place).sample(y, **ARGUMENTS)
    with pytest.raises((InvalidInputError, StoreError), match=f"{match}|There is no store at"):
        Progress.read(place)


@pytest.mark.parametrize("place", [3, b"bytes", None])
def test_a_place_of_another_type_is_refused(place):
    with pytest.raises(InvalidInputError, match="`store` must be the name of a file, got"):
        Progress.read(place)


def test_nobody_is_told_to_remove_other_files(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious, and longer than the header of a database" * 9)
    for place, what in [("thesis.txt", "not a store of answers"), (".", "is a folder. A store is")]:
        with pytest.raises(StoreError, match=rf"{what}.*(C|c)hoose another") as told:
            Progress.read(tmp_path / place)
        assert "emove it" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("checksums.json", r"is a saved model, which `lodl.load_model` reads"),
        ("notes.json", r"is a folder"),
    ],
)
def test_a_folder_is_no_store(loop, y, tmp_path, name, match):
    (tmp_path / name).write_text("{}")
    with pytest.raises(StoreError, match=f"{match}.*choose another name"):
        Progress.read(tmp_path)
    with pytest.raises(StoreError, match=f"{match}.*choose another name"):
        Oracle(loop(), store=tmp_path).sample(y, **ARGUMENTS)


def test_a_pipe_is_no_store(loop, y, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match=r"pipe is not a regular file. Choose another name"):
        Oracle(loop(), store=tmp_path / "pipe").sample(y, **ARGUMENTS)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_pipe_next_to_a_store_is_an_error(store, loop, y, suffix):
    os.mkfifo(f"{store}{suffix}")
    with pytest.raises(StoreError, match=rf"store.db{suffix} is not a regular file"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)


# The scale of the labels -----------------------------------------------------------------------


def test_a_fit_without_a_store_does_not_speak_of_one(caplog):
    """The first instances, whose calls are timed, are much alike."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    y = np.concatenate([0.01 * x[:20, :1], 10 * x[20:, :1]])
    stock = lodl.problem(lambda v: v, lambda z, y: float(np.abs(z - y).sum()), sense="min")
    lodl.DecisionFocusedRegressor(stock, families=(), n_rounds=0, n_samples=2).fit(x, y)
    assert "deviation" not in caplog.text
