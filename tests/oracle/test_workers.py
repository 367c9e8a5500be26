"""Executors: the same bits on all of them, and calls that end, stop or hold up their worker."""

import faulthandler
import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import cloudpickle
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster

from lodl.errors import OracleError
from lodl.oracle import Oracle, _run
from lodl.oracle._failures import Options
from lodl.oracle._workers import Dask, choose_workers
from lodl.problems import Problem, problem
from lodl.samplers import AllPerturbed, AtPredictions, TwoPerturbed

pytestmark = [pytest.mark.slow, pytest.mark.alone]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import it
N_SAMPLES = 530  # not a whole number of blocks


def bits(samples):
    return [answers.regret.tobytes() for answers in samples]


# Same bits -------------------------------------------------------------------------------------


@pytest.fixture(params=["loky", "dask", "threads", "processes"])
def anywhere(request):
    """Arguments that say who makes the calls."""
    match request.param:
        case "loky":
            yield {"n_jobs": 2}
        case "dask":
            yield {"executor": request.getfixturevalue("client")}
        case "threads":
            with ThreadPoolExecutor(3) as executor:
                yield {"executor": executor}
        case "processes":
            with ProcessPoolExecutor(2) as executor:
                yield {"executor": executor}


def test_with_one_seed_the_bits_are_the_same_everywhere(problem_class, y, anywhere, tmp_path):
    y = y[:3]
    kwargs = {"sampler": TwoPerturbed(), "n_samples": N_SAMPLES, "random_state": 5, "slopes": True}
    expected = Oracle(problem_class()).sample(y, **kwargs)
    samples = Oracle(problem_class(), store=tmp_path / "store", **anywhere).sample(y, **kwargs)
    assert bits(samples) == bits(expected)
    for a, b in zip(samples, expected, strict=True):
        assert np.array_equal(a.slope[a.decision], b.slope[b.decision])


def test_a_dask_client_in_scope_is_used(loop: Any, y, client):
    class Where(loop):
        def objective(self, z, y, context):
            return float(os.getpid())

    with client.as_current():
        samples = Oracle(Where()).sample(y, AllPerturbed(), 1)
    assert set(samples.optimum) <= set(client.run(os.getpid).values())


def test_the_problem_of_this_test_has_bits_that_depend_on_the_batch(vectorised):
    """Otherwise the tests above would show nothing about whole blocks."""
    y_hats = np.random.default_rng(0).normal(size=(100, 5))
    whole = vectorised().solve_many(y_hats, None)
    singles = np.concatenate([vectorised().solve_many(y_hats[k : k + 1], None) for k in range(100)])
    assert not np.array_equal(whole, singles)


def test_a_problem_travels_once_and_a_solver_is_set_up_once_per_worker(y, tmp_path, monkeypatch):
    path = tmp_path / "set_up"
    monkeypatch.setattr(_run, "_TASK_SECONDS", 0.01)  # many tasks

    class SetsUp(Problem):
        """Its solver cannot be pickled, and each time it is set up is noted down."""

        sense = "max"
        solver: Any = None

        def __getstate__(self):
            with path.open("a") as file:
                file.write("pickled ")
            return {}

        def solve(self, y_hat, context):
            if self.solver is None:
                with path.open("a") as file:
                    file.write(f"{os.getpid()} ")
                self.solver = np.argmax
            return self.solver(y_hat)

        def objective(self, z, y, context):
            return y[z]

    Oracle(SetsUp(), n_jobs=2).sample(y, AllPerturbed(), 5000)
    words = path.read_text().split()
    assert words.count("pickled") == 1
    assert len(words) == len(set(words)) <= 3


def test_what_cannot_be_sent_to_workers_is_an_error(loop, y):
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5}
    problem = loop()
    problem.lock = threading.Lock()
    with pytest.raises(OracleError, match=r"problem cannot be sent to a worker.*def __getstate__"):
        Oracle(problem, n_jobs=2).sample(y, **kwargs)
    Oracle(problem, n_jobs=1).sample(y, **kwargs)


def stubborn():
    """An object that can be pickled but not be unpickled elsewhere."""
    parent = os.getpid()

    def arrive():
        if os.getpid() != parent:
            raise RuntimeError("cannot be unpickled")
        return 1.0

    class Stubborn:
        def __reduce__(self):
            return arrive, ()

    return Stubborn()


