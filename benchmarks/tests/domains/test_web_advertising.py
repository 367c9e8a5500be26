from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lodl.errors import InvalidInputError
from lodl.oracle import ObjectiveKind, Oracle
from lodl.testing import check_problem
from lodl_benchmarks.domains import WebAdvertising, web_advertising
from lodl_benchmarks.domains._web_advertising import _click_rates


def whole_matrices(n_instances, seed=0):
    return _click_rates(n_instances, np.arange(100), np.arange(500), np.random.default_rng(seed))


def test_every_matrix_has_the_asked_rate_of_links():
    linked = whole_matrices(20) > 0
    assert linked.mean() == pytest.approx(0.0397, rel=0.02)
    np.testing.assert_allclose(linked.mean(axis=(1, 2)), 0.0397, rtol=0.1)


def test_linked_rates_are_uniform_up_to_a_fifth():
    rates = whole_matrices(5)
    rates = rates[rates > 0]
    assert rates.max() <= 0.2
    assert rates.mean() == pytest.approx(0.1, rel=0.02)
    assert rates.var() == pytest.approx(0.2**2 / 12, rel=0.05)


def test_popularity_is_uneven_among_sites_and_users():
    linked = whole_matrices(5) > 0
    by_site, by_user = linked.mean(axis=2), linked.mean(axis=1)
    # Independent links would spread by 0.009 over sites and by 0.02 over users.
    assert by_site.std(axis=1).min() > 0.03
    assert by_user.std(axis=1).min() > 0.03


def splits_of(**arguments):
    return web_advertising(**arguments).splits


def parts(splits):
    return [splits.train, splits.validation, splits.test]


@pytest.mark.slow
def test_small_instances_have_the_published_statistics():
    y = np.concatenate([splits_of(seed=seed, sizes=(1, 1, 100)).test.y for seed in range(20)])
    assert (y > 0).mean() == pytest.approx(0.0397, rel=0.1)
    assert 0.17 < (y == 0).all(axis=(1, 2)).mean() < 0.27  # about a fifth have nothing to win


def test_a_website_or_user_that_is_drawn_twice_has_the_same_rates_twice():
    rng = np.random.default_rng(0)
    rates = _click_rates(200, np.array([7, 3, 7]), np.array([5, 5, 9]), rng)
    assert rates.shape == (200, 3, 3)
    np.testing.assert_array_equal(rates[:, 0], rates[:, 2])
    np.testing.assert_array_equal(rates[:, :, 0], rates[:, :, 1])
    assert not np.array_equal(rates[:, 0], rates[:, 1])
    assert not np.array_equal(rates[:, :, 1], rates[:, :, 2])


def test_one_affine_map_leads_from_labels_to_features_in_every_split():
    splits = splits_of(sizes=(80, 20, 100))
    y = np.concatenate([part.y for part in parts(splits)]).reshape(-1, 10)
    x = np.concatenate([part.x for part in parts(splits)]).reshape(-1, 10)
    with_constant = np.column_stack([y, np.ones(len(y))])
    affine, *_ = np.linalg.lstsq(with_constant, x, rcond=None)
    np.testing.assert_allclose(with_constant @ affine, x, atol=1e-9)


def test_training_features_are_a_map_of_standardised_rates():
    x = splits_of(sizes=(80, 20, 20)).train.x
    bias = x.mean(axis=(0, 1))  # standardised rates have mean 0, so only the bias is left
    assert np.abs(bias).max() <= 1 / np.sqrt(10)


def test_the_size_of_the_test_split_leaves_the_training_data_as_it_is():
    small, large = splits_of(sizes=(5, 5, 5)), splits_of(sizes=(5, 5, 50))
    np.testing.assert_array_equal(small.train.x, large.train.x)
    np.testing.assert_array_equal(small.validation.x, large.validation.x)


def regrets(problem, y_hats, y, context=None):
    """Return the regrets of many predictions for one instance."""
    contexts = None if context is None else [context]
    return Oracle(problem).regret(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


RATES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(3, 6), st.integers(1, 5)),
    elements=st.sampled_from([0.0, 0.0, 0.05, 0.1, 0.3, 0.5, 0.9, 1.0]),
)
PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)


def share_that_clicks(websites, y):
    """The objective, user by user and website by website."""
    share = 0.0
    for user in range(y.shape[1]):
        no_click = 1.0
        for website in websites:
            no_click *= 1.0 - y[website, user]
        share += (1.0 - no_click) / y.shape[1]
    return share


