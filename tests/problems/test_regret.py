"""Regrets and their rounding, slopes and their differences, and what a problem must return."""

from typing import Any

import numpy as np
import pytest

import lodl
from lodl.errors import ProblemError, ShapeError
from lodl.oracle import Oracle
from lodl.oracle._failures import Options
from lodl.oracle._guard import Guard
from lodl.problems import Problem
from lodl.problems._regret import (
    check_sense_of,
    gradients,
    is_linear,
    read_only,
    regret_of,
    score,
    score_many,
    score_rows,
)

UNLIMITED = Options(None, "raise", 0.1)


class Scaled(Problem):
    """A decision z costs sum_i z_i y_i^2; the best one is known."""

    sense = "min"

    def solve(self, y_hat, context):
        return np.where(y_hat == y_hat.min(), 1.0, 0.0)

    def objective(self, z, y, context):
        return (z * y**2).sum()


class Gained(Scaled):
    sense = "max"  # type: ignore[assignment]


Y = np.array([[0.5, -2.0], [3.0, 1.0]])
ZS = np.random.default_rng(0).normal(size=(4, 2, 2))
SPREAD = np.array([0.5, 2.0])  # of each column


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_rounding_is_a_billionth_of_the_largest_regret_beside_it(unit):
    sizes = np.array([[1.0, 1e-4, 1e-8, 1e-10], [1e-4, 1e-4, 1e-10, 1e-14]])
    found = regret_of(unit * sizes, 0.0)
    expected = unit * np.array([[1.0, 1e-4, 1e-8, 0.0], [1e-4, 1e-4, 1e-10, 0.0]])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(regret_of(-unit * sizes, 0.0), -expected)


def test_the_last_digits_of_a_large_objective_are_no_regret():
    optimum = 1e6
    digit = np.spacing(optimum)
    found = regret_of(optimum + digit * np.array([-4, 4, 100.0, -100.0]), optimum)
    np.testing.assert_array_equal(found, digit * np.array([0.0, 0.0, 100.0, -100.0]))
    np.testing.assert_array_equal(regret_of(-optimum + 4 * digit, -optimum), 0.0)


@pytest.mark.parametrize("unknown", [np.nan, np.inf, -np.inf])
def test_a_loss_that_is_not_finite_stays_and_changes_no_other(unknown):
    others = [1.5, 1.0 + 1e-6, 1.0 + 1e-11]
    found = regret_of([*others, unknown], 1.0)
    np.testing.assert_array_equal(found, [*regret_of(others, 1.0), unknown])
    assert found[1] > found[2] == 0.0


def test_regrets_need_one_call_for_the_label_and_one_for_each_prediction():
    seen = []

    class Counted(Scaled):
        def solve(self, y_hat, context):
            seen.append(y_hat.tolist())
            return super().solve(y_hat, context)

    y, y_hats = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 3.0], [2.0, 2.0]])
    found = Oracle(Counted()).regret(y_hats[:, None], y[None])[:, 0]
    np.testing.assert_array_equal(found, [3.0, 0.0, 4.0])  # the last takes both
    assert seen == [y.tolist(), *y_hats.tolist()]


@pytest.mark.parametrize("problem", [Scaled(), Gained()])
def test_slopes_of_differences_are_exact_for_a_quadratic_objective(problem):
    y = Y.copy()
    found = gradients(problem, ZS, read_only(y), None, SPREAD)
    sign = {"min": 1, "max": -1}[problem.sense]
    np.testing.assert_allclose(found, sign * (2 * ZS * Y).reshape(4, 4), atol=1e-9)
    np.testing.assert_array_equal(y, Y)


@pytest.mark.parametrize("side", [-1, 1])
def test_where_an_objective_ends_at_the_label_differences_go_to_the_other_side(side):
    """Forward and backward differences of a square are off by one step; half of the decisions
    are defined on both sides, where differences are central."""

    class OneSided(Scaled):
        def objective(self, z, y, context):
            is_outside = z[0, 0] > 0 and (side * y < side * Y).any()
            return np.nan if is_outside else super().objective(z, y, context)

    ends = ZS[:, 0, 0] > 0
    assert 0 < ends.sum() < 4
    found = gradients(OneSided(), ZS, read_only(Y), None, SPREAD).reshape(ZS.shape)
    step = np.where(ends[:, np.newaxis, np.newaxis], side * 1e-3 * SPREAD, 0.0)
    np.testing.assert_allclose(found, ZS * (2 * Y + step), atol=1e-9)


def with_slope(slope, kind: Any = Scaled):
    class Known(kind):
        def slope(self, z, y, context):
            return slope(z, y)

    return Known()


@pytest.mark.parametrize("kind", [Scaled, Gained])
def test_the_slope_of_a_problem_is_taken_with_the_sign_of_its_sense(kind):
    problem = with_slope(lambda z, y: 7 * z, kind)  # not the derivative, to see whose it is
    sign = {"min": 1, "max": -1}[kind.sense]
    found = gradients(problem, ZS, read_only(Y), None, SPREAD)
    np.testing.assert_array_equal(found, sign * 7 * ZS.reshape(4, 4))


@pytest.mark.parametrize("kind", [Scaled, Gained])
@pytest.mark.parametrize("unknown", [0, 2])
def test_one_slope_that_is_not_known_is_reason_for_differences(kind, unknown):
    problem = with_slope(lambda z, y: None if (z == ZS[unknown]).all() else 7 * z, kind)
    sign = {"min": 1, "max": -1}[kind.sense]
    found = gradients(problem, ZS, read_only(Y), None, SPREAD)
    np.testing.assert_allclose(found, sign * (2 * ZS * Y).reshape(4, 4), atol=1e-9)


