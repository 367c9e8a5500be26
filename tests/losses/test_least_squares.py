import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from lodl.losses import _least_squares
from lodl.losses._least_squares import solve_nnls

few_examples = settings(deadline=None, max_examples=60, derandomize=True)


def problem(n_rows, n_columns, seed):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n_rows, n_columns)) ** 2
    return columns, columns @ np.maximum(rng.standard_normal(n_columns), 0) + rng.standard_normal(
        n_rows
    )


def optimality(columns, target, w):
    """Returns the largest violation of the optimality conditions, relative to the data."""
    gradient = columns.T @ (columns @ w - target)
    gradient /= np.linalg.norm(columns, axis=0) * np.linalg.norm(target)
    complementary = np.abs(gradient * w * np.linalg.norm(columns, axis=0)) / np.linalg.norm(target)
    return max(-w.min(), -gradient.min(), complementary.max())


@few_examples
@given(n_columns=st.integers(1, 30), extra=st.integers(10, 60), seed=st.integers(0, 2**32 - 1))
def test_the_solution_is_that_of_scipy(n_columns, extra, seed):
    columns, target = problem(n_columns + extra, n_columns, seed)
    expected, _ = scipy.optimize.nnls(columns, target)
    np.testing.assert_allclose(solve_nnls(columns, target), expected, atol=1e-8)


@pytest.mark.skipif(
    Version(scipy.__version__) < Version("1.16"),
    reason="SciPy's nnls stops early with more weights than samples",
)
@few_examples
@given(n_rows=st.integers(1, 20), n_columns=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_the_residual_is_that_of_scipy_with_fewer_samples_than_weights(n_rows, n_columns, seed):
    columns, target = problem(n_rows, n_columns, seed)
    _, expected = scipy.optimize.nnls(columns, target)
    w = solve_nnls(columns, target)
    residual = np.linalg.norm(columns @ w - target)
    assert residual == pytest.approx(expected, abs=1e-6 * np.linalg.norm(target))
    assert optimality(columns, target, w) < 1e-6


@few_examples
@given(n_rows=st.integers(1, 40), n_columns=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_a_ridge_is_a_row_more_for_each_weight(n_rows, n_columns, seed):
    columns, target = problem(n_rows, n_columns, seed)
    towards = np.random.default_rng(seed).uniform(size=n_columns)
    expected, _ = scipy.optimize.nnls(
        np.vstack([columns, 3 * np.eye(n_columns)]), np.concatenate([target, 3 * towards])
    )
    w = solve_nnls(columns, target, ridge=9.0, towards=towards)
    np.testing.assert_allclose(w, expected, atol=1e-8)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(1500, 600), (100, 600)])
def test_the_optimality_conditions_hold_for_many_weights(n_rows, n_columns):
    columns, target = problem(n_rows, n_columns, seed=0)
    assert optimality(columns, target, solve_nnls(columns, target)) < 1e-6


def test_the_slow_method_that_always_ends_finds_the_same(monkeypatch):
    columns, target = problem(80, 20, seed=0)
    fast = solve_nnls(columns, target)
    monkeypatch.setattr(_least_squares, "_MAX_EXCHANGES", 0)
    np.testing.assert_allclose(solve_nnls(columns, target), fast, atol=1e-10)


def test_moving_weights_one_by_one_finds_the_same(monkeypatch):
    columns, target = problem(80, 20, seed=0)
    fast = solve_nnls(columns, target)
    monkeypatch.setattr(_least_squares, "_PATIENCE", 0)
    np.testing.assert_allclose(solve_nnls(columns, target), fast, atol=1e-10)


def test_a_column_of_zeros_has_weight_zero():
    columns, target = problem(80, 20, seed=0)
    columns[:, 3] = 0
    assert solve_nnls(columns, target)[3] == 0


@pytest.mark.parametrize("target", [np.zeros(9), -np.ones(9)])
def test_nothing_positive_to_explain_gives_zero(target):
    columns, _ = problem(9, 4, seed=0)
    np.testing.assert_array_equal(solve_nnls(columns, target), 0)
