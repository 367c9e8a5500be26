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
from typing import Any

import numpy as np
import pytest

from lodl.errors import OracleError, StoreError
from lodl.oracle import Oracle, Progress, _database, _store
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
    solver = problem_class(calls_file)

    def run(n_instances=6):
        return Oracle(solver, store=store).sample(y[:n_instances], **ARGUMENTS)

    run(2)
    run(4)
    return solver, run, bits(run())


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
    Oracle(scaled(1.0), store=store).sample(y, **ARGUMENTS)
    told = r"answers of another problem: 6 of 6 stored answers come out different when computed"
    where = r"again \(instance \d, sample \d+: .* stored, .* now\)"
    with pytest.raises(StoreError, match=f"{told} {where}"):
        Oracle(scaled(1.1), store=store).sample(y, **ARGUMENTS)


@pytest.mark.parametrize("change", [{}, {"random_state": 1}], ids=["points", "labels alone"])
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
    Oracle(rough, store=store).sample(y, **ARGUMENTS)
    caplog.clear()
    Oracle(rough, store=store).sample(y, **(ARGUMENTS | change))
    assert ("come out slightly different when computed again" in caplog.text) == is_told


def test_a_setting_outside_the_problem_that_changes_answers_is_noticed(y, store):
    setting = {"price": 1.0}
    shop = problem(lambda v: v.argmax(), lambda z, y: setting["price"] * y[z], sense="max")
    Oracle(shop, store=store).sample(y, **ARGUMENTS)
    setting["price"] = 2.0
    with pytest.raises(StoreError, match="answers of another problem"):
        Oracle(shop, store=store).sample(y, **ARGUMENTS)


def test_a_solver_that_is_not_deterministic_is_told_so(y, store):
    rng = np.random.default_rng(0)
    noisy = problem(
        lambda v: v + 0.1 * rng.normal(size=5), lambda z, y: ((z - y) ** 2).sum(), sense="min"
    )
    Oracle(noisy, store=store).sample(y, **ARGUMENTS)
    with pytest.raises(StoreError, match=r"is not deterministic: .* of 6 stored.*Fix its seed"):
        Oracle(noisy, store=store).sample(y, **ARGUMENTS)


def test_calls_that_fail_when_computed_again_are_told_and_no_error(loop: Any, y, store, caplog):
    class Down(loop):
        def solve(self, y_hat, context):
            raise OSError("no licence")

    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    assert Oracle(Down(), store=store).sample(y, **ARGUMENTS).n_failures == 0
    assert "All 12 spot checks failed: instance 0, " in caplog.text
    assert "OSError: no licence. The stored answers could not be verified." in caplog.text


@pytest.mark.usefixtures("foreground")
def test_an_interrupt_of_the_verification_says_what_is_kept(loop: Any, y, store):
    class Interrupted(loop):
        def solve(self, y_hat, context):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    with pytest.raises(KeyboardInterrupt, match=rf"What was done is kept in {store}"):
        Oracle(Interrupted(), store=store).sample(y, **ARGUMENTS)


def test_a_few_answers_are_verified_however_many_failed_at_their_labels(
    y, store, calls_file, loop: Any
):
    class Picky(loop):
        def solve(self, y_hat, context):
            if any(np.array_equal(y_hat, label) for label in y[:4]):
                raise ValueError("not this one")
            return super().solve(y_hat, context)

    options = {"on_failure": "skip", "max_failure_rate": 1, "store": store}
    Oracle(Picky(), **options).sample(y, **ARGUMENTS)
    solver = Picky(calls_file)
    Oracle(solver, **options).sample(y, **ARGUMENTS)
    assert solver.n_calls() == 2 * 2


@pytest.mark.parametrize("attribute", ["name", "version"])
def test_a_name_or_version_of_the_users_own_must_agree(loop, y, store, attribute):
    one, other = loop(), loop()
    setattr(one, attribute, "spring")
    setattr(other, attribute, "autumn")
    Oracle(one, store=store).sample(y, **ARGUMENTS)
    Oracle(loop(), store=store).sample(y, **ARGUMENTS)  # without one of its own
    with pytest.raises(StoreError, match=f"{attribute} is 'spring', this one's is 'autumn'. C"):
        Oracle(other, store=store).sample(y, **ARGUMENTS)


def test_labels_of_another_shape_are_refused(loop, y, store):
    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    with pytest.raises(StoreError, match=r"labels of shape \(5,\), these have shape \(4,\)"):
        Oracle(loop(), store=store).sample(y[:, :4], **ARGUMENTS)


