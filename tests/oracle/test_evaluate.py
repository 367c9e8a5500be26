import io
import json
import logging
import re
import subprocess
import sys

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from lodl._threads import one_blas_thread
from lodl.domains import TopK
from lodl.errors import InvalidInputError, OracleError, ProblemError
from lodl.fitting import fit
from lodl.losses import DirectedWeightedMSE, Quadratic, WeightedMSE
from lodl.oracle import evaluate, open_samples
from lodl.problems import Problem, problem
from lodl.problems._regret import regrets
from lodl.samplers import AllPerturbed, AroundPredictions, OnePerturbed, TwoPerturbed

SAMPLERS = [AllPerturbed(), OnePerturbed(0.5), TwoPerturbed(np.linspace(0.1, 1, 5))]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_regrets_are_those_of_the_candidates_under_the_true_label(problem_class, y, sampler):
    context = [{"price": 1.0 + i} for i in range(len(y))]
    samples = evaluate(problem_class(), y, context=context, sampler=sampler, n_samples=130)
    assert (samples.n_instances, samples.n_samples, samples.label_shape) == (6, 130, (5,))
    for i, instance in enumerate(samples):
        assert instance.y_hat.shape == (130, 5)
        expected = regrets(problem_class(), instance.y_hat, y[i], context[i])
        np.testing.assert_allclose(instance.regret, expected, atol=1e-12)


def test_candidates_are_in_the_valid_range(loop, y):
    samples = evaluate(loop(), y, sampler=AllPerturbed(10.0), n_samples=50)
    y_hat = np.concatenate([instance.y_hat for instance in samples])
    assert y_hat.min() == -3
    assert y_hat.max() == 3


def test_around_predictions_still_scores_under_the_label(loop, y):
    y_hat = np.clip(y[::-1], -2, 2)
    samples = evaluate(loop(), y, sampler=AroundPredictions(y_hat, 1e-9), n_samples=3, n_jobs=2)
    for i, instance in enumerate(samples):
        np.testing.assert_allclose(instance.y_hat, np.tile(y_hat[i], (3, 1)), atol=1e-6)
        expected = regrets(loop(), y_hat[i][np.newaxis], y[i])[0]
        np.testing.assert_allclose(instance.regret, expected, atol=1e-6)


def test_labels_of_any_shape(y):
    matrix = y.reshape(3, 2, 5)
    pick = problem(lambda y_hat: y_hat.argmax(), lambda z, y: y.flat[z], sense="max")
    samples = evaluate(pick, matrix, sampler=AllPerturbed(), n_samples=20)
    assert samples[0].y_hat.shape == (20, 2, 5)
    for i, instance in enumerate(samples):
        chosen = matrix[i].ravel()[instance.y_hat.reshape(20, -1).argmax(axis=1)]
        assert np.array_equal(instance.regret, matrix[i].max() - chosen)


def test_the_optimum_is_asked_once_per_instance(loop, y, calls_file):
    oracle = loop(calls_file)
    samples = evaluate(oracle, y, sampler=AllPerturbed(), n_samples=40)
    n_timed = oracle.n_calls() - 6 * 41
    assert 3 <= n_timed <= 12  # the cost is measured once at most at a label and a candidate each
    assert samples.n_calls == 6 * 41
    assert samples.n_failures == 0
    np.testing.assert_allclose(samples.optimum, [regretless(loop(), label) for label in y])


@pytest.mark.parametrize(("n_samples", "n_asked"), [(20, 50), (200, 250), (510, 1000)])
@pytest.mark.parametrize("seconds", [0.0, 0.002])
def test_a_vectorised_problem_is_asked_for_whole_batches_and_no_more(
    vectorised, y, calls_file, seconds, n_samples, n_asked
):
    oracle = vectorised(calls_file, seconds=seconds)
    evaluate(oracle, y[:2], sampler=AllPerturbed(), n_samples=n_samples)
    n_timed = oracle.n_calls() - 2 * (n_asked + 1)
    assert 3 <= n_timed <= 4 + (250 if seconds == 0 else 0)  # a slow one is not timed in a batch


