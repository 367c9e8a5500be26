"""Stores that somebody has forged, and places that are no stores."""

import io
import json
import os
import signal
import tracemalloc
import zipfile

import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError, StoreError
from lodl.oracle import _shard, open_samples, open_store, sample
from lodl.samplers import AllPerturbed

ARGUMENTS = {"sampler": AllPerturbed(), "n_samples": 4}


@pytest.fixture
def store(loop, y, tmp_path):
    sample(loop(), y, store=tmp_path / "store", **ARGUMENTS)
    return tmp_path / "store"


@pytest.fixture
def shard(store):
    (path,) = store.glob("answers-*.npz")
    return path


@pytest.fixture(autouse=True)
def _never_hang():
    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def forge(path, name, content):
    """Replace a member of an archive; checksums are made anew."""
    with zipfile.ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, before in members.items():
            archive.writestr(one, content if one == name else before)


def array_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# Answers ---------------------------------------------------------------------------------------


def test_a_small_file_of_many_zeros_is_left_out_and_not_unpacked(store, shard, caplog, monkeypatch):
    monkeypatch.setattr(_shard, "_MAX_SIZE", _shard._MAX_SIZE // 2**4)  # quick to pack
    forge(shard, "loss.npy", array_bytes(np.zeros(_shard._MAX_SIZE // 8)))
    assert shard.stat().st_size < 2**16
    tracemalloc.start()
    n_answers = open_store(store).progress.n_answers
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_answers == 0
    assert peak < 2**23
    assert "unpacked" in caplog.text


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("note.npy", b'{"seconds": "long", "failures": {}}'),
        ("note.npy", b'{"seconds": -1.0, "failures": {}}'),
        ("note.npy", b'{"seconds": NaN, "failures": {}}'),
        ("note.npy", b'{"seconds": 1.0, "failures": []}'),
        ("note.npy", b'{"seconds": 1.0, "failures": {"died": 1}}'),
        ("note.npy", b"[" * 100_000),
        ("status.npy", np.full(30, 99, "u1")),
        ("decision.npy", np.full(30, -2, "i4")),
        ("gradient.npy", np.zeros((0, 2, 2))),
    ],
    ids=lambda value: value[:40] if isinstance(value, bytes) else str(np.shape(value)),
)
def test_forged_answers_are_left_out(store, shard, loop, y, caplog, member, content):
    if isinstance(content, bytes):
        content = np.frombuffer(content, np.uint8)
    forge(shard, member, array_bytes(content))
    assert open_store(store).progress.n_answers == 0
    assert "is damaged" in caplog.text
    sample(loop(), y, store=store, **ARGUMENTS)


def test_slopes_of_another_number_of_coordinates_are_left_out(loop, y, tmp_path, caplog):
    wide = tmp_path / "wide"
    sample(loop(), np.c_[y, y], store=wide, slopes=True, **ARGUMENTS)
    sample(loop(), y, store=tmp_path / "store", **ARGUMENTS)
    (shard,) = wide.glob("answers-*.npz")
    (tmp_path / "store" / shard.name).write_bytes(shard.read_bytes())
    samples = sample(loop(), y, store=tmp_path / "store", slopes=True, **ARGUMENTS)
    assert samples[0].slope.shape[1] == 5
    assert "is damaged" in caplog.text


@pytest.mark.parametrize("name", ["answers-1.npz", "plan.json"])
def test_a_pipe_among_the_files_is_left_out(store, loop, y, name):
    (store / name).unlink(missing_ok=True)
    os.mkfifo(store / name)
    assert open_store(store).progress.n_answers == 30
    open_samples(store, loop(), y, **ARGUMENTS)


# Header ----------------------------------------------------------------------------------------


def test_a_pipe_instead_of_the_header_is_an_error(store, loop, y):
    (store / "lodl.json").unlink()
    os.mkfifo(store / "lodl.json")
    with pytest.raises(StoreError, match=r"lodl.json in .* cannot be read: .*not a regular file"):
        sample(loop(), y, store=store, **ARGUMENTS)


@pytest.mark.parametrize(
    "change",
    [
        {"spread": [1.0, 1.0, 0.0, 1.0, 1.0]},
        {"spread": [1.0, 1.0, -1.0, 1.0, 1.0]},
        {"spread": [1.0, 1.0, float("nan"), 1.0, 1.0]},
        {"spread": [1.0, 1.0, float("inf"), 1.0, 1.0]},
        {"spread": [[1.0], 2.0]},
        {"spread": {}},
        {"spread": "wide"},
        {"spread": None},
        {"parameters": ["class"]},
        {"parameters": {"class": {"name": "Loop"}}},
    ],
    ids=str,
)
def test_a_forged_header_is_an_error(store, loop, y, change):
    header = json.loads((store / "lodl.json").read_text())
    (store / "lodl.json").write_text(json.dumps(header | change))
    with pytest.raises(StoreError, match=r"lodl.json in .* is damaged: .* Remove the store"):
        sample(loop(), y, store=store, **ARGUMENTS)


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "7", '"text"', '{"format": []}', "\xff"])
def test_a_header_that_is_no_header_is_an_error(store, loop, y, text):
    (store / "lodl.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=r"lodl.json in .* is damaged"):
        sample(loop(), y, store=store, **ARGUMENTS)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"n_answers": 1e999}', '{"n_answers": "many"}'])
def test_a_forged_plan_counts_as_none(store, text):
    (store / "plan.json").write_text(text)
    assert open_store(store).progress.n_missing == 0


# Places ----------------------------------------------------------------------------------------


def test_an_empty_name_is_refused_and_nothing_is_written(loop, y, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for run in (lambda: sample(loop(), y, store="", **ARGUMENTS), lambda: open_store("")):
        with pytest.raises(InvalidInputError, match="`store` must be a folder or a URL, got ''"):
            run()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("place", "match"),
    [
        ("gopher://answers", "`store` must be a folder or a URL of a known kind, got 'gopher://"),
        ("n" * 300, "cannot be read: .*File name too long"),
        ("null\0byte", "`store` must be a folder or a URL.*embedded null byte"),
    ],
    ids=["scheme", "long", "null"],
)
def test_a_place_that_cannot_be_is_a_clear_error(loop, y, tmp_path, monkeypatch, place, match):
    monkeypatch.chdir(tmp_path)
    for run in (lambda: sample(loop(), y, store=place, **ARGUMENTS), lambda: open_store(place)):
        with pytest.raises((InvalidInputError, StoreError), match=match):
            run()


def test_nobody_is_told_to_remove_a_folder_of_other_files(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(StoreError, match=r"not a store. Choose another folder") as told:
        open_store(tmp_path)
    assert "Remove" not in str(told.value)


def test_a_model_is_told_from_a_store(tmp_path):
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(StoreError, match=r"is a saved model, not a store. .*`lodl.load_model`"):
        open_store(tmp_path)


# The scale of the labels -----------------------------------------------------------------------


def test_a_fit_without_a_store_does_not_speak_of_one(caplog):
    """The first instances, whose calls are timed, are much alike."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    y = np.concatenate([0.01 * x[:20, :1], 10 * x[20:, :1]])
    stock = lodl.problem(lambda v: v, lambda z, y: float(np.abs(z - y).sum()), sense="min")
    lodl.DecisionFocusedRegressor(stock, families=(), n_rounds=0, n_samples=2).fit(x, y)
    assert "spread" not in caplog.text
