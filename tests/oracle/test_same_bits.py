"""With one seed the regrets are the same bits, however the work was done."""

import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

from lodl.oracle import evaluate, open_samples
from lodl.samplers import AllPerturbed, TwoPerturbed

N_SAMPLES = 730  # not a whole number of blocks


@pytest.fixture(scope="module")
def dask_cluster():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        yield cluster


def bits(samples):
    return np.stack([instance.regret for instance in samples]).tobytes()


@pytest.fixture
def sampler():
    return TwoPerturbed()


@pytest.fixture
def expected(problem_class, y, sampler):
    return bits(evaluate(problem_class(), y, sampler=sampler, n_samples=N_SAMPLES, seed=5))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_on_two_workers(problem_class, y, sampler, expected, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        samples = evaluate(problem_class(), y, sampler=sampler, n_samples=N_SAMPLES, seed=5)
    assert bits(samples) == expected


def test_on_a_dask_cluster(problem_class, y, sampler, expected, dask_cluster, tmp_path):
    with joblib.parallel_config(backend="dask"):
        samples = evaluate(
            problem_class(),
            y,
            sampler=sampler,
            n_samples=N_SAMPLES,
            seed=5,
            store=tmp_path / "samples.zarr",
        )
    assert bits(samples) == expected


@pytest.mark.parametrize("place", ["{}/samples.zarr", "file://{}/samples.zarr", "memory://{}"])
def test_in_any_store(problem_class, y, sampler, expected, tmp_path, place):
    kwargs = {"sampler": sampler, "seed": 5}
    store = place.format(tmp_path)
    samples = evaluate(problem_class(), y, n_samples=N_SAMPLES, store=store, **kwargs)
    assert bits(samples) == expected
    assert bits(open_samples(store, problem_class(), y, **kwargs)) == expected


@pytest.mark.parametrize("steps", [[500, 5000], [50, 51, 730, 5000], [5000, 500]])
def test_when_grown(problem_class, y, tmp_path, steps):
    kwargs = {"sampler": AllPerturbed(), "seed": 1}
    for n_samples in steps:
        grown = evaluate(
            problem_class(), y, n_samples=n_samples, store=tmp_path / "samples.zarr", **kwargs
        )
        at_once = evaluate(problem_class(), y, n_samples=n_samples, **kwargs)
        assert grown.n_samples == n_samples
        assert bits(grown) == bits(at_once)


def test_growing_calls_the_oracle_only_for_what_is_new(loop, y, tmp_path, calls_file):
    oracle, store = loop(calls_file), tmp_path / "samples.zarr"
    evaluate(oracle, y, sampler=AllPerturbed(), n_samples=50, store=store)
    before = oracle.n_calls()
    evaluate(oracle, y, sampler=AllPerturbed(), n_samples=80, store=store)
    assert oracle.n_calls() - before == 6 * 30
    evaluate(oracle, y, sampler=AllPerturbed(), n_samples=20, store=store)
    open_samples(store, oracle, y, sampler=AllPerturbed())
    assert oracle.n_calls() - before == 6 * 30


def test_the_problem_of_this_test_has_bits_that_depend_on_the_batch(vectorised, y):
    """Otherwise the tests above would show nothing about whole blocks."""
    y_hats = np.random.default_rng(0).normal(size=(100, 5))
    whole = vectorised().solve_many(y_hats, None)
    singles = np.concatenate([vectorised().solve_many(y_hats[k : k + 1], None) for k in range(100)])
    assert not np.array_equal(whole, singles)