def regretless(oracle, label):
    return oracle.objective(oracle.solve(label, None), label, None)


def test_head_is_a_prefix(problem_class, y):
    samples = evaluate(problem_class(), y, sampler=AllPerturbed(), n_samples=230)
    short = evaluate(problem_class(), y, sampler=AllPerturbed(), n_samples=70)
    head = samples.head(70)
    assert head.n_samples == 70
    assert head.n_calls == 6 * 71
    for i in range(6):
        assert np.array_equal(head[i].regret, short[i].regret)
        assert np.array_equal(head[i].y_hat, short[i].y_hat)
        assert np.array_equal(head[i].regret, samples[i].regret[:70])
    with pytest.raises(InvalidInputError, match="at most 230, the samples there are, got 231"):
        samples.head(231)


@pytest.mark.parametrize("kept", [[4, 1], np.array([False, True, False, False, True, False])])
def test_a_selection_draws_with_the_original_numbers(loop, y, kept):
    sampler = AroundPredictions(y + 0.3, 0.5)
    samples = evaluate(loop(), y, sampler=sampler, n_samples=30)
    selection = samples.select(kept)
    numbers = np.arange(6)[kept]
    assert np.array_equal(selection.y, y[numbers])

    def ask(part, row):
        return part[row].y_hat, part[row].regret

    in_workers = Parallel(n_jobs=2)(delayed(ask)(selection, row) for row in range(2))
    for (y_hat, regret), number in zip(in_workers, numbers, strict=True):
        assert np.array_equal(y_hat, samples[number].y_hat)
        assert np.array_equal(regret, samples[number].regret)
    assert np.array_equal(selection.select([1])[0].y_hat, samples[numbers[1]].y_hat)


def test_an_empty_selection_is_refused(loop, y):
    samples = evaluate(loop(), y, sampler=AllPerturbed(), n_samples=3)
    with pytest.raises(InvalidInputError, match="at least one instance"):
        samples.select([])
    with pytest.raises(IndexError, match="There are 6 instances, got index 6"):
        samples[6]
    with pytest.raises(InvalidInputError, match=r"one instance, got slice.*`samples.select"):
        samples[0:2]
    assert np.array_equal(samples[-1].regret, samples[5].regret)


def test_better_decisions_than_the_labels_keep_their_sign_and_are_told_once(y, caplog):
    """A heuristic that takes the first entry above its mean may do better by luck."""
    heuristic = problem(
        lambda y_hat: int(np.argmax(y_hat > y_hat.mean())), lambda z, y: y[z], sense="max"
    )
    with caplog.at_level(logging.WARNING, logger="lodl"):
        samples = evaluate(heuristic, y, sampler=AllPerturbed(), n_samples=100)
    n_negative = sum(int((instance.regret < 0).sum()) for instance in samples)
    assert samples.n_negative == n_negative > 0
    assert len(caplog.records) == 1
    assert f"{n_negative} of 600 candidates led to a better decision" in caplog.text


def test_rounding_is_not_taken_for_a_better_decision(y, caplog):
    class Rounds(Problem):
        sense = "min"

        def solve(self, y_hat, context):
            return y_hat

        def objective(self, z, y, context):
            return 1.0 - (0 if np.array_equal(z, y) else 1e-16 * 8)

    samples = evaluate(Rounds(), y, sampler=AllPerturbed(), n_samples=5)
    assert not any(instance.regret.any() for instance in samples)
    assert samples.n_negative == 0
    assert not caplog.records


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_solver_that_writes_into_its_argument_does_not_change_the_label(y, n_jobs):
    def solve(y_hat):
        y_hat -= y_hat.max()
        return int(np.argmax(y_hat))

    tidy = problem(lambda y_hat: int(np.argmax(y_hat)), lambda z, y: y[z], sense="max")
    messy = problem(solve, lambda z, y: y[z], sense="max")
    before = y.copy()
    kwargs = {"sampler": AllPerturbed(), "n_samples": 20}
    messy_samples = evaluate(messy, y, n_jobs=n_jobs, **kwargs)
    assert np.array_equal(y, before)
    for a, b in zip(messy_samples, evaluate(tidy, y, **kwargs), strict=True):
        assert np.array_equal(a.regret, b.regret)