def test_a_slope_of_another_shape_is_an_error():
    message = r"`slope` must have the label's shape \(2, 2\), got \(2,\)"
    with pytest.raises(ShapeError, match=message):
        gradients(with_slope(lambda z, y: z[0]), ZS, read_only(Y), None, SPREAD)


@pytest.mark.parametrize(("n_positive", "n_negative"), [(0, 7), (3, 3), (9, 3), (0, 0), (2, 18)])
def test_a_few_decisions_better_than_the_labels_are_no_wrong_sense(n_positive, n_negative):
    check_sense_of(Scaled(), n_positive, n_negative)


@pytest.mark.parametrize(("n_positive", "n_negative"), [(0, 8), (1, 10), (2, 19)])
def test_nearly_all_decisions_better_than_the_labels_are_a_wrong_sense(n_positive, n_negative):
    message = rf'^{n_negative} of {n_negative + n_positive} predictions .*"min"` of Scaled wrong'
    with pytest.raises(ProblemError, match=message):
        check_sense_of(Scaled(), n_positive, n_negative)


ECHO = lodl.problem(lambda y_hat: y_hat[0], lambda z, y: z, sense="min")  # regret y_hat - y


def test_decisions_that_are_better_by_little_beside_one_bad_one_are_a_wrong_sense_still():
    y_hat = np.array([100.0, *[-1.0] * 10])[:, np.newaxis]
    with pytest.raises(ProblemError, match=r"^10 of 11 predictions"):
        lodl.evaluation.regret(ECHO, y_hat, np.zeros((11, 1)))


def test_decisions_that_are_better_by_the_tolerance_of_a_solver_are_no_wrong_sense():
    y_hat = np.array([100.0, *[-1e-6] * 10])[:, np.newaxis]
    found = lodl.evaluation.regret(ECHO, y_hat, np.zeros((11, 1)))
    np.testing.assert_array_equal(found, y_hat[:, 0])


class Returns(Problem):
    """Returns what it was given."""

    sense = "min"

    def __init__(self, zs, values=None):
        self.zs, self.values = zs, values

    def solve(self, y_hat, context):
        return self.zs

    def solve_many(self, y_hats, context):
        return self.zs

    def objective(self, z, y, context):
        return self.values

    def objective_many(self, zs, y, context):
        return self.values


def test_a_decision_must_not_be_none():
    with pytest.raises(ProblemError, match=r"^`solve` returned None: is a `return` missing"):
        Guard(Returns(None), UNLIMITED).solve(np.ones(2), None)
    for zs in (None, [1, None], (None, 1)):
        with pytest.raises(ProblemError, match=r"^`solve_many` returned None"):
            Guard(Returns(zs), UNLIMITED).solve_many(np.ones((2, 2)), None)


@pytest.mark.parametrize("zs", [[0, 0], (0, False), np.zeros(2), np.array([None, 0])])
def test_decisions_may_be_any_sequence_and_falsy(zs):
    assert Guard(Returns(zs), UNLIMITED).solve(np.ones(2), None) is zs
    assert Guard(Returns(zs), UNLIMITED).solve_many(np.ones((2, 2)), None) is zs


def test_many_decisions_must_be_one_per_prediction():
    message = r"one decision per prediction \(2\), got 3"
    with pytest.raises(ShapeError, match=message):
        Guard(Returns([1, 2, 3]), UNLIMITED).solve_many(np.ones((2, 2)), None)


@pytest.mark.parametrize("value", [2.0, 2, np.float32(2), np.array(2.0), True + 1])
def test_an_objective_is_a_float_whatever_number_it_was(value):
    found = score(Returns(0, value), 0, np.ones(2), None)
    assert type(found) is float
    assert found == 2.0


def test_many_objectives_must_be_one_per_decision():
    found = score_many(Returns(0, [1, 2]), [0, 0], np.ones(2), None)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1.0, 2.0])
    message = r"expected shape \(2,\), got \(2, 1\)"
    with pytest.raises(ShapeError, match=message):
        score_many(Returns(0, [[1], [2]]), [0, 0], np.ones(2), None)


def test_only_the_objective_of_linear_problems_is_known_to_be_linear():
    class Fee(lodl.domains.TopK):
        def objective(self, z, y, context=None):
            return super().objective(z, y, context) - 1.0

    assert is_linear(lodl.domains.TopK(1))
    assert not is_linear(Fee(1))
    assert not is_linear(Scaled())


def test_decisions_of_several_labels_are_scored_under_their_own():
    ys, zs = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 0.5]]), np.arange(12.0).reshape(6, 2)
    expected = {Scaled: (zs * np.repeat(ys, 2, axis=0) ** 2).sum(axis=1).reshape(3, 2)}
    expected[lodl.domains.TopK] = (zs * np.repeat(ys, 2, axis=0)).sum(axis=1).reshape(3, 2)
    for problem in (Scaled(), lodl.domains.TopK(1)):
        found = score_rows(problem, zs, ys, None)
        np.testing.assert_array_equal(found, expected[type(problem)])


def test_decision_losses_of_a_vectorised_problem_are_signed_and_keep_the_predictions():
    class Negating(Gained):
        def solve_many(self, y_hats, context):
            y_hats *= -1
            return [self.solve(-y_hat, context) for y_hat in y_hats]

    y, y_hats = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
    expected = Oracle(Gained()).decision_loss(y_hats[:, None], y[None])[:, 0]
    np.testing.assert_array_equal(expected, [-4.0, -1.0])
    found = Oracle(Negating()).decision_loss(y_hats[:, None], y[None])[:, 0]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(y_hats, [[2.0, 1.0], [1.0, 3.0]])