def test_a_scale_that_does_not_fit_the_labels_of_a_later_run_is_told(loop, store, caplog):
    y = np.random.default_rng(0).normal(size=(40, 5))
    Oracle(loop(), store=store).sample(y[:20], **ARGUMENTS)
    for part in (y, y[20:], y[3:7], y[:1]):
        Oracle(loop(), store=store).sample(part, **ARGUMENTS)
    Oracle(loop(), store=store).sample(3 * y, AllPerturbed(1.0), 3)
    assert "deviation" not in caplog.text
    Oracle(loop(), store=store).sample(y * [1, 1, 1, 1, 3], **ARGUMENTS)
    assert f"{store} was made with labels whose standard deviation is 0.3" in caplog.text
    assert "Name another store for these labels" in caplog.text


@pytest.mark.slow
def test_a_model_built_in_the_constructor_works_with_a_store_across_processes(store):
    pytest.importorskip("cvxpy")
    command = [sys.executable, "-W", "error", SCRIPT, "cvxpy", store]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["18", "6"]  # the second asks for three instances again


# What is kept ----------------------------------------------------------------------------------


def test_a_file_holds_the_same_bits_as_memory(problem_class, y, store):
    samples = Oracle(problem_class(), store=store).sample(y, **ARGUMENTS)
    assert bits(samples) == bits(Oracle(problem_class()).sample(y, **ARGUMENTS))
    assert bits(Oracle(problem_class(), store=str(store)).sample(y, **ARGUMENTS)) == bits(samples)


@pytest.mark.parametrize("steps", [[500, 1200], [50, 51, 730, 1200], [1200, 500]])
def test_a_store_that_grew_has_the_same_bits(loop, y, store, steps):
    for n_samples in steps:
        kwargs = {"sampler": AllPerturbed(), "n_samples": n_samples, "random_state": 1}
        grown = Oracle(loop(), store=store).sample(y, **kwargs)
        assert grown.n_samples == n_samples
        assert bits(grown) == bits(Oracle(loop()).sample(y, **kwargs))


def slopes(samples):
    return [(one.regret.tobytes(), one.slope.tobytes(), one.decision.tobytes()) for one in samples]


def test_many_answers_have_the_same_bits(vectorised, y, store):
    kwargs = {"sampler": AllPerturbed(), "n_samples": 1203, "slopes": True}
    expected = slopes(Oracle(vectorised()).sample(y[:2], **kwargs))
    samples = Oracle(vectorised(), store=store).sample(y[:2], **kwargs)
    assert slopes(samples) == expected
    assert slopes(Oracle(vectorised(), store=store).sample(y[:2], **kwargs)) == expected


def test_a_row_that_is_too_large_for_a_file_is_an_error(loop, y, store, monkeypatch):
    monkeypatch.setattr(_database, "MAX_VALUE", 300)
    with pytest.raises(StoreError, match=r"cannot be written to .*string or blob too big"):
        Oracle(loop(), store=store).sample(y, slopes=True, **ARGUMENTS)


def test_slopes_are_added_to_answers_that_are_there(loop, y, store, calls_file):
    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    samples = Oracle(loop(), store=store).sample(y, slopes=True, **ARGUMENTS)
    assert slopes(samples) == slopes(Oracle(loop()).sample(y, slopes=True, **ARGUMENTS))


def test_an_answer_that_failed_in_another_process_does_not_hide_one_that_succeeded(
    loop: Any, y, store
):
    class Down(loop):
        def solve(self, y_hat, context):
            raise OSError("no licence")

    def lenient(solver, place):
        options = {"on_failure": "skip", "max_failure_rate": 1.0}
        return Oracle(solver, store=place, **options).sample(y, **ARGUMENTS)

    expected = bits(Oracle(loop(), store=store).sample(y, **ARGUMENTS))
    lenient(Down(), store.with_name("failed.db"))
    rows = look(store.with_name("failed.db"), "SELECT * FROM answers")
    for row in rows:
        edit(store, "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", *row)
    assert bits(Oracle(loop(), store=store).sample(y, **ARGUMENTS)) == expected


def test_reading_a_store_that_does_not_exist_is_a_clear_error(store):
    for place in (store, store / "deeper" / "still"):
        with pytest.raises(StoreError, match=r"no store at .*store=\.\.\.\)` creates it"):
            Progress.read(place)
    assert not list(store.parent.iterdir())


def test_a_store_is_verified_once_by_each_oracle(loop, y, store):
    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    first, second, n_calls = Oracle(loop(), store=store), Oracle(loop(), store=store), []
    for oracle in (first, first, second):
        before = oracle.n_calls
        assert len(oracle.sample(y[:2], **ARGUMENTS)) == 2
        n_calls.append(oracle.n_calls - before)
    assert n_calls == [4, 0, 4]


