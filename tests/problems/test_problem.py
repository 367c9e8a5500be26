import numpy as np
import pytest

from lodl.errors import OracleError, ProblemError
from lodl.oracle import Oracle
from lodl.oracle._failures import Options
from lodl.oracle._guard import Guard
from lodl.problems import Problem, VectorisedProblem
from lodl.problems._problem import sign_of
from lodl.problems._regret import regret_of
from lodl.testing import check_problem

UNLIMITED = Options(None, "raise", 0.1)


def decision_losses(problem, y_hats, y, context=None):
    """Return the decision losses of many predictions for one instance."""
    contexts = None if context is None else [context]
    oracle = Oracle(problem)
    return oracle.decision_loss(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


def regrets(problem, y_hats, y, context=None):
    """Return the regrets of many predictions for one instance."""
    contexts = None if context is None else [context]
    return Oracle(problem).regret(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


class PickCheapest(Problem):
    sense = "min"

    def solve(self, y_hat, context):
        return int(np.argmin(y_hat))

    def objective(self, z, y, context):
        return y[z]


class PickDearest(Problem):
    sense = "max"

    def solve(self, y_hat, context):
        return int(np.argmax(y_hat))

    def objective(self, z, y, context):
        return y[z]


def test_a_problem_without_sense_is_an_error_at_first_use():
    class Forgetful(Problem):
        def solve(self, y_hat, context):
            return 0

        def objective(self, z, y, context):
            return 0.0

    with pytest.raises(ProblemError, match="Forgetful does not state its sense"):
        decision_losses(Forgetful(), np.zeros((1, 2)), np.zeros(2))


def test_a_sense_that_is_not_min_or_max_is_an_error_at_class_creation():
    with pytest.raises(ProblemError, match='of Wrong must be "min" or "max", got \'maximise\''):

        class Wrong(Problem):
            sense = "maximise"  # type: ignore[assignment]


def test_sense_may_be_set_on_the_instance():
    class Either(PickCheapest):
        def __init__(self, sense):
            self.sense = sense

    assert sign_of(Either("min")) == 1
    assert sign_of(Either("max")) == -1


@pytest.mark.parametrize("problem", [PickCheapest(), PickDearest()])
def test_regret_is_scored_under_the_true_label(problem):
    # Public benchmarks have scored the decision under the perturbed prediction. There the
    # decision looks as good as the prediction promises; under the label it costs 2.
    y = np.array([1.0, 3.0])
    y_hat = np.array([[5.0, 2.0]])  # the wrong way round
    assert regrets(problem, y_hat, y) == pytest.approx([2.0])


@pytest.mark.parametrize("problem", [PickCheapest(), PickDearest()])
def test_regret_is_zero_at_the_label_and_never_negative_for_an_exact_solver(problem):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(6)
    y_hats = np.concatenate([y[np.newaxis], y + rng.standard_normal((200, 6))])
    values = regrets(problem, y_hats, y)
    assert values[0] == 0
    assert (values >= 0).all()
    assert values.max() > 0


def test_decision_loss_has_the_sign_of_the_sense():
    y = np.array([1.0, 3.0])
    assert decision_losses(PickCheapest(), y[np.newaxis], y) == [1.0]
    assert decision_losses(PickDearest(), y[np.newaxis], y) == [-3.0]


def test_wrong_number_of_decisions_is_an_error():
    class OneTooFew(PickCheapest):
        def solve_many(self, y_hats, context):
            return super().solve_many(y_hats, context)[:-1]

    with pytest.raises(ProblemError, match=r"one decision per prediction \(3\), got 2"):
        Guard(OneTooFew(), UNLIMITED).solve_many(np.ones((3, 2)), None)


def test_objective_that_is_not_a_number_per_decision_is_an_error():
    class Vector(PickCheapest):
        def objective(self, z, y, context):
            return np.zeros(2)

    with pytest.raises(OracleError, match=r"one number per decision, got shape \(2,\)"):
        decision_losses(Vector(), np.ones((3, 2)), np.ones(2))


def test_a_solver_that_writes_into_its_prediction_changes_nothing_of_the_callers():
    class Negating(PickDearest):
        def solve(self, y_hat, context):
            y_hat *= -1  # picks the largest by the smallest of the negatives
            return int(np.argmin(y_hat))

    y, y_hats = np.array([1.0, 3.0]), np.array([[5.0, 2.0], [0.0, 1.0]])
    assert regrets(Negating(), y_hats, y).tolist() == [2.0, 0.0]
    assert y.tolist() == [1.0, 3.0]
    assert y_hats.tolist() == [[5.0, 2.0], [0.0, 1.0]]


def test_an_objective_that_writes_into_the_label_raises_where_it_does():
    class Overwriting(PickCheapest):
        def objective(self, z, y, context):
            y[z] = 0.0
            return 0.0

    y = np.ones(2)
    with pytest.raises(OracleError, match="read-only"):
        decision_losses(Overwriting(), np.ones((1, 2)), y)
    y[0] = 2.0  # the caller's own array stays as it was, and writable
    assert y.tolist() == [2.0, 1.0]


def test_only_a_problem_with_its_own_solve_many_is_vectorised():
    class Vectorised(PickCheapest):
        def solve_many(self, y_hats, context):
            return y_hats.argmin(axis=1)

    assert Vectorised().is_vectorised
    assert not PickCheapest().is_vectorised


def test_an_objective_without_return_is_told():
    class NoReturn(PickCheapest):
        def objective(self, z, y, context):
            y[z]

    with pytest.raises(OracleError, match=r"`objective` returned None: is a `return` missing"):
        decision_losses(NoReturn(), np.ones((3, 2)), np.ones(2))


def test_a_decision_of_a_vectorised_problem_may_be_a_tuple():
    class PlaceAndValue(VectorisedProblem):
        sense = "max"

        def solve_many(self, y_hats, context):
            return [(int(y_hat.argmax()), y_hat.tolist()) for y_hat in y_hats]

        def objective_many(self, zs, y, context):
            return np.array([y[place] for place, _ in zs])

    problem = PlaceAndValue()
    y = np.array([1.0, 3.0])
    assert problem.objective(problem.solve(y), y) == 3.0
    check_problem(problem, np.random.default_rng(0).random((3, 4)))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_regret_of_rounding_is_zero_and_other_regret_is_kept_in_any_unit(unit):
    optimum = np.array([1.0, -2.0])
    losses = optimum + np.array([[1e-15, -3e-15], [1e-6, -1e-6]])
    regret = regret_of(unit * losses, unit * optimum)
    assert not regret[0].any()
    np.testing.assert_allclose(regret[1], [unit * 1e-6, -unit * 1e-6], rtol=1e-6)