@pytest.mark.parametrize(("where", "on_failure"), [("problem", "raise"), ("context", "skip")])
def test_what_cannot_be_unpickled_on_a_worker_is_an_error(loop: Any, y, client, where, on_failure):
    class Plain(loop):
        def objective(self, z, y, context):
            return super().objective(z, y, None)

    solver, kwargs = Plain(), {"sampler": AllPerturbed(), "n_samples": 3}
    if where == "problem":
        solver.part = stubborn()
    else:
        y = Oracle(solver).instances(y, [stubborn() for _ in y], range(6))
    for workers in ({"n_jobs": 2}, {"executor": client}):
        began = time.monotonic()
        with pytest.raises(OracleError, match=r"could not do a task.*cannot be unpickled"):
            Oracle(solver, on_failure=on_failure, **workers).sample(y, **kwargs)
        assert time.monotonic() - began < 10


# Calls that end their worker -------------------------------------------------------------------


def poisonous(act):
    """A problem with one call that does something terrible, and an innocent twin of it."""

    class Innocent(Problem):
        sense = "min"

        def solve(self, y_hat, context):
            return y_hat

        def objective(self, z, y, context):
            return float(((z - y) ** 2).sum())

    class Poisonous(Innocent):
        def solve(self, y_hat, context):
            if context["poison"] is not None and np.array_equal(y_hat, context["poison"]):
                act()
            return y_hat

    return Poisonous(), Innocent()


def segfault():
    import ctypes

    ctypes.string_at(0)


def leave():
    os._exit(3)


def sleep():
    time.sleep(1000)


def sleep_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGTERM, signal.SIGINT})
    time.sleep(1000)


def hold_everything():
    """Sleep without a moment for any other thread of the process."""
    import ctypes

    ctypes.PyDLL(None).sleep(1000)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def quick_to_give_up(monkeypatch, slack=0.3, arrival=1.0):
    """Give tasks little time beyond that of their calls, more where others keep the cores busy."""
    busy = max(os.getloadavg()[0] / os.cpu_count(), 1.0)
    monkeypatch.setattr(_run, "_TASK_SECONDS", 0.1)
    monkeypatch.setattr(_run, "_SLACK", slack * busy)
    monkeypatch.setattr(_run, "_ARRIVAL", arrival)


def check_poison(y, act, status, message, kinds=("raise", "skip"), **workers):
    """Check that all but one poisonous call come out as if it were not there."""
    poisoned, innocent = poisonous(act)
    kwargs, made = {"sampler": AllPerturbed(), "n_samples": 3}, Oracle(innocent).instances
    expected = Oracle(innocent).sample(made(y[:3], [{"poison": None}] * 3, range(3)), **kwargs)
    context = [{"poison": None}, {"poison": expected[1].y_hat[2]}, {"poison": None}]
    instances = made(y[:3], context, range(3))
    if "skip" in kinds:
        skip = {"on_failure": "skip", "max_failure_rate": 0.2}
        samples = Oracle(poisoned, **skip, **workers).sample(instances, **kwargs)
        assert samples.n_failures == 1
        assert samples.first_failures == {status: f"instance 1, sample 2: {message}"}
        assert bits(samples)[::2] == bits(expected)[::2]
        assert np.array_equal(samples[1].regret, expected[1].regret[:2])
    if "raise" in kinds:
        with pytest.raises(OracleError, match=f"failed at instance 1, sample 2: {message}"):
            Oracle(poisoned, **workers).sample(instances, **kwargs)


DIED = ("died", "the call ended its worker process")
LATE = ("timed_out", "the call took longer than 0.2 seconds")


def test_a_call_that_ends_its_process_is_isolated_and_named(y):
    check_poison(y, segfault, *DIED, n_jobs=2, kinds=["skip"])


@pytest.mark.parametrize(("act", "kind"), [(os.abort, "skip"), (leave, "raise")])
def test_with_a_timeout_the_parent_survives_even_one_worker(y, act, kind):
    check_poison(y, act, *DIED, n_jobs=1, timeout=30, kinds=[kind])


def test_on_dask_a_call_that_ends_its_process_is_isolated_and_named(y, client):
    check_poison(y, leave, *DIED, executor=client, kinds=["skip"])


def test_an_executor_that_breaks_is_an_error_and_nobody_is_blamed(y, tmp_path):
    poisoned, innocent = poisonous(leave)
    type(innocent).__name__ = type(poisoned).__name__  # the store is of this problem
    options = {"store": tmp_path / "store"}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 3}
    kwargs["context"] = [{"poison": None}] * 5 + [{"poison": y[5]}]
    for on_failure in ("raise", "skip"):
        with (
            ProcessPoolExecutor(2) as executor,
            pytest.raises(OracleError, match=r"ProcessPoolExecutor.*cannot be replaced.*`n_jobs`"),
        ):
            Oracle(poisoned, executor=executor, on_failure=on_failure, **options).sample(
                y, **kwargs
            )
    assert Oracle(innocent, **options).sample(y, **kwargs).n_failures == 0