def test_labels_changed_afterwards_do_not_change_the_candidates(loop, y):
    samples = evaluate(loop(), y, sampler=AllPerturbed(), n_samples=20)
    before, label = samples[0].y_hat, y[0].copy()
    y += 100
    assert np.array_equal(samples[0].y_hat, before)
    assert np.array_equal(samples.y[0], label)


def test_provenance_is_json(loop, y):
    samples = evaluate(loop(), y, sampler=AllPerturbed(np.arange(1.0, 6)), n_samples=3, seed=11)
    told = json.loads(json.dumps(samples.provenance()))
    assert told["sampler"] == "AllPerturbed"
    assert told["scale"] == {"shape": [5], "min": 1.0, "max": 5.0}
    assert (told["seed"], told["n_samples"]) == (11, 3)
    assert set(told["fingerprints"]) == {"problem", "labels", "context", "sampler"}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_samples": 0}, "`n_samples` must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0, got -1"),
        ({"seed": 2**64}, r"`seed` must be below 2\^64"),
        ({"sampler": "all"}, "`sampler` must be a sampler such as"),
        ({"context": [1]}, r"`context` must have one entry per instance \(6\), got 1"),
        ({"on_failure": "ignore"}, "`on_failure` must be"),
        ({"max_failure_rate": 1.5}, "`max_failure_rate` must be from 0 to 1, got 1.5"),
        ({"max_failure_rate": "a"}, "`max_failure_rate` must be from 0 to 1, got 'a'"),
        ({"n_jobs": 0}, "`n_jobs` must be None or a whole number other than 0"),
        ({"n_jobs": "2"}, "`n_jobs` must be None or a whole number other than 0.*got '2'"),
        ({"store": 3}, "`store` must be a directory, a URL or None, got 3"),
    ],
)
def test_bad_arguments_are_named(loop, y, change, match):
    kwargs = {"sampler": AllPerturbed(), "n_samples": 3} | change
    with pytest.raises(InvalidInputError, match=match):
        evaluate(loop(), y, **kwargs)


def test_a_problem_must_be_one(y):
    with pytest.raises(
        InvalidInputError, match=r"`problem` must be a `lodl.Problem`, got <function"
    ):
        evaluate(lambda y_hat: y_hat, y, sampler=AllPerturbed(), n_samples=3)


def test_the_class_of_a_problem_is_no_problem():
    with pytest.raises(InvalidInputError, match=r"must be an instance, got the class TopK\. Call"):
        evaluate(TopK, np.ones((2, 3)), sampler=AllPerturbed(1.0), n_samples=3)


def test_a_projection_must_keep_the_shape(y):
    bad = problem(lambda v: v, lambda z, y: 0.0, sense="min", project=lambda v: v[:, :2])
    with pytest.raises(ProblemError, match=r"`project` must keep the shape \(500, 5\)"):
        evaluate(bad, y, sampler=AllPerturbed(), n_samples=3)


def test_importing_the_oracle_does_not_import_zarr():
    code = "import sys, lodl.oracle; assert not {'zarr', 'fsspec'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stderr", "progress", "shows"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)],
)
def test_a_bar_is_shown_on_a_terminal_only(y, monkeypatch, stderr, progress, shows):
    monkeypatch.setattr(sys, "stderr", stderr)
    half_fails = problem(
        lambda y_hat: y_hat, lambda z, y: np.nan if z[0] > y[0] else 0.0, sense="min"
    )
    evaluate(
        half_fails,
        y,
        sampler=AllPerturbed(),
        n_samples=40,
        on_failure="skip",
        max_failure_rate=1,
        progress=progress,
    )
    text = stderr.getvalue()
    assert bool(text) == shows
    if shows:
        assert "samples: 100%" in text
        assert "calls/s" in text
        assert re.search(r"failures=[1-9]", text)


