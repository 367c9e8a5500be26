"""What a store keeps, refuses and notices."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from lodl.errors import OracleError, StoreError
from lodl.oracle import Oracle, _store, open_samples, open_store, sample
from lodl.problems import problem
from lodl.samplers import AllPerturbed

K = 20
ARGUMENTS = {"sampler": AllPerturbed(), "n_samples": K}
SCRIPT = Path(__file__).with_name("store_script.py")


def bits(samples):
    return [answers.regret.tobytes() for answers in samples]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def filled(problem_class, y, store, calls_file):
    """A full store of three runs, how to sample into it again, and the right answer."""
    oracle = problem_class(calls_file)

    def run(n_instances=6):
        return sample(oracle, y[:n_instances], store=store, **ARGUMENTS)

    run(2)
    run(4)
    return oracle, run, bits(run())


def edit(store, query, *values):
    """Change a store as another program could."""
    connection = sqlite3.connect(store)
    with connection:
        connection.execute(query, values)
    connection.close()


def look(store, query):
    connection = sqlite3.connect(store)
    rows = connection.execute(query).fetchall()
    connection.close()
    return rows


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


def test_a_file_holds_the_same_bits_as_memory(problem_class, y, store):
    samples = sample(problem_class(), y, store=store, **ARGUMENTS)
    assert bits(samples) == bits(sample(problem_class(), y, **ARGUMENTS))
    assert bits(open_samples(str(store), problem_class(), y, **ARGUMENTS)) == bits(samples)


@pytest.mark.parametrize("steps", [[500, 1200], [50, 51, 730, 1200], [1200, 500]])
def test_a_store_that_grew_has_the_same_bits(loop, y, store, steps):
    for n_samples in steps:
        kwargs = {"sampler": AllPerturbed(), "n_samples": n_samples, "seed": 1}
        grown = sample(loop(), y, store=store, **kwargs)
        assert grown.n_samples == n_samples
        assert bits(grown) == bits(sample(loop(), y, **kwargs))


def slopes(samples):
    return [(one.regret.tobytes(), one.slope.tobytes(), one.decision.tobytes()) for one in samples]


def test_rows_that_would_be_too_large_are_cut_and_have_the_same_bits(loop, y, store, monkeypatch):
    expected = slopes(sample(loop(), y, slopes=True, **ARGUMENTS))
    monkeypatch.setattr(_store, "_MAX_RUN", 300)
    samples = sample(loop(), y, slopes=True, store=store, **ARGUMENTS)
    sizes = look(store, "SELECT length(loss) + length(gradient) FROM answers")
    assert max(sizes)[0] <= 300
    assert slopes(samples) == expected
    assert slopes(open_samples(store, loop(), y, slopes=True, **ARGUMENTS)) == expected


def test_slopes_are_added_to_answers_that_are_there(loop, y, store, calls_file):
    sample(loop(), y, store=store, **ARGUMENTS)
    samples = sample(loop(), y, slopes=True, store=store, **ARGUMENTS)
    assert slopes(samples) == slopes(sample(loop(), y, slopes=True, **ARGUMENTS))


def test_an_answer_that_failed_in_another_process_does_not_hide_one_that_succeeded(loop, y, store):
    class Down(loop):
        def solve(self, y_hat, context):
            raise OSError("no licence")

    def lenient(oracle, place):
        kwargs = ARGUMENTS | {"on_failure": "skip", "max_failure_rate": 1.0}
        return sample(oracle, y, store=place, **kwargs)

    expected = bits(sample(loop(), y, store=store, **ARGUMENTS))
    lenient(Down(), store.with_name("failed.db"))
    rows = look(store.with_name("failed.db"), "SELECT * FROM answers")
    for row in rows:
        edit(store, "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    assert bits(open_samples(store, loop(), y, **ARGUMENTS)) == expected


def test_opening_what_is_not_there_is_a_clear_error(loop, y, store):
    for place in (store, store / "deeper" / "still"):
        with pytest.raises(StoreError, match=r"no store at .*`lodl.oracle.sample` makes it"):
            open_samples(place, loop(), y, **ARGUMENTS)
    assert not list(store.parent.iterdir())
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


# Damage ----------------------------------------------------------------------------------------


def test_a_damaged_row_is_noticed_and_only_its_answers_are_computed_again(filled, y, store, caplog):
    oracle, run, expected = filled
    ids = [id_ for (id_,) in look(store, "SELECT DISTINCT id FROM answers WHERE length(loss) > 8")]
    edit(store, "UPDATE answers SET loss = zeroblob(length(loss)) WHERE id = ?", ids[1])
    with pytest.raises(StoreError, match="lacks 20 of 126 answers"):
        open_samples(store, oracle, y, **ARGUMENTS)
    caplog.clear()
    before = oracle.n_calls()
    assert bits(run()) == expected
    assert oracle.n_calls() - before == 20 + 11  # verified: this instance at its label only
    assert caplog.text.count("rows of answers in") == 1
    assert f"{store} are damaged. They are ignored and computed again." in caplog.text
    before = oracle.n_calls()
    assert bits(run()) == expected
    assert oracle.n_calls() - before == 12  # the verification


def test_whatever_happens_to_a_file_no_number_is_wrong(vectorised, y, store):
    """A bit flipped anywhere, a piece cut out, zeroed or doubled: same bits, or an error."""
    expected = bits(sample(vectorised(), y, store=store, **ARGUMENTS))
    content = store.read_bytes()
    rng = random.Random(0)
    n_errors = 0
    for number in range(400):
        mutated = bytearray(content)
        start = rng.randrange(len(content))
        stop = min(start + rng.choice([1, 1, 8, 200, 4096]), len(content))
        match rng.randrange(4):
            case 0:
                mutated[start] ^= 1 << rng.randrange(8)
            case 1:
                del mutated[start:stop]
            case 2:
                mutated[start:stop] = bytes(stop - start)
            case 3:
                mutated[start:start] = mutated[start:stop]
        path = store.with_name(f"{number}.db")
        path.write_bytes(mutated)
        try:
            samples = open_samples(path, vectorised(), y, **ARGUMENTS)
            assert bits(samples) == expected
            assert samples.progress.n_answers >= 0
            assert samples.seconds >= 0
        except StoreError:
            n_errors += 1
    assert n_errors > 100


def test_damage_done_after_opening_is_an_error_not_a_number(filled, store):
    _, run, _ = filled
    samples = run()
    edit(store, "UPDATE answers SET loss = zeroblob(length(loss))")
    with pytest.raises(StoreError, match=r"missing or damaged. Call `sample` again"):
        samples[0]


def test_a_store_that_was_removed_while_in_use_is_an_error_and_not_made_anew(loop, y, store):
    samples = sample(loop(), y, store=store, **ARGUMENTS)
    samples.store.flush()
    for path in store.parent.glob("store.db*"):
        path.unlink()
    samples.store._database.disconnect()
    with pytest.raises(StoreError, match="cannot be read"):
        samples[0]
    assert not store.exists()


@pytest.mark.parametrize("key", ["version", "spread", "problem"])
def test_a_header_that_lacks_something_is_a_clear_error(loop, y, store, key):
    sample(loop(), y, store=store, **ARGUMENTS)
    edit(store, "DELETE FROM header WHERE key = ?", key)
    with pytest.raises(StoreError, match=r"header of .* is damaged.* Remove it and sample again"):
        sample(loop(), y, store=store, **ARGUMENTS)


def test_a_header_of_another_version_is_refused(loop, y, store):
    sample(loop(), y, store=store, **ARGUMENTS)
    edit(store, "UPDATE header SET value = 99 WHERE key = 'version'")
    with pytest.raises(StoreError, match="format version 99, this version of lodl reads 3"):
        sample(loop(), y, store=store, **ARGUMENTS)


# Places ----------------------------------------------------------------------------------------


def sidecars(store):
    return sorted(path.name for path in store.parent.glob(f"{store.name}-*"))


def test_an_empty_file_a_symlink_and_a_long_name_will_do(loop, y, tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("empty", "link", 240 * "n", "deep/er", "with space?&#%20.db", "\udcff.db"):
        sample(loop(), y, store=tmp_path / name, **ARGUMENTS)
        assert open_samples(tmp_path / name, loop(), y, **ARGUMENTS).n_failures == 0
        assert (tmp_path / name).stat().st_size > 1000


def test_a_relative_path_does_not_move_with_the_working_folder(loop, y, tmp_path, monkeypatch):
    class Wanders(loop):
        def solve(self, y_hat, context):
            os.chdir("/")
            return super().solve(y_hat, context)

    monkeypatch.chdir(tmp_path)
    samples = sample(Wanders(), y, store="store.db", **ARGUMENTS)
    assert Path.cwd() == Path("/")
    assert (tmp_path / "store.db").is_file()
    assert samples[0].regret.shape == (K,)


def test_the_file_alone_is_as_good_when_it_is_copied_while_in_use(loop, y, tmp_path, store):
    original = sample(loop(), y, store=store, **ARGUMENTS)
    shutil.copy(store, tmp_path / "copy.db")
    copy = open_samples(tmp_path / "copy.db", loop(), y, **ARGUMENTS)
    assert bits(copy) == bits(original)
    assert copy.seconds == original.seconds > 0


def test_no_other_file_is_left_when_nobody_uses_the_store_any_more(loop, y, store):
    samples = sample(loop(), y, store=store, **ARGUMENTS)
    assert samples[0].regret.shape == (K,)
    del samples
    assert sidecars(store) == []


def test_no_other_file_is_left_at_the_end_of_a_program(store):
    command = [sys.executable, "-W", "error", SCRIPT, "keep", store]
    subprocess.run(command, check=True)
    assert sidecars(store) == []
    assert look(store, "PRAGMA integrity_check") == [("ok",)]


@pytest.fixture
def no_logs(store):
    """A file that a write-ahead log needs cannot be opened, as on some file systems."""
    return lambda: (store.parent / "store.db-shm").symlink_to("nowhere")


def test_a_file_system_without_logs_will_do(loop, y, store, no_logs):
    no_logs()
    kwargs = ARGUMENTS | {"sampler": AllPerturbed(1.0)}
    expected = bits(sample(loop(), y, **kwargs))
    assert bits(sample(loop(), y[:3], store=store, **kwargs)) == expected[:3]
    assert bits(sample(loop(), y, store=store, **kwargs)) == expected
    assert sidecars(store) == ["store.db-shm"]


def test_a_store_moved_to_a_file_system_without_logs_will_do(loop, y, store, no_logs):
    expected = bits(sample(loop(), y[:3], store=store, **ARGUMENTS))
    assert look(store, "PRAGMA journal_mode") == [("wal",)]
    no_logs()
    assert bits(open_samples(store, loop(), y[:3], **ARGUMENTS)) == expected
    assert bits(sample(loop(), y, store=store, **ARGUMENTS))[:3] == expected


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
    done = run("size=16m", "read_only", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["same", "StoreError: read-only", "only the store"]


def test_a_log_on_a_read_only_medium_is_an_error_that_says_what_to_copy(mounted):
    folder, run = mounted
    done = run("size=16m", "read_only_log", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["StoreError: copy", "same"]


def test_a_full_disk_is_an_error_and_what_fits_is_kept(mounted):
    folder, run = mounted
    done = run("size=512k", "full", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["StoreError: no space", "ok", "same", "fewer"]


# Several processes and threads -----------------------------------------------------------------


def test_of_two_that_create_a_store_the_second_finds_the_first(store):
    first = open_store(store, spread=np.ones(3), problem={})
    second = open_store(store, spread=np.full(3, 2.0), problem={})
    assert np.array_equal(first.spread, second.spread)


def test_a_store_that_another_process_locks_is_an_error_that_says_so(loop, y, store, monkeypatch):
    monkeypatch.setattr("lodl.oracle._database._PATIENCE", 0.05)
    sample(loop(), y[:3], store=store, **ARGUMENTS)
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"cannot be written to .*store.db: database is locked"):
        sample(loop(), y, store=store, **ARGUMENTS)
    other.execute("ROLLBACK")
    other.execute("PRAGMA journal_mode = delete")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match=r"is locked: another process .* Try again later"):
        open_store(store)
    other.close()
    assert len(sample(loop(), y, store=store, **ARGUMENTS)) == 6


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "memory"])
def test_two_threads_that_share_an_oracle_agree(loop, store, is_file):
    y = np.random.default_rng(0).normal(size=(40, 5))
    expected = bits(sample(loop(), y, **ARGUMENTS))
    oracle = Oracle(loop(), store=open_store(store, spread=y.std(axis=0)) if is_file else None)
    oracle.sample(y[:1], n_samples=1)
    scale = AllPerturbed(y.std(axis=0))
    expected = bits(sample(loop(), y, sampler=scale, n_samples=K))
    found, errors = {}, []

    def work(number):
        try:
            for part in np.array_split(np.random.default_rng(number).permutation(40), 5):
                found[number] = bits(oracle.sample(y[part], scale, K))
                assert found[number] == [expected[row] for row in part]
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert bits(oracle.sample(y, scale, K)) == expected


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_store_that_is_open_can_be_used_on_both_sides_of_a_fork(store, kind):
    command = [sys.executable, "-W", "error", SCRIPT, f"fork_{kind}", store]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["same", "same", "same"]
    if kind == "file":
        assert look(store, "PRAGMA integrity_check") == [("ok",)]
        assert sidecars(store) == []
