"""Oracles that fail, under both policies."""

import signal
from typing import Any

import numpy as np
import pytest

from lodl.errors import OracleError, ProblemError
from lodl.oracle import Oracle, _run
from lodl.problems import Problem, problem
from lodl.samplers import AllPerturbed

pytestmark = pytest.mark.slow

N, K = 10, 200


def make_classes():
    class Flaky(Problem):
        """Fails by the point: raises on 5 %, NaN on 1 %, the wrong shape once."""

        sense = "max"

        def __init__(self, odd_one=None):
            self.odd_one = odd_one

        def solve(self, y_hat, context):
            if share(y_hat) < 0.05:
                raise ArithmeticError(f"no solution for {y_hat[0]:.3f}")
            return y_hat

        def objective(self, z, y, context):
            if 0.05 <= share(z) < 0.06:
                return np.nan
            if self.odd_one is not None and z[0] == self.odd_one:
                return np.zeros(3)
            return float(y[np.argmax(z)])

    class Vectorised(Flaky):
        def solve_many(self, y_hats, context):
            return np.stack([self.solve(y_hat, context) for y_hat in y_hats])

    def share(y_hat):
        """A number in [0, 1) that looks random but belongs to the point."""
        return float(np.abs(y_hat[0] * 1e6) % 1)

    return {"loop": Flaky, "vectorised": Vectorised}, share


CLASSES, share = make_classes()
Flaky: Any = CLASSES["loop"]


@pytest.fixture
def y():
    # Labels themselves do not fail: their share is a half.
    return np.round(np.random.default_rng(0).normal(size=(N, 4)), 3) + 5e-7


@pytest.fixture(params=["loop", "vectorised"])
def flaky(request, y):
    """The problem, and for each point whether and how it must fail."""
    points = draw_all(y)
    shares = np.abs(points[..., 0] * 1e6) % 1
    odd = tuple(np.argwhere(shares > 0.5)[17])
    kinds = np.select([shares < 0.05, shares < 0.06], ["raised", "non_finite"], "ok").astype("U12")
    kinds[odd] = "wrong_shape"
    return CLASSES[request.param](float(points[(*odd, 0)])), kinds


def draw_all(y):
    plain = problem(lambda y_hat: y_hat, lambda z, y: 0.0, sense="max")
    samples = Oracle(plain).sample(y, AllPerturbed(), K)
    return np.stack([answers.y_hat for answers in samples])


def failing_at(label, error):
    """A problem that fails at one label and is plain elsewhere."""

    class NoOptimum(Flaky):
        def solve(self, y_hat, context):
            if np.array_equal(y_hat, label):
                raise error
            return y_hat

        def objective(self, z, y, context):
            return float(y[np.argmax(z)])

    return NoOptimum()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_skip_leaves_out_exactly_the_failing_samples(flaky, y, n_jobs, tmp_path, caplog):
    solver, kinds = flaky
    kwargs = {"sampler": AllPerturbed(), "n_samples": K}
    store = tmp_path / "store"
    samples = Oracle(solver, n_jobs=n_jobs, store=store, on_failure="skip").sample(y, **kwargs)
    points = draw_all(y)
    for i, answers in enumerate(samples):
        ok = kinds[i] == "ok"
        assert np.array_equal(answers.y_hat, points[i][ok])
        expected = y[i].max() - y[i][points[i][ok].argmax(axis=1)]
        assert np.array_equal(answers.regret, expected)
    assert samples.n_failures == (kinds != "ok").sum()
    assert samples.n_calls == N * (K + 1)
    assert set(samples.first_failures) == {"raised", "non_finite", "wrong_shape"}
    assert "ArithmeticError: no solution for" in samples.first_failures["raised"]
    assert "the objective is nan" in samples.first_failures["non_finite"]
    assert "one number per decision, got shape (3,)" in samples.first_failures["wrong_shape"]
    assert f"{samples.n_failures} of {N * K} samples failed" in caplog.text
    assert 'To try them again, use on_failure="raise" or another store.' in caplog.text
    stored = Oracle(solver, store=store, on_failure="skip").sample(y, **kwargs)
    assert stored.first_failures == samples.first_failures
    assert stored.n_failures == samples.n_failures
    others = stored.select(~(kinds == "wrong_shape").any(axis=1))
    assert set(others.first_failures) == {"raised", "non_finite"}
    assert ".." not in caplog.text


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_raise_names_instance_and_sample_and_chains_the_cause(flaky, y, n_jobs):
    solver, kinds = flaky
    with pytest.raises(OracleError, match=r"failed at instance \d+, sample \d+: ") as caught:
        Oracle(solver, n_jobs=n_jobs).sample(y, AllPerturbed(), K)
    words = str(caught.value).replace(",", "").replace(":", "").split()
    instance, number = (int(words[words.index(word) + 1]) for word in ("instance", "sample"))
    kind = kinds[instance, number]
    assert kind != "ok"
    cause = caught.value.__cause__
    if kind == "raised":
        assert isinstance(cause, ArithmeticError)
        notes = "".join(getattr(cause, "__notes__", []))
        assert n_jobs == 1 or "in solve" in notes  # the worker's traceback, as text


