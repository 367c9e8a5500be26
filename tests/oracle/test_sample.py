import io
import json
import logging
import re
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from lodl._threads import one_blas_thread
from lodl.domains import TopK
from lodl.errors import InvalidInputError, OracleError, ProblemError
from lodl.losses import DirectedWeightedMSE, Quadratic, WeightedMSE, fit
from lodl.oracle import Oracle, _run
from lodl.problems import LinearProblem, VectorisedProblem, problem
from lodl.samplers import AllPerturbed, AtPredictions, OnePerturbed, TwoPerturbed


def regrets(problem, y_hats, y, context=None):
    """Return the regrets of many predictions for one instance."""
    contexts = None if context is None else [context]
    return Oracle(problem).regret(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


SAMPLERS = [AllPerturbed(), OnePerturbed(0.5), TwoPerturbed(np.linspace(0.1, 1, 5))]


def pick(sense="max", **kwargs):
    return problem(lambda y_hat: int(y_hat.argmax()), lambda z, y: y[z], sense=sense, **kwargs)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_regrets_are_those_of_the_points_under_the_true_label(problem_class, y, sampler):
    context = [{"price": 1.0 + i} for i in range(len(y))]
    samples = Oracle(problem_class()).sample(y, sampler, 130, context=context)
    assert (samples.n_instances, samples.n_samples, samples.y.shape) == (6, 130, (6, 5))
    for i, answers in enumerate(samples):
        assert answers.y_hat.shape == (130, 5)
        expected = regrets(problem_class(), answers.y_hat, y[i], context[i])
        np.testing.assert_allclose(answers.regret, expected, atol=1e-12)


def test_points_are_in_the_valid_range(loop, y):
    samples = Oracle(loop()).sample(y, AllPerturbed(10.0), 50)
    y_hat = np.concatenate([answers.y_hat for answers in samples])
    assert y_hat.min() == -3
    assert y_hat.max() == 3


def test_around_predictions_still_scores_under_the_label(loop, y):
    y_hat = np.clip(y[::-1], -2, 2)
    samples = Oracle(loop()).sample(y, AtPredictions(y_hat, 1e-9, n_exact=0), 3)
    for i, answers in enumerate(samples):
        np.testing.assert_allclose(answers.y_hat, np.tile(y_hat[i], (3, 1)), atol=1e-6)
        expected = regrets(loop(), y_hat[i][np.newaxis], y[i])[0]
        np.testing.assert_allclose(answers.regret, expected, atol=1e-5)


def test_labels_of_any_shape(y):
    matrix = y.reshape(3, 2, 5)
    flat = problem(lambda y_hat: y_hat.argmax(), lambda z, y: y.flat[z], sense="max")
    samples = Oracle(flat).sample(matrix, AllPerturbed(), 20)
    assert samples[0].y_hat.shape == (20, 2, 5)
    for i, answers in enumerate(samples):
        chosen = matrix[i].ravel()[answers.y_hat.reshape(20, -1).argmax(axis=1)]
        assert np.array_equal(answers.regret, matrix[i].max() - chosen)


def test_every_call_is_made_once(problem_class, y, calls_file):
    solver = problem_class(calls_file)
    samples = Oracle(solver).sample(y, AllPerturbed(), 40)
    assert solver.n_calls() == samples.n_calls == 6 * 41
    assert samples.n_failures == 0
    assert samples.seconds > 0
    expected = [solver.objective(solver.solve(label, None), label, None) for label in y]
    np.testing.assert_allclose(samples.optimum, expected, rtol=1e-12)


def test_fewer_samples_are_a_prefix_and_need_no_call(problem_class, y):
    oracle = Oracle(problem_class())
    samples = oracle.sample(y, AllPerturbed(), 230)
    short = Oracle(problem_class()).sample(y, AllPerturbed(), 50)
    n_calls, head = oracle.n_calls, oracle.sample(y, AllPerturbed(), 50)
    assert oracle.n_calls == n_calls
    assert head.n_samples == 50
    assert head.n_calls == 6 * 51
    for i in range(6):
        assert np.array_equal(head[i].regret, short[i].regret)
        assert np.array_equal(head[i].y_hat, short[i].y_hat)
        assert np.array_equal(head[i].regret, samples[i].regret[:50])


@pytest.mark.parametrize("kept", [[4, 1], np.array([False, True, False, False, True, False])])
def test_a_selection_has_the_same_answers(loop, y, kept):
    samples = Oracle(loop()).sample(y, AtPredictions(y + 0.3, 0.5, n_exact=0), 30, slopes=True)
    selection, numbers = samples.select(kept), np.arange(6)[kept]
    assert np.array_equal(selection.y, y[numbers])
    for answers, number in zip(selection, numbers, strict=True):
        for name in ("y_hat", "regret", "decision", "slope"):
            assert np.array_equal(getattr(answers, name), getattr(samples[number], name))
    assert np.array_equal(selection.select([1])[0].y_hat, samples[numbers[1]].y_hat)
    assert selection.seconds == pytest.approx(samples.seconds / 3)


def test_an_empty_selection_is_refused(loop, y):
    samples = Oracle(loop()).sample(y, AllPerturbed(), 3)
    with pytest.raises(InvalidInputError, match="at least one instance"):
        samples.select([])
    with pytest.raises(IndexError, match="There are 6 instances, got index 6"):
        samples[6]
    with pytest.raises(InvalidInputError, match=r"one instance, got slice.*`samples.select"):
        samples[0:2]  # type: ignore[index]
    assert np.array_equal(samples[-1].regret, samples[5].regret)


def test_slopes_are_derivatives_of_the_extra_cost(problem_class, y):
    solver = problem_class()
    samples = Oracle(solver).sample(y, AllPerturbed(0.3), 60, slopes=True)
    assert samples.has_slopes
    for answers in samples:
        zs = [solver.solve(y_hat, None) for y_hat in (answers.y, *answers.y_hat)]
        above, below = (
            np.array(
                [
                    [solver.objective(z, answers.y + h, None) for h in sign * 1e-5 * np.eye(5)]
                    for z in zs
                ]
            )
            for sign in (1, -1)
        )
        by_hand = (above - below) / 2e-5
        found = answers.slope[answers.decision]
        np.testing.assert_allclose(found, by_hand[1:] - by_hand[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_slope_is_kept_once_per_distinct_decision(y, sense):
    class Best(LinearProblem):
        def __init__(self):
            self.sense = sense

        def solve(self, y_hat, context):
            return np.eye(5)[np.argmax(y_hat) if sense == "max" else np.argmin(y_hat)]

    sign = 1 if sense == "min" else -1
    samples = Oracle(Best()).sample(y, AllPerturbed(), 60, slopes=True)
    for answers in samples:
        assert len(answers.slope) <= 5
        z = np.eye(5)[(-sign * answers.y_hat).argmax(axis=1)]
        best = np.eye(5)[(-sign * answers.y).argmax()]
        np.testing.assert_allclose(answers.slope[answers.decision], sign * (z - best), atol=1e-12)
        np.testing.assert_allclose(answers.slope[answers.decision] @ answers.y, answers.regret)


def test_better_decisions_than_the_labels_keep_their_sign_and_are_told_once(y, caplog):
    """A heuristic that takes the first entry above its mean may do better by luck."""
    heuristic = problem(
        lambda y_hat: int(np.argmax(y_hat > y_hat.mean())), lambda z, y: y[z], sense="max"
    )
    with caplog.at_level(logging.WARNING, logger="lodl"):
        samples = Oracle(heuristic).sample(y, AllPerturbed(), 100)
    negative = np.concatenate([answers.regret[answers.regret < 0] for answers in samples])
    assert samples.counts.negative == negative.size > 0
    assert len(caplog.records) == 1
    told = f"{negative.size} of 600 points led to a better decision than the label itself, by "
    assert f"{told}{-negative.mean():.3g} on average" in caplog.text


def test_slightly_negative_regrets_are_no_warning(y, caplog):
    """An interior-point solver is off by a ten-millionth, now up and now down."""

    def objective(z, y):
        return float(((z - y) ** 2).sum() * (abs(z[0] - y[0]) > 1) + 1e-7 * np.sin(1e5 * z[0]))

    inexact = problem(lambda y_hat: y_hat, objective, sense="min")
    samples = Oracle(inexact).sample(y, AllPerturbed(1.0), 50)
    assert min(answers.regret.min() for answers in samples) < 0
    assert samples.counts.negative == 0
    assert not caplog.records


def test_a_wrong_sense_is_an_error(y):
    with pytest.raises(ProblemError, match=r'lead to a better.*`sense = "min"` of .* wrong'):
        Oracle(pick("min")).sample(y, AllPerturbed(3.0), 50)


def test_rounding_is_not_taken_for_a_better_decision(y, caplog):
    rounds = problem(
        lambda y_hat: y_hat,
        lambda z, y: 1.0 - (0 if np.array_equal(z, y) else 1e-16 * 8),
        sense="min",
    )
    samples = Oracle(rounds).sample(y, AllPerturbed(), 5)
    assert not any(answers.regret.any() for answers in samples)
    assert samples.counts.negative == 0
    assert not caplog.records


def test_a_large_constant_in_the_objective_changes_no_regret(y):
    def with_constant(constant):
        return problem(
            lambda y_hat: y_hat, lambda z, y: float(((z - y) ** 2).sum()) + constant, sense="min"
        )

    kwargs = {"sampler": AllPerturbed(1.0), "n_samples": 30}
    for plain, shifted in zip(
        Oracle(with_constant(0.0)).sample(y, **kwargs),
        Oracle(with_constant(1e9)).sample(y, **kwargs),
        strict=True,
    ):
        np.testing.assert_allclose(shifted.regret, plain.regret, atol=1e-5)
        assert (shifted.regret > 0).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_solver_that_writes_into_its_argument_does_not_change_the_label(y, n_jobs):
    def solve(y_hat):
        y_hat -= y_hat.max()
        return int(np.argmax(y_hat))

    messy = problem(solve, lambda z, y: y[z], sense="max")
    before = y.copy()
    kwargs = {"sampler": AllPerturbed(), "n_samples": 20}
    messy_samples = Oracle(messy, n_jobs=n_jobs).sample(y, **kwargs)
    assert np.array_equal(y, before)
    for a, b in zip(messy_samples, Oracle(pick()).sample(y, **kwargs), strict=True):
        assert np.array_equal(a.regret, b.regret)


@pytest.mark.parametrize("slopes", [False, True])
def test_a_solver_that_returns_its_own_buffer_is_scored_before_the_next_solve(y, slopes):
    buffer = np.zeros(5)

    def solve(y_hat):
        buffer[:] = y_hat
        return buffer

    def objective(z, y):
        return float(((z - y) ** 2).sum())

    kwargs = {"sampler": AllPerturbed(), "n_samples": 20, "slopes": slopes}
    tidy = Oracle(problem(lambda y_hat: y_hat, objective, sense="min")).sample(y, **kwargs)
    for a, b in zip(
        Oracle(problem(solve, objective, sense="min")).sample(y, **kwargs), tidy, strict=True
    ):
        assert np.array_equal(a.regret, b.regret)
        if slopes:
            assert np.array_equal(a.slope[a.decision], b.slope[b.decision])


def test_labels_changed_afterwards_do_not_change_the_points(loop, y):
    samples = Oracle(loop()).sample(y, AllPerturbed(), 20)
    before, label = samples[0].y_hat, y[0].copy()
    y += 100
    assert np.array_equal(samples[0].y_hat, before)
    assert np.array_equal(samples.y[0], label)


def test_provenance_is_json(loop, y):
    samples = Oracle(loop()).sample(y, AllPerturbed(np.arange(1.0, 6)), 3, random_state=11)
    told = json.loads(json.dumps(samples.provenance()))
    assert told["sampler"] == "AllPerturbed"
    assert told["scale"] == {"shape": [5], "min": 1.0, "max": 5.0}
    assert (told["seed"], told["n_samples"], told["problem"]) == (11, 3, "Loop")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_samples": -1}, "`n_samples` must be a whole number of at least 0, got -1"),
        ({"random_state": -1}, "`random_state` must be a whole number of at least 0, got -1"),
        ({"random_state": 2**64}, r"`random_state` must be below 2\^64"),
        ({"sampler": "all"}, "`sampler` must be a sampler such as"),
        ({"context": [1]}, r"`context` must have one entry per instance \(6\), got 1"),
        ({"keys": [1]}, r"`keys` must have one entry per instance \(6\), got 1"),
        ({"keys": [1.5] * 6}, "`keys` must be whole numbers of at least 0 or strings, got 1.5"),
        ({"on_failure": "ignore"}, "`on_failure` must be"),
        (
            {"max_failure_rate": 1.5},
            "`max_failure_rate` must be a number of at least 0 and at most 1, got 1.5",
        ),
        (
            {"max_failure_rate": "a"},
            "`max_failure_rate` must be a number of at least 0 and at most 1, got 'a'",
        ),
        ({"timeout": 0}, "`timeout` must be a number above 0, got 0"),
        ({"timeout": True}, "`timeout` must be a number above 0, got True"),
        ({"timeout": np.inf}, "`timeout` must be a number above 0, got inf"),
        ({"n_jobs": 0}, "`n_jobs` must be None or a whole number other than 0"),
        ({"n_jobs": "2"}, "`n_jobs` must be None or a whole number other than 0.*got '2'"),
        ({"executor": 2}, "`executor` must be a `concurrent.futures.Executor` or a Dask client"),
        ({"store": 3}, "`store` must be the name of a file, got 3"),
    ],
)
def test_bad_arguments_are_named(loop, y, change, match):
    arguments = {"sampler": AllPerturbed(), "n_samples": 3, "random_state": 0}
    options = {name: value for name, value in change.items() if name not in arguments}
    arguments |= {name: value for name, value in change.items() if name in arguments}
    given = {name: options.pop(name, None) for name in ("context", "keys")}
    with pytest.raises(InvalidInputError, match=match):
        Oracle(loop(), **options).sample(Oracle(loop()).instances(y, **given), **arguments)


def test_a_problem_must_be_one(y):
    with pytest.raises(InvalidInputError, match=r"must be a `lodl.Problem`, got <function"):
        Oracle(lambda y_hat: y_hat).sample(y, AllPerturbed(), 3)
    with pytest.raises(InvalidInputError, match=r"must be an instance, got the class TopK\. Call"):
        Oracle(TopK).sample(y, AllPerturbed(), 3)


def test_a_projection_must_keep_the_shape(y):
    with pytest.raises(ProblemError, match=r"`project` must keep the shape \(\d+, 5\)"):
        Oracle(pick(project=lambda v: v[:, :2])).sample(y, AllPerturbed(), 3)


def test_a_projection_of_one_point_is_told_that_it_gets_many(y):
    single = pick(project=lambda v: v if v[0] > 0 else -v)
    with pytest.raises(ProblemError, match=r"`project` raised ValueError.*shape \(\d+, 5\)"):
        Oracle(single).sample(y, AllPerturbed(), 5)


def test_importing_the_oracle_is_light():
    slow = "{'zarr', 'fsspec', 'loky', 'joblib', 'distributed', 'cloudpickle', 'tqdm'}"
    code = f"import sys, lodl.oracle; assert not {slow} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_shown_in_a_notebook(y, monkeypatch):
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(_run, "_BAR_DELAY", 0.0)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    Oracle(TopK(1)).sample(y)
    assert "calls/s" in stderr.getvalue()


def test_a_log_line_is_not_written_into_a_bar(y, monkeypatch, caplog):
    stderr = Terminal()
    handler = logging.StreamHandler(stderr)
    monkeypatch.setattr(sys, "stderr", stderr)
    for name in ("_BAR_DELAY", "_FIRST_LOG", "_LOG_EVERY"):
        monkeypatch.setattr(_run, name, 0.0)
    caplog.set_level(logging.INFO, logger="lodl")
    logging.getLogger("lodl").addHandler(handler)
    try:
        Oracle(TopK(1)).sample(y)
    finally:
        logging.getLogger("lodl").removeHandler(handler)
    lines = [line for line in stderr.getvalue().split("\n") if "solver calls" in line]
    assert lines
    assert all(line.rpartition("\r")[2].startswith(tuple("0123456789")) for line in lines)


def test_each_warning_is_given_once(y, caplog):
    some_fail = problem(
        lambda y_hat: y_hat, lambda z, y: np.nan if z[0] > y[0] + 1 else 0.0, sense="min"
    )
    oracle = Oracle(some_fail, on_failure="skip", max_failure_rate=1)
    with caplog.at_level(logging.INFO, logger="lodl"):
        for seed in range(3):
            oracle.sample(y, random_state=seed)
    levels = [record.levelname for record in caplog.records if "failed" in record.message]
    assert levels == ["WARNING", "INFO", "INFO"]


@pytest.mark.parametrize(
    ("stderr", "progress", "shows"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)],
)
def test_a_bar_is_shown_on_a_terminal_only(y, monkeypatch, stderr, progress, shows):
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(_run, "_BAR_DELAY", 0.0)
    half_fails = problem(
        lambda y_hat: y_hat, lambda z, y: np.nan if z[0] > y[0] else 0.0, sense="min"
    )
    options = {"progress": progress}
    kwargs = {"sampler": AllPerturbed(), "n_samples": 40}
    Oracle(half_fails, on_failure="skip", max_failure_rate=1, **options).sample(y, **kwargs)
    text = stderr.getvalue()
    assert bool(text) == shows
    if shows:
        assert "100%" in text
        assert "calls/s" in text
        assert re.search(r"failures=[1-9]", text)


