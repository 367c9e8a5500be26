import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lodl.domains import TopK, knapsack
from lodl.errors import InvalidInputError
from lodl.oracle import Oracle
from lodl.testing import check_problem


def regrets(problem, y_hats, y, context=None):
    """Return the regrets of many predictions for one instance."""
    contexts = None if context is None else [context]
    return Oracle(problem).regret(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


# Few distinct values, so that ties are common.
PREDICTIONS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(4, 9)),
    elements=st.integers(-3, 3).map(float),
)
PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)


def by_sorting(y_hat, budget):
    order = sorted(range(len(y_hat)), key=lambda item: (-y_hat[item], item))
    z = np.zeros(len(y_hat))
    z[order[:budget]] = 1
    return z


@pytest.mark.slow
@PROPERTY
@given(y_hats=PREDICTIONS, budget=st.integers(1, 4))
def test_the_items_are_those_at_the_front_of_a_stable_sort(y_hats, budget):
    zs = TopK(budget).solve_many(y_hats, None)
    np.testing.assert_array_equal(zs, [by_sorting(y_hat, budget) for y_hat in y_hats])


@PROPERTY
@given(y_hats=PREDICTIONS, budget=st.integers(1, 4))
def test_a_decision_does_not_depend_on_the_predictions_beside_it(y_hats, budget):
    problem = TopK(budget)
    singles = [problem.solve(y_hat, None) for y_hat in y_hats]
    np.testing.assert_array_equal(problem.solve_many(y_hats, None), singles)


@pytest.mark.parametrize("budget", [1, 7, 50])
def test_the_objective_is_the_utility_of_the_chosen_items(budget):
    rng = np.random.default_rng(budget)
    y_hats, y = rng.standard_normal((20, 50)), rng.standard_normal(50)
    problem = TopK(budget)
    zs = problem.solve_many(y_hats, None)
    expected = [y[np.argsort(y_hat)[-budget:]].sum() for y_hat in y_hats]
    values = problem.objective_many(zs, y, None)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert [problem.objective(z, y, None) for z in zs] == values.tolist()


def test_column_major_predictions_and_decisions_change_nothing():
    rng = np.random.default_rng(0)
    y_hats, y = rng.standard_normal((30, 50)), rng.standard_normal(50)
    zs = TopK(5).solve_many(y_hats, None)
    np.testing.assert_array_equal(TopK(5).solve_many(np.asfortranarray(y_hats), None), zs)
    values = TopK(5).objective_many(zs, y, None)
    np.testing.assert_array_equal(TopK(5).objective_many(np.asfortranarray(zs), y, None), values)


def test_no_prediction_beats_the_label():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(50)
    assert regrets(TopK(3), y + rng.standard_normal((100, 50)), y).min() >= 0


def test_the_contract_of_a_problem_is_kept():
    check_problem(TopK(2), np.random.default_rng(0).standard_normal((3, 10)))


@pytest.mark.parametrize("budget", [0, -1, 1.5, True])
def test_a_budget_must_be_a_positive_whole_number(budget):
    with pytest.raises(InvalidInputError, match="`budget` must be a whole number"):
        TopK(budget)


def test_fewer_items_than_the_budget_are_refused():
    with pytest.raises(InvalidInputError, match=r"at least `budget` = 3 utilities.*\(2,\)"):
        TopK(3).solve(np.zeros(2), None)


def test_a_prediction_that_is_not_a_number_is_refused():
    with pytest.raises(
        InvalidInputError, match=r"`y_hats` must be finite, got nan in row 0, column 1"
    ):
        TopK().solve(np.array([0.0, np.nan]), None)


@pytest.mark.parametrize("sizes", [(1, 2), (0, 1, 1), (1, 1, 2.5)])
def test_sizes_must_be_three_positive_numbers(sizes):
    with pytest.raises(InvalidInputError, match="`sizes` must be"):
        knapsack(sizes=sizes)


def test_a_seed_must_be_a_whole_number():
    with pytest.raises(InvalidInputError, match="`seed` must be a whole number of at least 0"):
        knapsack(-1)
