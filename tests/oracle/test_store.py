"""What a store keeps, refuses and notices."""

import json
import shutil
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
import zarr

from lodl.errors import InvalidInputError, StoreError
from lodl.oracle import evaluate, open_samples
from lodl.oracle._layout import Layout
from lodl.oracle._panel import Chunk, MemoryPanel, Outcomes, SampleStatus
from lodl.oracle._store import create_store, open_store
from lodl.oracle._store_header import StoreIdentity
from lodl.oracle._zarr_panel import ZarrPanel
from lodl.samplers import AllPerturbed, OnePerturbed

IDENTITY = StoreIdentity(7, seed=0, fingerprints={"problem": "p"}, first_draw=(1.0, 2.0))
N_SAMPLES = 330


def zarr_panel(place):
    create_store(place, IDENTITY, Layout(optimum=(7, 1), regret=(3, 4)), 10)
    return open_store(place, IDENTITY, 10).regret


PANELS = {
    "memory": lambda _: MemoryPanel(Outcomes.pending((7, 10)), (3, 4)),
    "local": lambda folder: zarr_panel(f"{folder}/store.zarr"),
    "url": lambda folder: zarr_panel(f"memory://{folder}/store.zarr"),
}


@pytest.fixture(params=PANELS)
def panel(request, tmp_path):
    return PANELS[request.param](tmp_path)


def outcomes_of(shape, seed=0):
    status = np.random.default_rng(seed).integers(1, 6, size=shape).astype(np.uint8)
    values = np.where(status == 1, np.random.default_rng(seed).normal(size=shape), np.nan)
    return Outcomes(values, status)


def assert_same(a, b):
    assert np.array_equal(a.status, b.status)
    assert np.array_equal(a.values, b.values, equal_nan=True)


def test_a_new_panel_is_pending(panel):
    assert_same(panel.read(slice(0, 7), slice(0, 10)), Outcomes.pending((7, 10)))


def test_a_panel_gives_back_what_was_written(panel):
    everything = outcomes_of((7, 10))
    for chunk in panel.chunks(slice(0, 7), 10):
        place = (chunk.rows, chunk.cols)
        panel.write(chunk, Outcomes(everything.values[place], everything.status[place]))
    assert_same(panel.read(slice(0, 7), slice(0, 10)), everything)
    part = Outcomes(everything.values[2:5, 3:9], everything.status[2:5, 3:9])
    assert_same(panel.read(slice(2, 5), slice(3, 9)), part)


def test_chunks_cover_a_panel_once(panel):
    seen = np.zeros((7, 10), dtype=int)
    for band in panel.bands(10):
        for chunk in panel.chunks(band, 10):
            seen[chunk.rows, chunk.cols] += 1
    assert (seen == 1).all()


def test_success_without_a_value_is_pending(tmp_path):
    panel = zarr_panel(f"{tmp_path}/store.zarr")
    status = np.ones((3, 4), dtype=np.uint8)
    panel.write(Chunk(slice(0, 3), slice(0, 4)), Outcomes(np.full((3, 4), np.nan), status))
    assert panel.read(slice(0, 3), slice(0, 4)).is_pending.all()


