import numpy as np
import pytest

import lodl
from lodl.errors import ShapeError
from lodl.oracle import Oracle
from lodl.oracle._failures import Options
from lodl.oracle._guard import Guard
from lodl.problems._regret import gradients, read_only, regret_of
from lodl.testing import check_problem

UNLIMITED = Options(None, "raise", 0.1)


def decision_losses(problem, y_hats, y, context=None):
    """Return the decision losses of many predictions for one instance."""
    contexts = None if context is None else [context]
    oracle = Oracle(problem)
    return oracle.decision_loss(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


RNG = np.random.default_rng(0)


class Cheapest(lodl.LinearProblem):
    sense = "min"

    def solve(self, y_hat, context):
        return np.eye(y_hat.size)[y_hat.argmin()].reshape(y_hat.shape)


class CheapestOfMany(lodl.LinearProblem):
    sense = "min"

    def solve_many(self, y_hats, context):
        best = y_hats.reshape(len(y_hats), -1).argmin(axis=1)
        return np.eye(y_hats[0].size)[best].reshape(y_hats.shape)


@pytest.mark.parametrize("problem", [Cheapest(), CheapestOfMany()])
@pytest.mark.parametrize("label_shape", [(4,), (2, 3)])
def test_one_method_is_enough_for_labels_of_any_shape(problem, label_shape):
    y, y_hats = RNG.random(label_shape), RNG.random((5, *label_shape))
    check_problem(problem, y[np.newaxis])
    losses = decision_losses(problem, y_hats, y)
    np.testing.assert_allclose(losses, y.ravel()[y_hats.reshape(5, -1).argmin(axis=1)])


def test_the_objective_has_the_same_bits_alone_and_among_others():
    zs, y = RNG.random((101, 5, 10)), RNG.standard_normal((5, 10))
    together = Cheapest().objective_many(zs, y)
    assert together.tolist() == [Cheapest().objective(z, y) for z in zs]
    assert together.tolist() == Cheapest().objective_many(np.asfortranarray(zs), y).tolist()


def test_a_decision_of_another_shape_than_the_label_is_refused():
    with pytest.raises(ShapeError, match=r"must have the label's shape \(3,\), got \(1,\)"):
        Cheapest().objective(np.ones(1), np.ones(3))


def test_a_problem_without_a_solver_says_what_to_write():
    class Empty(lodl.LinearProblem):
        sense = "min"

    with pytest.raises(NotImplementedError, match="must write `solve` or `solve_many`"):
        Empty().solve(np.ones(3), None)


@pytest.mark.parametrize("sense", ["min", "max"])
def test_differences_give_the_slope_that_a_linear_problem_has_for_free(sense):
    label = RNG.random((2, 3))
    decisions = RNG.random((4, 2, 3))
    by_differences = lodl.problem(np.copy, lambda z, y: (z * y).sum(), sense=sense)

    class Free(Cheapest):
        pass

    Free.sense = sense
    arguments = (decisions, read_only(label), None, np.asarray(0.5))
    free = gradients(Free(), *arguments)
    np.testing.assert_allclose(gradients(by_differences, *arguments), free, atol=1e-12)
    sign = 1 if sense == "min" else -1
    np.testing.assert_array_equal(free, sign * decisions.reshape(4, -1))


def test_differences_stay_on_the_side_where_the_objective_is_defined():
    def cost(z, y):
        return z * y[0] if y[0] >= 1 else np.nan

    problem = lodl.problem(np.max, cost, sense="min")
    found = gradients(problem, [3.0], np.array([1.0]), None, np.asarray(1.0))
    np.testing.assert_allclose(found, [[3.0]])


def test_a_slope_of_another_shape_is_refused():
    class Odd(Cheapest):
        def slope(self, z, y, context=None):
            return np.ones(2)

    with pytest.raises(lodl.errors.ShapeError, match="`slope` must have the label's shape"):
        gradients(Odd(), np.ones((1, 3)), np.ones(3), None, np.asarray(1.0))


@pytest.mark.parametrize("constant", [0.0, 1e9, -3e9])
def test_a_constant_added_to_the_objective_changes_no_regret(constant):
    losses = np.array([0.0, 0.25, 0.5]) + constant
    np.testing.assert_allclose(regret_of(losses, constant), [0.0, 0.25, 0.5], atol=1e-6)


def test_rounding_beside_real_costs_counts_as_nothing():
    np.testing.assert_array_equal(regret_of([1.0, 1.0 + 1e-15, 2.0], 1.0), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(regret_of([1.0 + 2e-16, 1.0 - 2e-16], 1.0), [0.0, 0.0])


def test_a_solver_that_returns_its_own_buffer_is_scored_before_it_writes_again():
    buffer = np.zeros(3)

    class Buffered(lodl.LinearProblem):
        sense = "max"

        def solve(self, y_hat, context):
            buffer[:] = 0
            buffer[y_hat.argmax()] = 1
            return buffer

    losses = decision_losses(Buffered(), np.eye(3), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(losses, [-1.0, -2.0, -3.0])


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_solver_that_returns_nothing_is_an_error(vectorised):
    class Forgetful(lodl.LinearProblem):
        sense = "min"

    def nothing(self, y_hat, context=None):
        pass

    setattr(Forgetful, "solve_many" if vectorised else "solve", nothing)
    guard = Guard(Forgetful(), UNLIMITED)
    with pytest.raises(lodl.errors.ProblemError, match="returned None"):
        (guard.solve_many if vectorised else guard.solve)(np.ones((2, 3)), None)