def test_a_store_says_how_far_it_is_and_what_it_would_cost_to_finish(
    loop: Any, y, store, calls_file
):
    class Expires(loop):
        def solve(self, y_hat, context):
            if self.n_calls() == 70:
                raise OSError("licence expired")
            return super().solve(y_hat, context)

    with pytest.raises(OracleError, match="licence expired"):
        Oracle(Expires(calls_file, seconds=0.001), store=store).sample(y, **ARGUMENTS)
    progress = Progress.read(store)
    assert (progress.n_answers, progress.n_missing, progress.n_failures) == (70, 56, 0)
    assert "56 calls missing, about" in str(progress)
    for place in (store, None):
        oracle = Oracle(loop(), store=place)
        oracle.sample(y, **ARGUMENTS)
        progress = oracle.stored
        assert (progress.n_answers, progress.n_missing, progress.n_failures) == (126, 0, 0)
    assert Progress.read(store).n_missing == 0
    assert "complete" in str(Progress.read(store))


# Damage ----------------------------------------------------------------------------------------


def test_a_damaged_row_is_noticed_and_only_its_answers_are_computed_again(filled, y, store, caplog):
    solver, run, expected = filled
    ids = [
        id_ for (id_,) in look(store, "SELECT DISTINCT id FROM answers WHERE length(answers) > 13")
    ]
    edit(store, "UPDATE answers SET answers = zeroblob(length(answers)) WHERE id = ?", ids[1])
    before = solver.n_calls()
    assert bits(run()) == expected
    assert solver.n_calls() - before == 20 + 11  # verified: this instance at its label only
    assert caplog.text.count("rows of answers in") == 1
    assert f"{store} are damaged. They are ignored and computed again." in caplog.text
    before = solver.n_calls()
    assert bits(run()) == expected
    assert solver.n_calls() - before == 12  # the verification


@pytest.mark.slow
def test_whatever_happens_to_a_file_no_number_is_wrong(vectorised, y, store):
    """A bit flipped anywhere, a piece cut out, zeroed or doubled: same bits, or an error."""
    expected = bits(Oracle(vectorised(), store=store).sample(y, **ARGUMENTS))
    content = store.read_bytes()
    rng = random.Random(0)
    n_errors = 0
    for number in range(150):
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
            samples = Oracle(vectorised(), store=path).sample(y, **ARGUMENTS)
            assert bits(samples) == expected
            assert Progress.read(path).n_answers >= 0
            assert samples.seconds >= 0
        except StoreError:
            n_errors += 1
    assert n_errors > 30


def test_damage_done_after_opening_is_an_error_not_a_number(filled, store):
    _, run, _ = filled
    samples = run()
    edit(store, "UPDATE answers SET answers = zeroblob(length(answers))")
    with pytest.raises(StoreError, match=r"missing or damaged. Call `sample` again"):
        samples[0]


def test_a_store_that_was_removed_while_in_use_is_an_error_and_not_made_anew(loop, y, store):
    samples = Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    samples.store.close()
    for path in store.parent.glob("store.db*"):
        path.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        samples[0]
    assert not store.exists()


@pytest.mark.parametrize("key", ["version", "label_scale", "problem"])
def test_a_header_that_lacks_something_is_a_clear_error(loop, y, store, key):
    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    edit(store, "DELETE FROM header WHERE key = ?", key)
    with pytest.raises(StoreError, match=r"header of .* is damaged.* Remove it and sample again"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)


def test_a_header_of_another_version_is_refused(loop, y, store):
    Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    edit(store, "UPDATE header SET value = 99 WHERE key = 'version'")
    with pytest.raises(StoreError, match="format version 99, this version of lodl reads 5"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)


# Places ----------------------------------------------------------------------------------------


def sidecars(store):
    return sorted(path.name for path in store.parent.glob(f"{store.name}-*"))