def test_fitting_many_families_from_one_store_calls_no_oracle(loop, y, tmp_path, calls_file):
    oracle, store = loop(calls_file), tmp_path / "samples.zarr"
    evaluate(oracle, y, sampler=AllPerturbed(), n_samples=60, store=store)
    before = oracle.n_calls()
    samples = open_samples(store, oracle, y, sampler=AllPerturbed())
    for family in (WeightedMSE(), DirectedWeightedMSE(), Quadratic()):
        fit(samples, family, progress=False)
    assert oracle.n_calls() == before > 0


def test_blas_has_one_thread_in_a_worker():
    def n_threads(z, y):
        blas = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
        return float(max(blas))

    counting = problem(lambda y_hat: 0, n_threads, sense="min")
    y = np.arange(8.0).reshape(4, 2)
    with parallel_config(backend="loky", inner_max_num_threads=2):  # loky's own limit is wider
        samples = evaluate(counting, y, sampler=AllPerturbed(), n_samples=3, n_jobs=2)
    assert samples.optimum.tolist() == [1.0] * 4


def test_blas_has_one_thread_until_the_last_task_has_left():
    def n_threads():
        return {library["num_threads"] for library in threadpool_info() if is_blas(library)}

    def is_blas(library):
        return library["user_api"] == "blas"

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


def test_numbers_tell_which_candidates_failed(y):
    class Fussy(Problem):
        sense = "max"

        def solve(self, y_hat, context):
            if y_hat[0] > y_hat[1]:
                raise ValueError("infeasible")
            return np.argmax(y_hat)

        def objective(self, z, y, context):
            return y[z]

    labels = np.sort(y, axis=1)
    arguments = {"sampler": AllPerturbed(1.0), "n_samples": 40, "on_failure": "skip"}
    samples = evaluate(Fussy(), labels, **arguments, max_failure_rate=1.0)
    everything = evaluate(problem(np.argmax, lambda z, y: y[z], sense="max"), labels, **arguments)
    for one, whole in zip(samples, everything, strict=True):
        infeasible = np.flatnonzero(whole.y_hat[:, 0] > whole.y_hat[:, 1])
        np.testing.assert_array_equal(one.y_hat, np.delete(whole.y_hat, infeasible, axis=0))


def test_the_time_of_a_selection_is_its_share(loop, y):
    samples = evaluate(loop(), y, sampler=AllPerturbed(), n_samples=20)
    assert samples.select([0, 1]).seconds == pytest.approx(samples.seconds / 3)


def test_a_wrong_sense_is_named(y, caplog):
    wrong = problem(np.argmax, lambda z, y: y[z], sense="min")
    evaluate(wrong, y, sampler=AllPerturbed(3.0), n_samples=50)
    assert "`sense` is probably wrong" in caplog.text


def test_a_projection_of_one_candidate_is_told_that_it_gets_many(y):
    single = problem(
        np.argmax, lambda z, y: y[z], sense="max", project=lambda v: v if v[0] > 0 else -v
    )
    with pytest.raises(ProblemError, match=r"`project` raised ValueError.*shape \(500, 5\)"):
        evaluate(single, y, sampler=AllPerturbed(), n_samples=5)


def test_a_failure_at_the_label_does_not_advise_to_skip(y):
    needs_context = problem(lambda y_hat, context: context["a"], lambda z, y: 0.0, sense="max")
    with pytest.raises(OracleError, match=r"the label itself.*need a `context`") as error:
        evaluate(needs_context, y, sampler=AllPerturbed(), n_samples=5)
    assert "skip" not in str(error.value)