def test_raise_keeps_what_is_done_and_tries_the_failed_call_again(
    loop: Any, y, tmp_path, calls_file
):
    class Expires(loop):
        def solve(self, y_hat, context):
            if self.n_calls() == 500:
                self.count(1)
                raise OSError("licence expired")
            return super().solve(y_hat, context)

    solver = Expires(calls_file)
    kwargs = {"sampler": AllPerturbed(), "n_samples": 100}
    with pytest.raises(OracleError, match=r"licence expired.*What was done is kept") as caught:
        Oracle(solver, store=tmp_path / "store").sample(y, **kwargs)
    assert str(tmp_path / "store") in str(caught.value)
    before = solver.n_calls()
    samples = Oracle(solver, store=tmp_path / "store").sample(y, **kwargs)
    assert (samples.n_failures, samples.first_failures) == (0, {})
    assert solver.n_calls() - before < N * 101 - 400
    for a, b in zip(samples, Oracle(loop()).sample(y, **kwargs), strict=True):
        assert np.array_equal(a.regret, b.regret)


def test_samples_skipped_once_stay_skipped_but_raise_tries_them_again(flaky, y, tmp_path):
    solver, kinds = flaky
    options = {"store": tmp_path / "store"}
    kwargs = {"sampler": AllPerturbed(), "n_samples": K}
    first = Oracle(solver, on_failure="skip", **options).sample(y, **kwargs)
    again = Oracle(solver, on_failure="skip", **options).sample(y, **kwargs)
    assert again.n_failures == first.n_failures == (kinds != "ok").sum()
    assert again.seconds == first.seconds  # nothing was called
    with pytest.raises(OracleError, match="The solver failed at instance 0, sample"):
        Oracle(solver, on_failure="raise", **options).sample(y, **kwargs)


def test_failures_in_a_shared_store_are_told_by_the_instances_of_this_run(flaky, y, tmp_path):
    solver, _ = flaky
    options: Any = {"on_failure": "skip", "max_failure_rate": 1.0}
    kwargs = {"sampler": AllPerturbed(1.0), "n_samples": K}
    everything = Oracle(solver, store=tmp_path / "store", **options).sample(y, **kwargs)
    rows = [7, 3]
    alone = Oracle(solver, **options).sample(y[rows], **kwargs).first_failures
    assert alone != everything.first_failures
    assert (
        Oracle(solver, store=tmp_path / "store", **options).sample(y[rows], **kwargs).first_failures
        == alone
    )
    assert everything.select(rows).first_failures == alone


def test_too_many_failures_are_an_error(flaky, y, tmp_path):
    solver, _ = flaky
    options = {"store": tmp_path / "store"}
    kwargs = {"sampler": AllPerturbed(), "n_samples": K}
    for _ in range(2):  # the second time from the store alone
        with pytest.raises(OracleError, match=r"\d+ of \d+ samples failed.*max_failure_rate=0\.02"):
            Oracle(solver, on_failure="skip", max_failure_rate=0.02, **options).sample(y, **kwargs)
    samples = Oracle(solver, on_failure="skip", max_failure_rate=0.1, **options).sample(y, **kwargs)
    assert samples.n_failures > 0.02 * N * K