def test_of_two_that_create_a_store_the_second_finds_the_first(tmp_path):
    place = f"{tmp_path}/store.zarr"
    create_store(place, IDENTITY, Layout(optimum=(7, 1), regret=(3, 4)), 10)
    create_store(place, IDENTITY, Layout(optimum=(7, 1), regret=(1, 2)), 10)
    assert open_store(place, IDENTITY, 10).regret.chunk_shape == (3, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["store.zarr"]


@pytest.fixture
def filled(problem_class, y, tmp_path, calls_file):
    """A full store, how to evaluate into it again, and the right answer."""
    oracle, store = problem_class(calls_file, seconds=5e-5), tmp_path / "samples.zarr"

    def run():
        return evaluate(oracle, y, sampler=AllPerturbed(), n_samples=N_SAMPLES, store=store)

    return oracle, store, run, bits(run())


def bits(samples):
    return [instance.regret.tobytes() for instance in samples]


def chunk_files(store, array):
    return sorted(path for path in (store / array / "c").rglob("*") if path.is_file())


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def remove(path):
    path.unlink()


@pytest.mark.parametrize("damage", [truncate, empty, flip, remove])
@pytest.mark.parametrize("array", ["regret", "status", "optimum", "optimum_status"])
def test_a_damaged_chunk_is_noticed_and_only_it_is_computed_again(filled, y, array, damage):
    oracle, store, run, expected = filled
    damaged = chunk_files(store, array)[-1]
    damage(damaged)
    if array in ("regret", "status"):
        with pytest.raises(StoreError, match=r"is not complete. Call `evaluate`"):
            open_samples(store, oracle, y, sampler=AllPerturbed())
    before = oracle.n_calls()
    assert bits(run()) == expected
    chunk = json.loads((store / "zarr.json").read_text())["attributes"]["chunks"]
    size = np.prod(chunk["regret" if array in ("regret", "status") else "optimum"])
    assert 0 < oracle.n_calls() - before <= size
    before = oracle.n_calls()
    assert bits(run()) == expected
    assert oracle.n_calls() == before


def test_every_damaged_chunk_is_computed_again(filled):
    _, store, run, expected = filled
    for i, path in enumerate(chunk_files(store, "regret")):
        (truncate, flip, remove)[i % 3](path)
    assert bits(run()) == expected


def test_damage_done_after_opening_is_an_error_not_a_number(loop, y, tmp_path):
    store = tmp_path / "samples.zarr"
    samples = evaluate(loop(), y, sampler=AllPerturbed(), n_samples=100, store=store)
    for path in chunk_files(store, "regret"):
        flip(path)
    with pytest.raises(StoreError, match=r"instance 0 are missing or damaged. Call `evaluate`"):
        samples[0]


@pytest.mark.parametrize("part", ["", "regret", "status", "optimum", "optimum_status", "log"])
@pytest.mark.parametrize("damage", [truncate, remove])
def test_damaged_metadata_is_a_clear_error(loop, y, tmp_path, part, damage):
    store = tmp_path / "samples.zarr"
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5, "store": store}
    evaluate(loop(), y, **kwargs)
    damage(store / part / "zarr.json")
    with pytest.raises(StoreError, match=r"damaged.*(Restore|remove)"):
        evaluate(loop(), y, **kwargs)


def edit_header(store, **changes):
    path = store / "zarr.json"
    document = json.loads(path.read_text())
    document["attributes"].update(changes)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"schema_version": 2}, r"newer version of lodl \(schema 2, this one reads 1\). Upgrade"),
        ({"schema_version": None}, "is not a store of oracle samples"),
        ({"seed": 1}, "The header of .* is damaged"),
        ({"chunks": {"optimum": [6, 1], "regret": [1, 1]}}, "The header of .* is damaged"),
    ],
)
def test_a_header_that_was_changed_is_refused(loop, y, tmp_path, change, match):
    store = tmp_path / "samples.zarr"
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5, "store": store}
    evaluate(loop(), y, **kwargs)
    edit_header(store, **change)
    with pytest.raises(StoreError, match=match):
        evaluate(loop(), y, **kwargs)


def test_a_store_of_candidates_that_are_no_longer_drawn_is_refused(tmp_path):
    place = str(tmp_path / "store")
    create_store(place, IDENTITY, Layout(optimum=(7, 1), regret=(3, 4)), 10)
    with pytest.raises(StoreError, match="this version of NumPy draws other numbers"):
        open_store(place, replace(IDENTITY, first_draw=(1.0, 2.1)), 10)


def test_an_array_with_other_chunks_than_the_header_is_refused(loop, y, tmp_path):
    store = tmp_path / "samples.zarr"
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5, "store": store}
    evaluate(loop(), y, **kwargs)
    path = store / "regret" / "zarr.json"
    document = json.loads(path.read_text())
    document["chunk_grid"]["configuration"]["chunk_shape"] = [1, 5]
    path.write_text(json.dumps(document))
    with pytest.raises(StoreError, match="'regret' does not fit the header"):
        evaluate(loop(), y, **kwargs)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"sampler": OnePerturbed()}, "sampler"),
        ({"sampler": AllPerturbed(0.5)}, "sampler"),
        ({"seed": 1}, "seed"),
        ({"context": [{"price": 2.0}] * 6}, "context"),
        ({"y": 1.0}, "labels"),
        ({"seconds": 1e-9}, "problem"),
    ],
)
def test_a_store_of_other_inputs_is_refused_and_what_differs_is_named(
    loop, y, tmp_path, change, names
):
    store = tmp_path / "samples.zarr"
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5, "store": store}
    evaluate(loop(), y, **kwargs)
    other_y = y + change.pop("y", 0)
    problem = loop(seconds=change.pop("seconds", 0.0))
    with pytest.raises(StoreError, match=f"samples of other inputs: different {names}. Choose"):
        evaluate(problem, other_y, **(kwargs | change))


