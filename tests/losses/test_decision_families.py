"""Losses made of decisions, against the regret itself and against SPO+."""

from itertools import product

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl.domains import Knapsack, ShortestPath, TopK
from lodl.errors import InvalidInputError
from lodl.losses import DecisionHinges, DecisionRanking
from lodl.oracle import Answers
from lodl.problems import LinearProblem, Problem

few_examples = settings(deadline=None, max_examples=15, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
every_family = pytest.mark.parametrize("family", [DecisionHinges(), DecisionRanking()], ids=repr)


class Mixture(LinearProblem):
    """Mix ingredients at the lowest cost: a linear program, solved by HiGHS."""

    sense = "min"

    def solve(self, y_hat, context=None):
        content = np.array([[2.0, 1.0, 0.5, 1.5], [0.5, 1.0, 2.0, 1.0]])
        result = scipy.optimize.linprog(y_hat, -content, [-1.0, -1.0], bounds=(0, 1))
        return result.x.round(6)


class Investment(Problem):
    """Invest for return less risk: a quadratic program, whose decisions are all different."""

    sense = "max"

    def solve(self, y_hat, context):
        return np.clip(y_hat / (2 * context), 0, 1)

    def objective(self, z, y, context):
        return float(z @ y - context @ z**2)


PROBLEMS = {
    "top-k": (TopK(2), 6, None, 40),
    "path": (ShortestPath((3, 3)), 12, None, 40),
    "knapsack": (Knapsack((10.0,), ((3.0, 4.0, 5.0, 6.0, 2.0),)), 5, None, 40),
    "investment": (Investment(), 4, np.array([1.0, 2.0, 0.5, 1.0]), 40),
    "linear program": (Mixture(), 4, None, 10),
}


def decide(problem, y_hats, context):
    return np.array([problem.solve(y_hat, context) for y_hat in y_hats])


def ask(problem, y, y_hats, context=None):
    """Returns the answers about candidates, by solving and comparing, without the oracle."""
    sign = 1 if problem.sense == "min" else -1
    best, zs = problem.solve(y, context), decide(problem, y_hats, context)
    distinct, decision = np.unique(zs, axis=0, return_inverse=True)
    cost = [sign * problem.objective(z, y, context) for z in zs]
    regret = np.array(cost) - sign * problem.objective(best, y, context)
    return Answers(y, y_hats, regret, decision.ravel(), sign * (distinct - best))


def rows(phi):
    return {name: array[np.newaxis] for name, array in phi.items()}


def value(family, phi, d):
    return family.value(rows(phi), d[np.newaxis])[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
@few_examples
@given(seed=seeds)
def test_hinges_bound_the_regret_wherever_the_decision_was_sampled(name, seed):
    problem, dim, context, n_samples = PROBLEMS[name]
    rng = np.random.default_rng(seed)
    y = rng.uniform(0.5, 1.5, dim)
    points, elsewhere = (y + rng.normal(0, size, (n_samples, dim)) for size in (0.5, 1.5))
    answers, others = (ask(problem, y, y_hats, context) for y_hats in (points, elsewhere))
    same = np.abs(others.slope[:, np.newaxis] - answers.slope).max(axis=-1) < 1e-9
    is_known = same.any(axis=1)[others.decision]
    assert is_known.any() or name in ("investment", "linear program")  # with many decisions
    for margin in (1.0, 2.0, 3.5):
        family = DecisionHinges(margin=margin, min_weight=0)
        phi = family.fit(answers)
        assert (value(family, phi, answers.d) >= answers.regret - 1e-5).all()
        bound = value(family, phi, others.d)
        assert (bound[is_known] >= others.regret[is_known] - 1e-5).all()


def spo_plus(y, y_hat, decisions, best):
    """Returns SPO+ and a subgradient (Elmachtoub and Grigas), for costs and all decisions."""
    scores = decisions @ (y - 2 * y_hat)
    worst = decisions[scores.argmax()]
    return scores.max() + 2 * y_hat @ best - y @ best, 2 * (best - worst)


@few_examples
@given(seed=seeds)
def test_margin_2_and_all_decisions_are_spo_plus(seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 6, 5)
    everything = np.array([z for z in product([0.0, 1.0], repeat=5) if z @ weights >= 7])
    y = rng.standard_normal(5)
    best = everything[(everything @ y).argmin()]
    number = np.arange(len(everything))
    regret = (everything - best) @ y
    answers = Answers(
        y, y + rng.standard_normal((len(number), 5)), regret, number, everything - best
    )
    family = DecisionHinges(margin=2.0, min_weight=0)
    phi = rows(family.fit(answers))
    for d in rng.standard_normal((20, 5)):
        expected, slope = spo_plus(y, y + d, everything, best)
        assert family.value(phi, d[None, None])[0, 0] == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose(family.gradient(phi, d[None, None])[0, 0], slope, atol=1e-9)


def best_of_three(d, **changes):
    """Returns answers about the choice of the cheapest of three items, which cost 0, 1 and 3."""
    y, items = np.array([0.0, 1.0, 3.0]), np.eye(3)
    chosen = (y + d).argmin(axis=1)
    return Answers(
        y, y + d, y[chosen], **{"decision": chosen, "slope": items - items[0], **changes}
    )


D = np.array([[0.0, -2, 0], [0, 0, 0], [0, 0, -4], [0, -3, 0], [1.0, 1, 1]])


def test_each_decision_that_is_not_the_labels_own_is_a_parameter():
    phi = DecisionHinges(min_weight=0).fit(best_of_three(D))
    np.testing.assert_array_equal(phi["regret"], [3, 1])
    np.testing.assert_array_equal(phi["slope"], [[-1, 0, 1], [-1, 1, 0]])
    assert not phi["w"].any()


def test_decisions_that_account_for_most_regret_are_kept():
    often = best_of_three(np.repeat(D, [4, 1, 1, 1, 1], axis=0))
    for answers, regret in ((best_of_three(D), 3), (often, 1)):
        phi = DecisionHinges(max_decisions=1).fit(answers)
        np.testing.assert_array_equal(phi["regret"], [regret])


def test_ranking_is_the_divergence_of_two_soft_rankings():
    family = DecisionRanking(temperature=0.5, min_weight=0)
    phi, d = family.fit(best_of_three(D)), np.array([[0.3, -0.5, 0.2], [-4.0, 9.0, 0.0]])
    t = 0.5 * 2.0  # decisions cost 1 and 3 on average

    def ranking(y):
        shares = np.exp(-(y - y[0]) / t)
        return shares / shares.sum()

    y = np.array([0.0, 1.0, 3.0])
    expected = [t * (ranking(y) * np.log(ranking(y) / ranking(y + error))).sum() for error in d]
    np.testing.assert_allclose(value(family, phi, d), expected)
    padded = {
        name: np.concatenate([phi[name], np.full((2, *phi[name].shape[1:]), padding)])
        for name, padding in family.padded.items()
    }
    np.testing.assert_allclose(value(family, {**phi, **padded}, d), expected)


@every_family
def test_the_squared_error_costs_its_share_of_the_mean_regret_at_the_samples(family):
    answers = best_of_three(D)
    kind = type(family)
    without = value(kind(min_weight=0), kind(min_weight=0).fit(answers), answers.d)
    for settings_, share in (
        ({"min_weight": 0.25}, 0.25),
        ({"squared_error": 3.0}, 3.0),
        ({"squared_error": 0.1, "min_weight": 0.2}, 0.2),
    ):
        mixed = value(kind(**settings_), kind(**settings_).fit(answers), answers.d)
        assert (mixed - without).mean() == pytest.approx(share * answers.regret.mean())


@every_family
def test_a_direction_that_no_decision_sees_is_pinned_by_the_least_weight(family):
    answers, drift = best_of_three(D), np.array([[1.0, 1, 1], [10, 10, 10]])
    free = type(family)(min_weight=0)
    np.testing.assert_allclose(value(free, free.fit(answers), drift), 0, atol=1e-12)
    near, far = value(family, family.fit(answers), drift)
    assert 0 < near < 0.1 * answers.regret.mean()
    assert far == pytest.approx(100 * near)


def test_the_curvature_of_hinges_is_that_of_squares_above_them():
    family = DecisionHinges(margin=3.0)
    phi = rows(family.fit(best_of_three(D)))
    c = 2.0  # decisions cost 1 and 3 on average
    steepest = np.array([1.0, 1.0, 1.0])
    expected = 3.0**2 * steepest**2 / (2 * c) + 2 * phi["w"][0]
    np.testing.assert_allclose(family.curvature(phi, D[None])[0], np.tile(expected, (5, 1)))
    u = np.linspace(-5, 5, 1001)
    above = (u + c) ** 2 / (4 * c)
    assert (above >= np.maximum(u, 0) - 1e-12).all()
    np.testing.assert_allclose(above[u == c], c)


@every_family
@few_examples
@given(seed=seeds)
def test_the_curvature_is_positive_and_bounds_the_second_derivative(family, seed):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(5)
    phi = rows(family.fit(ask(TopK(2), y, y + rng.standard_normal((20, 5)))))
    d = 2 * rng.standard_normal((1, 30, 5))
    curvature = family.curvature(phi, d)
    assert (curvature > 0).all()
    if isinstance(family, DecisionRanking):
        steps = 1e-4 * np.eye(5)
        second = [
            (family.value(phi, d + s) - 2 * family.value(phi, d) + family.value(phi, d - s)) / 1e-8
            for s in steps
        ]
        assert (np.stack(second, axis=-1) <= curvature + 1e-5).all()


@every_family
def test_regrets_below_zero_count_as_zero(family):
    answers = best_of_three(D)
    heuristic = Answers(
        answers.y, answers.y_hat, answers.regret - 1.5, answers.decision, answers.slope
    )
    phi = family.fit(heuristic)
    assert (phi["regret"] >= 0).all()
    assert value(family, phi, np.zeros((1, 3))) == [0]


@every_family
@pytest.mark.parametrize("missing", ["decision", "slope"])
def test_samples_without_slopes_are_refused_with_the_way_to_get_them(family, missing):
    with pytest.raises(InvalidInputError, match=r"must have slopes.*slopes=True"):
        family.fit(best_of_three(D, **{missing: None}))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DecisionHinges(margin=0.5), "`margin` must be a number of at least 1, got 0.5"),
        (lambda: DecisionHinges(margin=np.nan), "`margin` must be"),
        (lambda: DecisionRanking(temperature=0), "`temperature` must be a number above 0, got 0"),
        (lambda: DecisionHinges(max_decisions=0), "`max_decisions` must be a whole number"),
        (lambda: DecisionRanking(squared_error=-1), "`squared_error` must be a number of at least"),
        (
            lambda: DecisionHinges(min_weight=2),
            "`min_weight` must be a number of at least 0 and at",
        ),
    ],
)
def test_settings_that_make_no_loss_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