def optimum(y, budget):
    return max(share_that_clicks(subset, y) for subset in combinations(range(len(y)), budget))


def sparse_rates(rng, shape):
    return (rng.random(shape) < 0.1) * rng.uniform(0, 0.2, size=shape)


@PROPERTY
@given(y_hats=RATES, budget=st.integers(1, 3))
def test_enumeration_reaches_the_optimum(y_hats, budget):
    problem = WebAdvertising(budget)
    for z, y_hat in zip(problem.solve_many(y_hats, None), y_hats, strict=True):
        assert sorted(set(z.tolist())) in ([0.0, 1.0], [1.0])
        assert z.sum() == budget
        assert problem.objective(z, y_hat, None) == pytest.approx(optimum(y_hat, budget), abs=1e-12)


@PROPERTY
@given(y_hats=RATES)
def test_a_decision_does_not_depend_on_the_predictions_beside_it(y_hats):
    problem = WebAdvertising(2)
    singles = [problem.solve(y_hat, None) for y_hat in y_hats]
    np.testing.assert_array_equal(problem.solve_many(y_hats, None), singles)


def test_more_ways_to_choose_than_may_be_tried_are_refused():
    with pytest.raises(
        InvalidInputError, match=r"more than `max_subsets` = 10000 ways to choose 20"
    ):
        WebAdvertising(20).solve(np.zeros((100, 5)), None)


def test_many_predictions_are_solved_in_blocks_without_a_trace():
    y_hats = sparse_rates(np.random.default_rng(0), (3000, 5, 10))
    problem = WebAdvertising()
    together = problem.solve_many(y_hats, None)
    np.testing.assert_array_equal(together, [problem.solve(y_hat, None) for y_hat in y_hats])


@PROPERTY
@given(y_hats=RATES)
def test_the_objective_is_the_share_of_users_that_click(y_hats):
    y, problem = y_hats[0], WebAdvertising(2)
    subsets = list(combinations(range(len(y)), 2))
    zs = np.array([[float(site in subset) for site in range(len(y))] for subset in subsets])
    values = problem.objective_many(zs, y, None)
    np.testing.assert_allclose(values, [share_that_clicks(s, y) for s in subsets], atol=1e-12)
    assert [problem.objective(z, y, None) for z in zs] == values.tolist()


def test_points_are_clipped_into_the_range_of_rates():
    y_hats = np.array([[[-0.5, 0.3], [1.7, 1.0]]])
    np.testing.assert_array_equal(WebAdvertising().project(y_hats), [[[0, 0.3], [1, 1]]])


def test_a_rate_beyond_one_counts_as_one():
    y_hat = np.array([[5.0, 0.0], [1.0, 0.4], [0.0, 0.0]])
    assert WebAdvertising(1).solve(y_hat, None).tolist() == [0, 1, 0]


def test_no_prediction_beats_the_label():
    rng = np.random.default_rng(0)
    y = sparse_rates(rng, (5, 10))
    assert regrets(WebAdvertising(), rng.random((200, 5, 10)), y).min() >= -1e-15


@pytest.mark.parametrize("shape", [(3, 5, 10), (3, 20, 30)])
def test_the_contract_of_a_problem_is_kept(shape):
    check_problem(WebAdvertising(), sparse_rates(np.random.default_rng(0), shape))


def test_fewer_websites_than_the_budget_are_refused():
    with pytest.raises(InvalidInputError, match=r"at least `budget` = 2 websites.*\(1, 4\)"):
        WebAdvertising(2).solve(np.zeros((1, 4)), None)


def test_a_prediction_that_is_not_a_number_is_refused():
    with pytest.raises(InvalidInputError, match="`y_hats` must be finite"):
        WebAdvertising(1).solve(np.full((2, 2), np.nan), None)


@pytest.mark.parametrize("arguments", [{"budget": 0}, {"max_subsets": 0}])
def test_counts_must_be_whole_numbers(arguments):
    with pytest.raises(InvalidInputError, match=f"`{next(iter(arguments))}` must be a whole"):
        WebAdvertising(**arguments)


def test_its_objective_is_smooth_in_the_label():
    rates = np.random.default_rng(0).uniform(0, 0.3, size=(10, 4, 5))
    assert Oracle(WebAdvertising(budget=2)).objective_kind(rates) is ObjectiveKind.SMOOTH