def test_contexts_of_tensors_are_told_apart(loop, y, tmp_path):
    class ReadsTensor(loop):
        def objective(self, z, y, context):
            return float(context[0])

    kwargs = {"sampler": AllPerturbed(), "n_samples": 5, "store": tmp_path / "samples.zarr"}
    evaluate(ReadsTensor(), y, context=torch.ones(6, 1), **kwargs)
    with pytest.raises(StoreError, match="different context"):
        evaluate(ReadsTensor(), y, context=torch.zeros(6, 1), **kwargs)


def test_a_problem_without_a_fingerprint_is_kept_in_memory_only(loop, y, tmp_path):
    problem = loop()
    problem.lock = threading.Lock()
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5}
    assert evaluate(problem, y, **kwargs).fingerprints["problem"] == "unknown"
    with pytest.raises(InvalidInputError, match=r"_thread.lock has no content.*__getstate__"):
        evaluate(problem, y, store=tmp_path / "samples.zarr", **kwargs)


def test_a_folder_that_is_no_store_is_refused(loop, y, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"is not empty and has no zarr.json"):
        evaluate(loop(), y, sampler=AllPerturbed(), n_samples=5, store=tmp_path)


def test_an_empty_folder_becomes_a_store(loop, y, tmp_path):
    evaluate(loop(), y, sampler=AllPerturbed(), n_samples=5, store=tmp_path)
    assert open_samples(tmp_path, loop(), y, sampler=AllPerturbed()).n_samples == 5


def test_opening_what_is_not_there_is_a_clear_error(loop, y, tmp_path):
    store = tmp_path / "samples.zarr"
    with pytest.raises(StoreError, match=r"There is no store at .*`evaluate` makes it"):
        open_samples(store, loop(), y, sampler=AllPerturbed())
    evaluate(loop(), y, sampler=AllPerturbed(), n_samples=5, store=store)
    with pytest.raises(StoreError, match="holds 5 samples per instance, 6 were asked"):
        open_samples(store, loop(), y, sampler=AllPerturbed(), n_samples=6)


def test_a_copied_store_is_as_good_and_may_be_read_only(loop, y, tmp_path):
    kwargs = {"sampler": AllPerturbed()}
    original = evaluate(loop(), y, n_samples=5, store=tmp_path / "a.zarr", **kwargs)
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "b.zarr")
    for path in (tmp_path / "b.zarr").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    copy = open_samples(tmp_path / "b.zarr", loop(), y, **kwargs)
    assert bits(copy) == bits(original)
    assert copy.seconds == original.seconds > 0


def test_a_process_that_asks_for_fewer_samples_does_no_harm(loop, y, tmp_path):
    """It may write a narrower last chunk over ours: those samples are pending again."""
    store, kwargs = tmp_path / "samples.zarr", {"sampler": AllPerturbed()}
    evaluate(loop(), y, n_samples=30, store=store, **kwargs)
    root = zarr.open_group(store, mode="r+")
    narrow = ZarrPanel(root["regret"], root["status"])
    expected = bits(evaluate(loop(), y, n_samples=60, store=store, **kwargs))
    for chunk in narrow.chunks(slice(0, 6), 30):
        narrow.write(chunk, narrow.read(chunk.rows, chunk.cols))
    assert bits(evaluate(loop(), y, n_samples=60, store=store, **kwargs)) == expected


def test_every_status_has_a_name_and_pending_is_the_fill_value():
    assert [status.name for status in SampleStatus] == [
        "PENDING",
        "OK",
        "RAISED",
        "NON_FINITE",
        "WRONG_SHAPE",
        "NO_OPTIMUM",
        "BAD_CANDIDATE",
    ]
    assert SampleStatus.PENDING == 0