def test_an_empty_file_a_symlink_and_a_long_name_will_do(loop, y, tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("empty", "link", 240 * "n", "deep/er", "with space?&#%20.db", "\udcff.db"):
        Oracle(loop(), store=tmp_path / name).sample(y, **ARGUMENTS)
        assert Oracle(loop(), store=tmp_path / name).sample(y, **ARGUMENTS).n_failures == 0
        assert (tmp_path / name).stat().st_size > 1000


def test_a_relative_path_does_not_move_with_the_working_folder(loop: Any, y, tmp_path, monkeypatch):
    class Wanders(loop):
        def solve(self, y_hat, context):
            os.chdir("/")
            return super().solve(y_hat, context)

    monkeypatch.chdir(tmp_path)
    samples = Oracle(Wanders(), store="store.db").sample(y, **ARGUMENTS)
    assert Path.cwd() == Path("/")
    assert (tmp_path / "store.db").is_file()
    assert samples[0].regret.shape == (K,)


def test_the_file_alone_is_as_good_when_it_is_copied_while_in_use(loop, y, tmp_path, store):
    original = Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    shutil.copy(store, tmp_path / "copy.db")
    copy = Oracle(loop(), store=tmp_path / "copy.db").sample(y, **ARGUMENTS)
    assert bits(copy) == bits(original)
    assert copy.seconds == original.seconds > 0


def test_no_other_file_is_left_when_nobody_uses_the_store_any_more(loop, y, store):
    samples = Oracle(loop(), store=store).sample(y, **ARGUMENTS)
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
    expected = bits(Oracle(loop()).sample(y, **kwargs))
    assert bits(Oracle(loop(), store=store).sample(y[:3], **kwargs)) == expected[:3]
    assert bits(Oracle(loop(), store=store).sample(y, **kwargs)) == expected
    assert sidecars(store) == ["store.db-shm"]


def test_a_store_moved_to_a_file_system_without_logs_will_do(loop, y, store, no_logs):
    expected = bits(Oracle(loop(), store=store).sample(y[:3], **ARGUMENTS))
    assert look(store, "PRAGMA journal_mode") == [("wal",)]
    no_logs()
    assert bits(Oracle(loop(), store=store).sample(y[:3], **ARGUMENTS)) == expected
    assert bits(Oracle(loop(), store=store).sample(y, **ARGUMENTS))[:3] == expected


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


@pytest.mark.slow
def test_a_complete_store_on_a_read_only_medium_is_read_without_writing(mounted):
    folder, run = mounted
    done = run("size=16m", "read_only", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["same", "StoreError: read-only", "only the store"]


@pytest.mark.slow
def test_a_log_on_a_read_only_medium_is_an_error_that_says_what_to_copy(mounted):
    folder, run = mounted
    done = run("size=16m", "read_only_log", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["StoreError: copy", "same"]


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_what_fits_is_kept(mounted):
    folder, run = mounted
    done = run("size=256k", "full", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["StoreError: no space", "ok", "same", "fewer"]


# Several processes and threads -----------------------------------------------------------------


def test_of_two_that_create_a_store_the_second_finds_the_first(store):
    first = _store.Store(store, np.ones(3))
    second = _store.Store(store, np.full(3, 2.0))
    assert np.array_equal(first.label_scale, second.label_scale)


def test_a_store_that_another_process_locks_is_an_error_that_says_so(loop, y, store, monkeypatch):
    monkeypatch.setattr("lodl.oracle._database._PATIENCE", 0.05)
    Oracle(loop(), store=store).sample(y[:3], **ARGUMENTS)
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"cannot be written to .*store.db: database is locked"):
        Oracle(loop(), store=store).sample(y, **ARGUMENTS)
    other.execute("ROLLBACK")
    other.execute("PRAGMA journal_mode = delete")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match=r"is locked: another process .* Try again later"):
        Progress.read(store)
    other.close()
    assert len(Oracle(loop(), store=store).sample(y, **ARGUMENTS)) == 6


def test_rows_that_another_thread_adds_are_found_whole_or_not_at_all():
    before, ids = sys.getswitchinterval(), [bytes([number]) for number in range(1, 201)]
    answers = np.zeros((20, 1), _store.ANSWER)
    sys.setswitchinterval(1e-6)
    try:
        for trial in range(60):
            index, rng = _store._Index(), np.random.default_rng(trial)
            blocks = [
                _store.Block(rng.permutation(ids)[:20].tolist(), 0, answers, np.empty((0, 2)), {})
                for _ in range(40)
            ]
            adding = threading.Thread(target=lambda: [*map(index.add, blocks)])  # noqa: B023
            adding.start()
            while adding.is_alive():
                for block, rows, places in index.find(ids):
                    assert [block.ids[row] for row in rows] == [ids[place] for place in places]
            adding.join()
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "memory"])
def test_two_threads_that_share_an_oracle_agree(loop, store, is_file):
    y = np.random.default_rng(0).normal(size=(40, 5))
    expected = bits(Oracle(loop()).sample(y, **ARGUMENTS))
    oracle = Oracle(loop(), store=store if is_file else None)
    oracle.sample(y, n_samples=1)
    scale = AllPerturbed(y.std(axis=0))
    expected = bits(Oracle(loop()).sample(y, scale, K))
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_store_that_is_open_can_be_used_on_both_sides_of_a_fork(store, kind):
    command = [sys.executable, "-W", "error", SCRIPT, f"fork_{kind}", store]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["same", "same", "same"]
    if kind == "file":
        assert look(store, "PRAGMA integrity_check") == [("ok",)]
        assert sidecars(store) == []