def once(path):
    """Whether this is the first call, in any process."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@pytest.mark.parametrize("where", ["loky", "dask"])
def test_a_worker_that_dies_once_costs_nothing_but_time(
    loop: Any, y, tmp_path, calls_file, where, client
):
    class DiesOnce(loop):
        def solve(self, y_hat, context):
            if self.n_calls() > 100 and once(tmp_path / "marker"):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().solve(y_hat, context)

    kwargs = {"sampler": AllPerturbed(), "n_samples": 100}
    workers = {"executor": client} if where == "dask" else {"n_jobs": 2}
    samples = Oracle(DiesOnce(calls_file, seconds=0.001), **workers).sample(y, **kwargs)
    assert (tmp_path / "marker").exists()
    assert bits(samples) == bits(Oracle(loop()).sample(y, **kwargs))


def test_no_call_is_blamed_for_the_death_of_another(loop: Any, y, tmp_path):
    """Slow calls: of two that are out when the pool breaks, one is innocent."""

    class DiesOnce(loop):
        def solve(self, y_hat, context):
            time.sleep(0.1)
            if context["price"] == 1 and once(tmp_path / "marker"):
                os._exit(1)
            return y_hat

    options = {"n_jobs": 2, "on_failure": "skip"}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 1}
    samples = Oracle(DiesOnce(), **options).sample(
        y[:2], context=[{"price": 1}, {"price": 2}], **kwargs
    )
    assert (tmp_path / "marker").exists()
    assert samples.n_failures == 0


@pytest.mark.usefixtures("foreground")
def test_ctrl_c_lets_go_of_a_cluster_without_killing_its_workers(loop, y, client, calls_file):
    solver = loop(calls_file, seconds=0.002)

    def press():
        while solver.n_calls() < 100:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    options = {"executor": client}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 1000}
    before = client.run(os.getpid)
    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match=r"after \d+ of 6006 calls\. Nothing is kept"):
        Oracle(solver, **options).sample(y, **kwargs)
    thread.join()
    assert client.run(os.getpid) == before


# Calls that hold up their worker ---------------------------------------------------------------


def test_a_call_that_sleeps_is_given_up(y, monkeypatch):
    check_poison(y, sleep, *LATE, n_jobs=2, timeout=np.float32(0.2))


@pytest.mark.parametrize("act", [sleep_deaf, stop])
def test_a_call_that_heeds_no_signal_and_a_stopped_worker_are_given_up(y, act, monkeypatch):
    quick_to_give_up(monkeypatch)
    check_poison(y, act, *LATE, n_jobs=2, timeout=0.2, kinds=["skip" if act is stop else "raise"])


@pytest.mark.parametrize("act", [hold_everything, stop])
def test_on_dask_a_call_that_hangs_is_given_up(y, act, client, monkeypatch):
    quick_to_give_up(monkeypatch, slack=1.0)  # a busy machine takes time to send a task
    kind = "raise" if act is stop else "skip"
    check_poison(y, act, *LATE, executor=client, timeout=0.2, kinds=[kind])


class Slow:
    """An object that takes its time to arrive in another process."""

    def __reduce__(self):
        return partial(slowly, os.getpid()), ()


def slowly(parent):
    if os.getpid() != parent:
        time.sleep(1.2)
    return 1.0


@pytest.mark.parametrize("what", ["problem", "context"])
def test_a_slow_arrival_is_not_taken_for_a_slow_call(loop: Any, y, what, monkeypatch):
    class Plain(loop):
        def objective(self, z, y, context):
            return super().objective(z, y, None)

    quick_to_give_up(monkeypatch, arrival=5.0)
    slow, context, kwargs = Plain(), None, {"sampler": AllPerturbed(), "n_samples": 3}
    if what == "problem":
        slow.part = Slow()
    else:
        context = [Slow(), Slow()]
    oracle = Oracle(slow, n_jobs=2, timeout=0.2, on_failure="skip")
    samples = oracle.sample(oracle.instances(y[:2], context, range(2)), **kwargs)
    assert samples.n_failures == 0


@pytest.mark.parametrize("where", ["loky", "threads"])
def test_a_batch_may_take_as_long_as_its_calls(vectorised, y, where, monkeypatch):
    quick_to_give_up(monkeypatch)
    options = {"timeout": 0.2}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 20}
    with ThreadPoolExecutor(1) as executor:
        workers = {"n_jobs": 1} if where == "loky" else {"executor": executor}
        assert (
            Oracle(vectorised(seconds=0.05), **options, **workers)
            .sample(y[:2], **kwargs)
            .n_failures
            == 0
        )


def test_on_dask_nobody_is_killed_for_the_work_of_others(loop, y, client, monkeypatch):
    quick_to_give_up(monkeypatch)
    pids = client.run(os.getpid)
    others = [client.submit(time.sleep, 2.5, workers=[one], pure=False) for one in pids]
    options = {"timeout": 0.2, "on_failure": "skip"}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 3}
    with monkeypatch.context() as patch:
        patch.setattr(_run.Runner, "_warm_up", lambda *_: 0.0)  # it would wait for them
        assert Oracle(loop(), executor=client, **options).sample(y, **kwargs).n_failures == 0
    client.gather(others)
    assert client.run(os.getpid) == pids


@pytest.mark.dask
def test_an_adaptive_cluster_may_start_without_workers(loop, y):
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="50ms")
        samples = Oracle(loop(), executor=client).sample(y, AllPerturbed(), 3)
    assert samples.n_failures == 0


def test_a_dask_executor_is_its_client(loop, client):
    workers = choose_workers(loop(), None, client.get_executor(), Options(None, "raise", 0.1))
    assert isinstance(workers, Dask)
    assert workers.n_workers == 2


def test_an_interrupt_of_the_solvers_own_is_a_failure_on_any_executor(y):
    class Interrupts(Problem):
        sense = "min"

        def solve(self, y_hat, context):
            raise KeyboardInterrupt

        def objective(self, z, y, context):
            return 0.0

    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor,
        pytest.raises(OracleError, match="instance 0, the label itself: KeyboardInterrupt"),
    ):
        Oracle(Interrupts(), executor=executor).sample(y[:1], AllPerturbed(), 1)


def test_a_task_has_the_predictions_of_its_own_instances_only(loop):
    y, sizes = np.random.default_rng(0).normal(size=(200, 50)), []

    class Measures(ThreadPoolExecutor):
        def submit(self, function, *arguments):
            sizes.append(sum(len(one) for one in arguments if isinstance(one, bytes)))
            return super().submit(function, *arguments)

    with Measures(1) as executor:
        options = {"executor": executor}
        kwargs = {"sampler": AtPredictions(y + 0.1, 0.1, n_exact=0), "n_samples": 1}
        Oracle(loop(seconds=0.001), **options).sample(y, **kwargs)
    assert sizes[0] < y.nbytes / 2


def test_a_crash_is_told_by_its_call_and_not_by_a_dump(loop: Any, y):
    class Looks(loop):
        def objective(self, z, y, context):
            return float(faulthandler.is_enabled())

    samples = Oracle(Looks(), n_jobs=2).sample(y, AllPerturbed(), 1)
    assert not samples.optimum.any()


def test_an_executor_whose_call_hangs_is_an_error(y, monkeypatch):
    monkeypatch.setattr(_run, "_TASK_SECONDS", 0.1)
    monkeypatch.setattr(_run, "_SLACK", 0.3)
    poisoned, _ = poisonous(partial(time.sleep, 2))
    options = {"timeout": 0.2}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 1}
    kwargs["context"] = [{"poison": label} for label in y]
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(OracleError, match=r"workers of the ThreadPool.* cannot be replaced"),
    ):
        Oracle(poisoned, executor=executor, **options).sample(y, **kwargs)


def test_a_worker_stopped_from_outside_is_replaced(loop, y, calls_file, monkeypatch):
    quick_to_give_up(monkeypatch)
    solver = loop(calls_file, seconds=0.002)
    kwargs = {"sampler": AllPerturbed(), "n_samples": 100}

    def stop_one():
        while solver.n_calls() < 200:
            time.sleep(0.01)
        children = psutil.Process().children()
        max(children, key=lambda child: child.cpu_times().user).suspend()

    thread = threading.Thread(target=stop_one)
    thread.start()
    samples = Oracle(solver, n_jobs=2, timeout=0.5, on_failure="skip").sample(y, **kwargs)
    thread.join()
    assert set(samples.first_failures) <= {"timed_out"}
    assert samples.n_failures <= 1  # the call it was at
    for a, b in zip(samples, Oracle(loop()).sample(y, **kwargs), strict=True):
        assert set(a.regret) <= set(b.regret)


def test_a_closed_oracle_ends_its_workers_and_opens_them_again(y, tmp_path):
    pids, store = tmp_path / "pids", tmp_path / "store"

    def solve(y_hat):
        with open(pids, "a") as file:  # noqa: PTH123
            file.write(f"{os.getpid()}\n")
        return y_hat

    squares = problem(solve, lambda z, y: ((z - y) ** 2).sum(), sense="min")
    with Oracle(squares, n_jobs=2, store=store) as oracle:
        expected = bits(oracle.sample(y, AllPerturbed(), 3))
    workers = [
        psutil.Process(int(pid))
        for pid in set(pids.read_text().split())
        if psutil.pid_exists(int(pid))
    ]
    assert not psutil.wait_procs(workers, timeout=10)[1]
    assert oracle.stored.n_answers == Oracle(squares, store=store).stored.n_answers == 24
    assert bits(oracle.sample(y, AllPerturbed(), 3)) == expected
    oracle.close()
    oracle.close()