def test_an_oracle_that_always_fails_is_given_up_long_before_the_end(loop: Any, y, calls_file):
    class Down(loop):
        def solve(self, y_hat, context):
            super().solve(y_hat, context)
            if self.n_calls() > 5:
                raise OSError("no licence")
            return y_hat

    solver = Down(calls_file)
    with pytest.raises(OracleError, match=r"labels failed .* samples failed.*OSError: no licence"):
        Oracle(solver, on_failure="skip").sample(y, AllPerturbed(), 1000)
    assert solver.n_calls() < N * 1000 / 2


def test_a_failure_at_the_label_fails_the_whole_instance(y, tmp_path):
    solver = failing_at(y[3], ValueError("cannot"))
    kwargs = {"sampler": AllPerturbed(), "n_samples": 20}
    with pytest.raises(OracleError, match="instance 3, the label itself: ValueError: cannot"):
        Oracle(solver).sample(y, **kwargs)
    for n_samples in (20, 40):  # growing does not count it twice
        options = {"store": tmp_path / "store"}
        kwargs = {"sampler": AllPerturbed(), "n_samples": n_samples}
        samples = Oracle(solver, on_failure="skip", max_failure_rate=1 / N, **options).sample(
            y, **kwargs
        )
        assert len(samples[3].regret) == 0
        assert samples[3].y_hat.shape == (0, 4)
        assert np.isnan(samples.optimum[3])
        assert samples.n_failures == n_samples
        assert samples.n_calls == N + (N - 1) * n_samples
        assert len(samples[2].regret) == n_samples


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt("mine"), GeneratorExit(), StopIteration(7)]
)
def test_whatever_a_solver_raises_is_a_failure_that_names_the_instance(y, error, n_jobs):
    kind = type(error).__name__
    options = {"n_jobs": n_jobs}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5}
    with pytest.raises(OracleError, match=f"instance 3, the label itself: {kind}"):
        Oracle(failing_at(y[3], error), **options).sample(y, **kwargs)
    samples = Oracle(failing_at(y[3], error), on_failure="skip", **options).sample(y, **kwargs)
    assert samples.n_failures == 5
    assert kind in samples.first_failures["raised"]


def test_an_interrupt_of_the_solvers_own_is_a_failure_where_ctrl_c_is_ignored(y):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a shell
    try:
        with pytest.raises(OracleError, match="instance 3, the label itself: KeyboardInterrupt"):
            Oracle(failing_at(y[3], KeyboardInterrupt())).sample(y, AllPerturbed(), 5)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_solver_that_returns_none_is_told_so(y, vectorised):
    base: Any = CLASSES["vectorised" if vectorised else "loop"]

    class Forgets(base):
        def solve(self, y_hat, context):
            pass

        def solve_many(self, y_hats, context):
            pass

        is_vectorised = vectorised

    with pytest.raises(OracleError, match=r"`solve(_many)?` returned None: is a `return` missing"):
        Oracle(Forgets()).sample(y, AllPerturbed(), 5)


def test_regrets_that_overflow_are_failures(y):
    """Each objective is finite; their difference is not."""
    huge = problem(
        lambda y_hat: y_hat,
        lambda z, y: -1.5e308 if np.array_equal(z, y) else 1.5e308,
        sense="min",
    )
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5}
    with pytest.raises(OracleError, match="expected a number that is not too large"):
        Oracle(huge).sample(y, **kwargs)
    samples = Oracle(huge, on_failure="skip", max_failure_rate=1.0).sample(y, **kwargs)
    assert samples.n_failures == N * 5
    assert all(len(answers.regret) == 0 for answers in samples)


