"""What a store keeps, refuses and notices."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lodl.errors import OracleError, StoreError
from lodl.oracle import _store, open_samples, open_store, sample
from lodl.oracle._shard import Shard
from lodl.problems import problem
from lodl.samplers import AllPerturbed

K = 20
ARGUMENTS = {"sampler": AllPerturbed(), "n_samples": K}
SCRIPT = Path(__file__).with_name("store_script.py")


def bits(samples):
    return [answers.regret.tobytes() for answers in samples]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def filled(problem_class, y, store, calls_file):
    """A full store of three files, how to sample into it again, and the right answer."""
    oracle = problem_class(calls_file)

    def run(n_instances=6):
        return sample(oracle, y[:n_instances], store=store, **ARGUMENTS)

    run(2)
    run(4)
    return oracle, run, bits(run())


def shards(store):
    return sorted(store.glob("answers-*.npz"))


# Whose answers they are ------------------------------------------------------------------------


def scaled(factor):
    return problem(lambda v: v, lambda z, y: factor * float(((z - y) ** 2).sum()), sense="min")


def test_answers_of_another_problem_are_noticed_and_told(y, store):
    sample(scaled(1.0), y, store=store, **ARGUMENTS)
    told = r"answers of another problem: 6 of 6 stored answers come out different when computed"
    where = r"again \(instance \d, sample \d+: .* stored, .* now\)"
    with pytest.raises(StoreError, match=f"{told} {where}"):
        sample(scaled(1.1), y, store=store, **ARGUMENTS)


@pytest.mark.parametrize("change", [{}, {"seed": 1}], ids=["candidates", "labels alone"])
@pytest.mark.parametrize(
    ("optimum", "error", "is_told"),
    [(0.7, 2e-6, True), (0.7, 1e-10, False), (0.0, 1e-17, False), (1e9, 1e-3, False)],
)
def test_an_iterative_solver_may_repeat_its_answers_roughly(
    y, store, caplog, change, optimum, error, is_told
):
    """As OSQP does, which starts from its last solution."""
    errors = iter(error * np.random.default_rng(0).normal(size=1000))

    def objective(z, y):
        return optimum + 0.01 * float(np.abs(z - y).max()) + next(errors)

    rough = problem(lambda v: v, objective, sense="min")
    sample(rough, y, store=store, **ARGUMENTS)
    caplog.clear()
    sample(rough, y, store=store, **(ARGUMENTS | change))
    assert ("come out slightly different when computed again" in caplog.text) == is_told


def test_a_setting_outside_the_problem_that_changes_answers_is_noticed(y, store):
    setting = {"price": 1.0}
    shop = problem(lambda v: v.argmax(), lambda z, y: setting["price"] * y[z], sense="max")
    sample(shop, y, store=store, **ARGUMENTS)
    setting["price"] = 2.0
    with pytest.raises(StoreError, match="answers of another problem"):
        sample(shop, y, store=store, **ARGUMENTS)


def test_a_solver_that_is_not_deterministic_is_told_so(y, store):
    rng = np.random.default_rng(0)
    noisy = problem(
        lambda v: v + 0.1 * rng.normal(size=5), lambda z, y: ((z - y) ** 2).sum(), sense="min"
    )
    sample(noisy, y, store=store, **ARGUMENTS)
    with pytest.raises(StoreError, match=r"is not deterministic: .* of 6 stored.*Fix its seed"):
        sample(noisy, y, store=store, **ARGUMENTS)


def test_calls_that_fail_when_computed_again_are_told_and_no_error(loop, y, store, caplog):
    class Down(loop):
        def solve(self, y_hat, context):
            raise OSError("no licence")

    sample(loop(), y, store=store, **ARGUMENTS)
    assert sample(Down(), y, store=store, **ARGUMENTS).n_failures == 0
    assert "12 of 12 spot checks failed: instance 0, " in caplog.text
    assert "OSError: no licence. The stored answers could not be verified." in caplog.text


@pytest.mark.usefixtures("foreground")
def test_an_interrupt_of_the_verification_says_what_is_kept(loop, y, store):
    class Interrupted(loop):
        def solve(self, y_hat, context):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

    sample(loop(), y, store=store, **ARGUMENTS)
    with pytest.raises(KeyboardInterrupt, match=rf"What was done is kept in {store}"):
        sample(Interrupted(), y, store=store, **ARGUMENTS)


def test_a_few_answers_are_verified_however_many_failed_at_their_labels(y, store, calls_file, loop):
    class Picky(loop):
        def solve(self, y_hat, context):
            if any(np.array_equal(y_hat, label) for label in y[:4]):
                raise ValueError("not this one")
            return super().solve(y_hat, context)

    kwargs = ARGUMENTS | {"on_failure": "skip", "max_failure_rate": 1, "store": store}
    sample(Picky(), y, **kwargs)
    oracle = Picky(calls_file)
    sample(oracle, y, **kwargs)
    assert oracle.n_calls() == 2 * 2


@pytest.mark.parametrize("attribute", ["name", "version"])
def test_a_name_or_version_of_the_users_own_must_agree(loop, y, store, attribute):
    one, other = loop(), loop()
    setattr(one, attribute, "spring")
    setattr(other, attribute, "autumn")
    sample(one, y, store=store, **ARGUMENTS)
    sample(loop(), y, store=store, **ARGUMENTS)  # without one of its own
    for place in (store, open_store(store)):
        with pytest.raises(StoreError, match=f"{attribute} is 'spring', this one's is 'autumn'. C"):
            sample(other, y, store=place, **ARGUMENTS)


def test_labels_of_another_shape_are_refused(loop, y, store):
    sample(loop(), y, store=store, **ARGUMENTS)
    for place in (store, open_store(store)):
        with pytest.raises(StoreError, match=r"labels of shape \(5,\), these have shape \(4,\)"):
            sample(loop(), y[:, :4], store=place, **ARGUMENTS)


def test_a_scale_that_does_not_fit_the_labels_of_a_later_run_is_told(loop, store, caplog):
    y = np.random.default_rng(0).normal(size=(40, 5))
    sample(loop(), y[:20], store=store, **ARGUMENTS)
    for part in (y, y[20:], y[3:7], y[:1]):
        sample(loop(), part, store=store, **ARGUMENTS)
    sample(loop(), 3 * y, store=store, sampler=AllPerturbed(1.0), n_samples=3)
    assert "spread" not in caplog.text
    sample(loop(), y * [1, 1, 1, 1, 3], store=store, **ARGUMENTS)
    assert f"{store} was made with labels whose spread is 0.3" in caplog.text
    assert "Name another store for these labels" in caplog.text


@pytest.mark.slow
def test_a_model_built_in_the_constructor_works_with_a_store_across_processes(store):
    pytest.importorskip("cvxpy")
    command = [sys.executable, "-W", "error", SCRIPT, "cvxpy", store]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["18", "6"]  # the second asks for three instances again


# What is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["{}/store", "file://{}/store", "memory://{}"])
def test_in_any_place(problem_class, y, tmp_path, place):
    place = place.format(tmp_path)
    samples = sample(problem_class(), y, store=place, **ARGUMENTS)
    assert bits(samples) == bits(sample(problem_class(), y, **ARGUMENTS))
    assert bits(open_samples(place, problem_class(), y, **ARGUMENTS)) == bits(samples)


@pytest.mark.parametrize("steps", [[500, 1200], [50, 51, 730, 1200], [1200, 500]])
def test_a_store_that_grew_has_the_same_bits(loop, y, store, steps):
    for n_samples in steps:
        kwargs = {"sampler": AllPerturbed(), "n_samples": n_samples, "seed": 1}
        grown = sample(loop(), y, store=store, **kwargs)
        assert grown.n_samples == n_samples
        assert bits(grown) == bits(sample(loop(), y, **kwargs))


def test_opening_what_is_not_there_is_a_clear_error(loop, y, store):
    with pytest.raises(StoreError, match=r"There is no store at .*`lodl.oracle.sample` makes it"):
        open_samples(store, loop(), y, **ARGUMENTS)
    assert not store.exists()
    sample(loop(), y[:4], store=store, **ARGUMENTS)
    with pytest.raises(StoreError, match=r"lacks 42 of 126 answers. `lodl.oracle.sample` comp"):
        open_samples(store, loop(), y, **ARGUMENTS)


def test_a_store_may_be_open_for_several_runs_and_is_verified_once(loop, y, store, calls_file):
    oracle = loop(calls_file)
    sample(oracle, y, store=store, **ARGUMENTS)
    shared, n_calls = open_store(store), []
    for user in (oracle, oracle, loop(calls_file)):
        before = oracle.n_calls()
        samples = sample(user, y[:2], store=shared, **ARGUMENTS)
        assert bits(samples) == bits(open_samples(store, oracle, y[:2], **ARGUMENTS))
        n_calls.append(oracle.n_calls() - before)
    assert n_calls == [4, 0, 4]


def test_a_store_says_how_far_it_is_and_what_it_would_cost_to_finish(loop, y, store, calls_file):
    class Expires(loop):
        def solve(self, y_hat, context):
            if self.n_calls() == 70:
                raise OSError("licence expired")
            return super().solve(y_hat, context)

    with pytest.raises(OracleError, match="licence expired"):
        sample(Expires(calls_file, seconds=0.001), y, store=store, **ARGUMENTS)
    progress = open_store(store).progress
    assert (progress.n_answers, progress.n_missing, progress.n_failures) == (70, 56, 0)
    assert "56 calls missing, about" in str(progress)
    for place in (store, None):
        progress = sample(loop(), y, store=place, **ARGUMENTS).progress
        assert (progress.n_answers, progress.n_missing, progress.n_failures) == (126, 0, 0)
    assert open_store(store).progress.n_missing == 0
    assert "complete" in str(open_store(store).progress)
    for path in store.glob("*.json"):
        if path.name != "lodl.json":
            truncate(path)
    assert open_store(store).progress.n_answers == 126


# Damage ----------------------------------------------------------------------------------------


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
def test_a_damaged_file_is_noticed_and_only_its_answers_are_asked_again(
    filled, y, store, damage, caplog
):
    oracle, run, expected = filled
    assert len(shards(store)) == 3
    damage(shards(store)[1])
    with pytest.raises(StoreError, match="lacks 42 of 126 answers"):
        open_samples(store, oracle, y, **ARGUMENTS)
    before = oracle.n_calls()
    assert bits(run()) == expected
    assert oracle.n_calls() - before == 42 + 8
    assert ("is damaged" in caplog.text) == (damage is not remove)
    before = oracle.n_calls()
    assert bits(run()) == expected
    assert oracle.n_calls() - before == 12  # the verification


def test_whatever_happens_to_a_file_no_number_is_wrong(vectorised, y, store):
    """A bit flipped anywhere, a piece cut out, zeroed or doubled: same bits, or an error."""
    expected = bits(sample(vectorised(), y, store=store, **ARGUMENTS))
    (path,) = shards(store)
    content = path.read_bytes()
    rng = random.Random(0)
    n_errors = 0
    for _ in range(400):
        mutated = bytearray(content)
        start = rng.randrange(len(content))
        stop = min(start + rng.choice([1, 1, 8, 200]), len(content))
        match rng.randrange(4):
            case 0:
                mutated[start] ^= 1 << rng.randrange(8)
            case 1:
                del mutated[start:stop]
            case 2:
                mutated[start:stop] = bytes(stop - start)
            case 3:
                mutated[start:start] = mutated[start:stop]
        path.write_bytes(mutated)
        try:
            assert bits(open_samples(store, vectorised(), y, **ARGUMENTS)) == expected
        except StoreError:
            n_errors += 1
    assert n_errors > 300


@pytest.mark.parametrize(
    "change",
    [
        {"decision": np.array([1], "i4")},
        {"status": np.array([1], "u1")},
        {"start": np.array([-1], "i4")},
        {"count": np.array([2], "i4")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_numbers_that_do_not_fit_each_other_are_damage(change):
    one = np.ones(1, "i4")
    shard = Shard(
        np.zeros((1, 16), "u1"),
        0 * one,
        one,
        one,
        [np.nan] * one,
        3 * one.astype("u1"),
        0 * one,
        np.eye(1),
    )
    Shard.from_bytes(shard.to_bytes())
    with pytest.raises(ValueError, match="do not fit each other"):
        Shard.from_bytes(replace(shard, **change).to_bytes())


def test_a_file_that_cannot_be_read_now_is_an_error_and_not_damage(filled, store, monkeypatch):
    _, run, _ = filled

    def stale(self, name):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(_store.Folder, "read", stale)
    monkeypatch.setattr(
        _store.Folder, "read_if_there", lambda *_: (store / "lodl.json").read_bytes()
    )
    with pytest.raises(StoreError, match=r"answers-.* cannot be read: .*Stale file handle"):
        run()


def test_shards_are_kept_in_memory_up_to_a_number_of_bytes(filled, y, store, monkeypatch):
    oracle, _, expected = filled
    for limit, n_loaded in ((_store._MAX_LOADED, 3), (0, 1)):
        monkeypatch.setattr(_store, "_MAX_LOADED", limit)
        samples = open_samples(store, oracle, y, **ARGUMENTS)
        assert bits(samples) == expected
        assert len(samples.store._loaded) == n_loaded


def test_what_a_killed_process_left_half_written_is_removed_after_a_while(loop, y, store):
    sample(loop(), y, store=store, **ARGUMENTS)
    old, new = store / ".draft-old", store / ".draft-new"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    open_store(store)
    assert (old.exists(), new.exists()) == (False, True)


def test_damage_done_after_opening_is_an_error_not_a_number(filled, store):
    _, run, _ = filled
    samples = run()
    for path in shards(store):
        flip(path)
    samples.store._loaded.clear()
    with pytest.raises(StoreError, match=r"was damaged while it was in use.*Sample again"):
        samples[0]


@pytest.mark.parametrize("damage", [truncate, empty, remove])
def test_a_damaged_header_is_a_clear_error(loop, y, store, damage):
    sample(loop(), y, store=store, **ARGUMENTS)
    damage(store / "lodl.json")
    with pytest.raises(StoreError, match=r"damaged.*(R|r)emove"):
        sample(loop(), y, store=store, **ARGUMENTS)


def test_a_header_of_another_version_is_refused(loop, y, store):
    sample(loop(), y, store=store, **ARGUMENTS)
    header = json.loads((store / "lodl.json").read_text())
    (store / "lodl.json").write_text(json.dumps(header | {"version": 99}))
    with pytest.raises(StoreError, match="format version 99, this version of lodl reads 2"):
        sample(loop(), y, store=store, **ARGUMENTS)


def test_a_store_of_the_older_layout_says_to_sample_again(loop, y, store):
    store.mkdir()
    (store / "zarr.json").write_text('{"zarr_format": 3, "attributes": {"schema_version": 1}}')
    (store / "regret").mkdir()
    with pytest.raises(StoreError, match=r"older version of lodl\. .*sample again"):
        sample(loop(), y, store=store, **ARGUMENTS)
    with pytest.raises(StoreError, match=r"older version of lodl\. .*sample again"):
        open_samples(store, loop(), y, **ARGUMENTS)


def test_a_folder_that_is_no_store_is_refused(loop, y, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"is not empty and has no lodl.json"):
        sample(loop(), y, store=tmp_path, **ARGUMENTS)
    with pytest.raises(StoreError, match=r"is a file, not a folder"):
        sample(loop(), y, store=tmp_path / "notes.txt", **ARGUMENTS)


# Places ----------------------------------------------------------------------------------------


def test_an_empty_folder_a_symlink_and_a_long_name_will_do(loop, y, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("empty", "link", 250 * "n", "deep/er"):
        sample(loop(), y, store=tmp_path / name, **ARGUMENTS)
        assert open_samples(tmp_path / name, loop(), y, **ARGUMENTS).n_failures == 0
    assert len(shards(tmp_path / "empty")) == 1


def test_a_relative_path_does_not_move_with_the_working_folder(loop, y, tmp_path, monkeypatch):
    class Wanders(loop):
        def solve(self, y_hat, context):
            os.chdir("/")
            return super().solve(y_hat, context)

    monkeypatch.chdir(tmp_path)
    samples = sample(Wanders(), y, store="store", **ARGUMENTS)
    assert Path.cwd() == Path("/")
    assert len(shards(tmp_path / "store")) == 1
    assert samples[0].regret.shape == (K,)


def test_a_copied_store_is_as_good(loop, y, tmp_path, store):
    original = sample(loop(), y, store=store, **ARGUMENTS)
    shutil.copytree(store, tmp_path / "copy")
    copy = open_samples(tmp_path / "copy", loop(), y, **ARGUMENTS)
    assert bits(copy) == bits(original)
    assert copy.seconds == original.seconds > 0


@pytest.fixture
def mounted(tmp_path):
    """Runs the script in a namespace of its own with a file system mounted at a folder."""
    folder = tmp_path / "mounted"
    folder.mkdir()

    def run(options, *arguments):
        mount = f"mount -t tmpfs -o {options} tmpfs {folder}"
        command = f"{mount} && exec {sys.executable} -W error {SCRIPT} {' '.join(arguments)}"
        unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        probe = subprocess.run([*unshare, mount], capture_output=True, check=False)
        if probe.returncode:
            pytest.skip("file systems cannot be mounted here")
        return subprocess.run([*unshare, command], capture_output=True, text=True, check=False)

    return folder, run


def test_a_complete_store_on_a_read_only_medium_is_read_without_writing(mounted):
    folder, run = mounted
    done = run("size=1m", "read_only", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["same", "StoreError: read-only"]


def test_a_full_disk_is_an_error_and_what_fits_is_kept(mounted):
    folder, run = mounted
    done = run("size=64k", "full", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "StoreError: no space",
        "nothing half done",
        "same",
        "fewer",
    ]


# Several processes -----------------------------------------------------------------------------


def test_of_two_that_create_a_store_the_second_finds_the_first(tmp_path):
    place = f"{tmp_path}/store"
    first = open_store(place, spread=np.ones(3), problem={})
    second = open_store(place, spread=np.full(3, 2.0), problem={})
    assert np.array_equal(first.spread, second.spread)
    assert [path.name for path in Path(place).iterdir()] == ["lodl.json"]


def test_a_store_that_appears_while_it_is_created_is_taken(loop, y, store, monkeypatch):
    """The other process wins the race between our look and our write."""
    look = _store.Folder.read_if_there

    def look_and_lose(self, name):
        found = look(self, name)
        monkeypatch.setattr(_store.Folder, "read_if_there", look)
        sample(loop(), y * 2, store=store, **ARGUMENTS)
        return found

    monkeypatch.setattr(_store.Folder, "read_if_there", look_and_lose)
    samples = sample(loop(), y, store=store, **ARGUMENTS)
    assert samples.series[0].scale == pytest.approx(2 * np.std(y))