def test_elsewhere_a_log_line_tells_calls_cost_time_left_and_failures(loop, y, monkeypatch, caplog):
    monkeypatch.setattr(_run, "_FIRST_LOG", 0.0)
    monkeypatch.setattr(_run, "_LOG_EVERY", 0.0)
    monkeypatch.setattr(_run, "_TASK_SECONDS", 0.02)
    with caplog.at_level(logging.INFO, logger="lodl"):
        Oracle(loop(seconds=0.002)).sample(y, AllPerturbed(), 20)
    first, *later = [record.message for record in caplog.records]
    assert re.match(
        r"126 solver calls to make, \d+\.?\d* ms each, about \d+ s left on 1 worker; "
        r"\d+ done, 0 failed\.",
        first,
    )
    assert len(later) > 3
    assert all(message.startswith("126 solver calls, ") for message in later)


def test_fitting_many_families_from_one_store_calls_no_oracle(loop, y, tmp_path, calls_file):
    solver, store = loop(calls_file), tmp_path / "samples"
    kwargs = {"sampler": AllPerturbed(), "n_samples": 60}
    Oracle(solver, store=store).sample(y, **kwargs)
    before = solver.n_calls()
    samples = Oracle(solver, store=store).sample(y, **kwargs)
    for family in (WeightedMSE(), DirectedWeightedMSE(), Quadratic()):
        fit(samples, family, progress=False)
    assert solver.n_calls() == before + 12  # the verification


