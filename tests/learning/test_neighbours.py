"""The learner on linear programs, whose calls also bring the decisions next to their own."""

import numpy as np
import pytest

import lodl
from lodl.learning._defaults import Schedule
from lodl.learning._rounds import Evidence, cheapest_known
from lodl.learning._search import Contender
from lodl.oracle import Oracle
from lodl.problems.highs import LinearProgram
from lodl.testing import check_problem

RNG = np.random.default_rng(0)
N = 60
PROGRAM = LinearProgram(RNG.uniform(0.5, 3, (3, 8)), "max", row_upper=8, upper=2)
CAPACITIES = [{"row_upper": c} for c in RNG.uniform(6, 9, (N, 3))]
X = RNG.normal(size=(N, 3))
Y = np.exp(0.7 * X @ RNG.normal(size=(3, 8)))


def evidence(problem=PROGRAM, context=CAPACITIES, y=Y, families=None, **numbers):
    oracle = Oracle(problem)
    made = Evidence.of(oracle, oracle.instances(y, context), families, Schedule(**numbers), 0)
    made.start(residuals=-Y)
    return made


@pytest.mark.slow
def test_a_context_and_neighbours_need_five_calls_an_instance():
    model = lodl.DecisionFocusedRegressor(PROGRAM)
    assert "next to its own" in model.plan(X, Y, context=CAPACITIES)
    model.fit(X, Y, context=CAPACITIES)
    assert model.result_.n_calls <= 5 * N + 40  # and first looks, and decisions that it shows
    assert (
        model.regret(X, Y, CAPACITIES).mean()
        < 0.8
        * lodl.evaluation.regret(PROGRAM, model.plain_.predict(X), Y, context=CAPACITIES).mean()
    )


@pytest.mark.slow
def test_a_limit_on_calls_is_kept():
    model = lodl.DecisionFocusedRegressor(PROGRAM, max_calls=3 * N + 20)
    model.fit(X, Y, context=CAPACITIES)
    assert model.result_.n_calls <= 3 * N + 20


def test_one_call_at_each_label_brings_the_neighbours_of_its_decision():
    made = evidence()
    assert made.n_calls <= N + 18  # and a first look at the objective
    slopes = [len(answers.slope) for answers in made.samples]
    assert min(slopes) == 1 + 8


@pytest.mark.parametrize("numbers", [{"n_rounds": 0}, {"families": [lodl.WeightedMSE()]}])
def test_points_around_labels_are_sampled_without_rounds_or_decision_families(numbers):
    assert evidence(**numbers).samples.n_samples >= 5


def test_known_decisions_estimate_regrets_and_never_too_highly_at_the_label():
    made = evidence()
    mean = np.broadcast_to(Y.mean(axis=0), Y.shape)
    made.scored(Contender("mean", 0, mean, is_baseline=True), 1)
    loss = made.learn(made.families[0])
    np.testing.assert_array_equal(cheapest_known(loss, Y), 0)
    far = Y[::-1].copy()
    known, true = (
        cheapest_known(loss, far),
        lodl.evaluation.regret(PROGRAM, far, Y, context=CAPACITIES),
    )
    assert np.corrcoef(known, true)[0, 1] > 0.3
    assert (known >= 0).all()


@pytest.mark.parametrize(("n_rounds", "n_at_baseline"), [(1, 1), (2, 1), (3, 2)])
def test_of_three_rounds_the_first_two_are_at_and_beyond_the_baseline(n_rounds, n_at_baseline):
    made = evidence(n_rounds=n_rounds)
    made.by_estimate, before = True, made.n_calls
    mean = np.broadcast_to(Y.mean(axis=0), Y.shape)
    made.scored(Contender("mean", 0, mean, is_baseline=True), 1)
    assert made.n_calls - before == n_at_baseline * N


@pytest.mark.parametrize(("n_numbers", "has_more"), [(8, False), (100, True)])
def test_without_a_context_only_long_labels_share_the_neighbours_of_decisions(n_numbers, has_more):
    program = LinearProgram(np.ones((1, n_numbers)), "max", row_upper=3, upper=1)
    made = evidence(program, None, np.random.default_rng(1).random((5, n_numbers)))
    assert (len(made.samples.pool()) > len(Y[:5])) == has_more


def test_a_check_says_that_a_call_brings_neighbours():
    assert "next to its own" in str(check_problem(PROGRAM, Y))
    assert "next to its own" not in str(check_problem(lodl.domains.TopK(1), Y))


def test_whole_numbers_of_a_context_are_known_before_neighbours_are_promised():
    whole = np.array([{"integrality": 1}] * len(Y), dtype=object)
    report = check_problem(PROGRAM, Y, context=whole)
    assert "next to its own" not in str(report)
    assert not evidence(PROGRAM, whole, Y).situation.has_neighbours