def test_an_exception_that_cannot_be_pickled_still_tells_its_story(y):
    class StubbornError(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")

    class Raises(Flaky):
        def solve(self, y_hat, context):
            raise StubbornError("one", "two")

    with pytest.raises(OracleError, match="StubbornError: one and two") as caught:
        Oracle(Raises(), n_jobs=2).sample(y, AllPerturbed(), 5)
    assert "in solve" in str(caught.value.__cause__)


def test_a_solver_that_finds_no_optimum_is_not_taken_for_a_wrong_shape(y):
    class NoOptimum(Flaky):
        def solve(self, y_hat, context):
            if share(y_hat) < 0.05:
                raise ProblemError("found no optimum")
            return y_hat

    samples = Oracle(NoOptimum(), on_failure="skip", max_failure_rate=0.2).sample(
        y, AllPerturbed(), K
    )
    assert "found no optimum" in samples.first_failures["raised"]
    assert "wrong_shape" not in samples.first_failures


@pytest.mark.parametrize("kind", CLASSES)
def test_a_point_that_is_not_finite_after_project_is_a_failure_of_its_own_kind(y, kind):
    base: Any = CLASSES[kind]

    class Diverges(base):
        def project(self, y_hats):
            return np.where(y_hats > 1.5, np.nan, y_hats)

        def solve(self, y_hat, context):
            return y_hat

        def objective(self, z, y, context):
            return 0.0

    kwargs = {"sampler": AllPerturbed(), "n_samples": K}
    samples = Oracle(Diverges(), on_failure="skip", max_failure_rate=1).sample(y, **kwargs)
    assert samples.n_failures == (draw_all(y) > 1.5).any(axis=2).sum() > 0
    assert set(samples.first_failures) == {"bad_point"}
    assert np.isfinite(np.concatenate([answers.y_hat for answers in samples])).all()
    with pytest.raises(OracleError, match=r"the point is not finite\. .*`project`"):
        Oracle(Diverges()).sample(y, **kwargs)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", CLASSES)
def test_a_task_that_takes_too_long_returns_what_it_has_and_the_rest_is_done_later(
    y, kind, n_jobs, monkeypatch
):
    solver, y = CLASSES[kind](), y[:3]
    options = {"on_failure": "skip"}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 60}
    expected = Oracle(solver, **options).sample(y, **kwargs)
    monkeypatch.setattr(_run, "_TASK_SECONDS", 1e-9)  # a call or a batch per task
    samples = Oracle(solver, n_jobs=n_jobs, **options).sample(y, **kwargs)
    assert samples.n_failures == expected.n_failures > 0
    for a, b in zip(samples, expected, strict=True):
        assert np.array_equal(a.regret, b.regret)


def test_what_is_kept_is_told_only_with_a_store(flaky, y, tmp_path):
    solver, _ = flaky
    kwargs = {"sampler": AllPerturbed(), "n_samples": K}
    for change in ({}, {"on_failure": "skip", "max_failure_rate": 0.0}):
        with pytest.raises(OracleError, match=r"Nothing is kept; with `store=`"):
            Oracle(solver, **change).sample(y, **kwargs)
        with pytest.raises(OracleError, match=rf"What was done is kept in .*{tmp_path}"):
            Oracle(solver, store=tmp_path / "store", **change).sample(y, **kwargs)


def test_a_projection_that_fails_is_a_failure_of_the_samples(y):
    class BadProjection(Flaky):
        def project(self, y_hats):
            if y_hats[0, 0] > 50:
                raise ValueError("cannot project")
            return y_hats

        def solve(self, y_hat, context):
            return y_hat

        def objective(self, z, y, context):
            return 0.0

    far = y + 20.0 * np.arange(N)[:, np.newaxis]
    with pytest.raises(OracleError, match="ValueError: cannot project"):
        Oracle(BadProjection()).sample(far, AllPerturbed(0.1), 5)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_objective_that_is_not_finite_at_the_label_costs_one_call(
    loop: Any, y, calls_file, n_jobs
):
    class Broken(loop):
        def objective(self, z, y, context):
            return np.inf

    Broken.sense = "max"
    solver = Broken(calls_file)
    with pytest.raises(OracleError, match="the label itself: the objective is inf, expected a fin"):
        Oracle(solver, n_jobs=n_jobs).sample(y[:1], AllPerturbed(), 100)
    assert solver.n_calls() == 1


def test_a_question_in_a_message_ends_the_sentence(y):
    class Forgets(Flaky):
        def solve(self, y_hat, context):
            return None if share(y_hat) < 0.05 else y_hat

    kwargs = {"sampler": AllPerturbed(), "n_samples": K}
    with pytest.raises(OracleError, match=r"is there no solution\? Nothing is kept"):
        Oracle(Forgets()).sample(y, **kwargs)
    with pytest.raises(OracleError, match=r"is there no solution\? Nothing is kept"):
        Oracle(Forgets(), on_failure="skip", max_failure_rate=0.0).sample(y, **kwargs)