def test_blas_has_one_thread_in_a_worker(y):
    def n_threads(z, y):
        blas = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
        return float(max(blas))

    counting = problem(lambda y_hat: 0, n_threads, sense="min")
    for n_jobs in (1, 2):
        samples = Oracle(counting, n_jobs=n_jobs).sample(y, AllPerturbed(), 3)
        assert samples.optimum.tolist() == [1.0] * 6


def test_blas_has_one_thread_until_the_last_task_has_left():
    def n_threads():
        return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        assert 2 in before
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert n_threads() == {1}
        first.__exit__(None, None, None)
        assert n_threads() == {1}
        second.__exit__(None, None, None)
        assert n_threads() == before


def test_the_message_of_a_failure_at_the_label_fits_the_failure(y):
    def no_licence(y_hat):
        raise OSError("no licence")

    needs_context = problem(lambda y_hat, context: context["a"], lambda z, y: 0.0, sense="max")
    kwargs = {"sampler": AllPerturbed(), "n_samples": 5}
    with pytest.raises(OracleError, match=r"the label itself: TypeError") as needs:
        Oracle(needs_context).sample(y, **kwargs)
    with pytest.raises(OracleError, match=r"the label itself: OSError: no licence") as licence:
        Oracle(problem(no_licence, lambda z, y: 0.0, sense="max")).sample(y, **kwargs)
    assert "skip" not in str(needs.value) + str(licence.value)
    assert "context" not in str(licence.value)


def test_a_batch_that_the_solver_overwrites_before_it_raises_is_called_again_as_it_was():
    class Untidy(VectorisedProblem):
        sense = "max"
        is_tidy = False

        def solve_many(self, y_hats, context=None):
            zs = (y_hats == y_hats.max(axis=1, keepdims=True)).astype(float)
            if len(y_hats) > 1 and not self.is_tidy:
                y_hats[:] = 0.0
                raise ArithmeticError("only one at a time")
            return zs

        def objective_many(self, zs, y, context=None):
            return zs @ y

    y = np.random.default_rng(0).normal(size=(5, 3))
    untidy, tidy = Untidy(), Untidy()
    tidy.is_tidy = True
    found, expected = (Oracle(problem).sample(y, n_samples=10) for problem in (untidy, tidy))
    for i in range(5):
        np.testing.assert_array_equal(found[i].regret, expected[i].regret)
