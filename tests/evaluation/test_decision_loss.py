import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError, OracleError, ProblemError
from lodl.evaluation import (
    decision_loss,
    regret,
)
from lodl.oracle import Oracle

CHEAPEST = lodl.problem(np.argmin, lambda z, y: y.flat[z], sense="min")
DEAREST = lodl.problem(np.argmax, lambda z, y: y.flat[z], sense="max")
PROBLEMS = {"min": CHEAPEST, "max": DEAREST}


@pytest.fixture
def y():
    return np.random.default_rng(0).random((30, 2, 3))


def failing_at_third_instance(failure):
    """A problem whose solver calls `failure` for the instance with context 2."""
    return lodl.problem(
        lambda y_hat, context: failure() if context == 2 else 0.0, lambda z, y: z, sense="min"
    )


@pytest.mark.parametrize("sense", PROBLEMS)
def test_regret_is_loss_above_the_optimum(sense, y):
    problem = PROBLEMS[sense]
    y_hat = y[::-1]
    loss = decision_loss(problem, y_hat, y)
    best = y.min(axis=(1, 2)) if sense == "min" else -y.max(axis=(1, 2))
    assert regret(problem, y_hat, y) == pytest.approx(loss - best)


def test_leading_axes_are_kept_and_score_as_one_by_one(y):
    y_hats = np.random.default_rng(0).random((4, *y.shape))
    together = decision_loss(CHEAPEST, y_hats, y)
    assert together.shape == (4, 30)
    for row, y_hat in zip(together, y_hats, strict=True):
        assert np.array_equal(row, decision_loss(CHEAPEST, y_hat, y))


def test_each_instance_gets_its_own_context():
    problem = lodl.problem(
        lambda y_hat, context: context, lambda z, y, context: z * y[0], sense="min"
    )
    y = np.ones((3, 1))
    assert decision_loss(problem, y, y, context=[1, 2, 3]).tolist() == [1, 2, 3]


def test_two_workers_give_the_same_bits_as_one(y):
    y_hat = np.random.default_rng(0).random(y.shape)
    serial = decision_loss(Oracle(CHEAPEST, n_jobs=1), y_hat, y)
    assert np.array_equal(serial, decision_loss(Oracle(CHEAPEST, n_jobs=2), y_hat, y))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_hat": np.ones((3, 3))}, r"`y_hat` must have the labels' shape \(3, 2\)"),
        ({"y_hat": np.full((3, 2), np.nan)}, r"`y_hat` must be finite, got nan in row 0, column 0"),
        ({"y": np.ones(3)}, r"`y` must have the instance on the first axis"),
        ({"y": np.ones((0, 2))}, r"`y` must not be empty"),
        ({"y": [["a", "b"]]}, r"`y` must be an array of numbers"),
        ({"y": np.ones((3, 2), dtype=complex)}, r"`y` must be .*numbers.*complex"),
        ({"y": np.ma.masked_equal([[1, 2], [3, 4]], 3)}, r"`y` must not have masked entries"),
        ({"context": np.array(3)}, r"`context` must be a sequence or an array .* got ndarray"),
        ({"context": [1, 2]}, r"`context` must have one entry per instance \(3\), got 2"),
        ({"context": {"a": 1}}, r"`context` must be a sequence or an array .* got dict"),
    ],
)
def test_bad_input_names_the_argument(arguments, message):
    good = {"y_hat": np.ones((3, 2)), "y": np.ones((3, 2)), "context": None}
    with pytest.raises(InvalidInputError, match=message):
        decision_loss(CHEAPEST, **(good | arguments))


def test_a_masked_array_without_masked_entries_is_accepted():
    y = np.ma.masked_array([[1.0, 2.0]])
    assert decision_loss(CHEAPEST, y, y).tolist() == [1.0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_of_the_solver_names_the_instance(y, n_jobs):
    problem = failing_at_third_instance(lambda: 1 / 0)
    message = "failed at instance 2, the prediction: ZeroDivisionError: division by zero"
    with pytest.raises(OracleError, match=message) as caught:
        decision_loss(Oracle(problem, n_jobs=n_jobs), y, y, context=range(30))
    assert caught.value.__cause__ is not None


def test_an_error_of_our_own_keeps_its_type_and_names_the_instance(y):
    def refuse():
        raise InvalidInputError("no optimum")

    with pytest.raises(InvalidInputError, match="no optimum") as caught:
        decision_loss(failing_at_third_instance(refuse), y, y, context=range(30))
    assert caught.value.__notes__ == ["This was at instance 2, the prediction."]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_decision_loss_that_is_not_finite_is_an_error_that_names_the_instance(y, value):
    problem = failing_at_third_instance(lambda: value)
    with pytest.raises(OracleError, match=f"instance 2, the prediction: the objective is {value}"):
        decision_loss(problem, y, y, context=range(30))


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (lodl.domains.TopK, r"an instance, got the class TopK\. Call it: `TopK\(\.\.\.\)`"),
        (3, r"`problem` must be a `lodl\.Problem`, got 3\. To make one"),
    ],
)
def test_a_problem_that_is_none_is_an_error(y, problem, message):
    with pytest.raises(InvalidInputError, match=message):
        regret(problem, y, y)


def test_predictions_are_projected_into_the_valid_range():
    def solve(y_hat):
        if y_hat.min() < 0:
            raise ValueError("negative cost")
        return np.argmin(y_hat)

    projecting = lodl.problem(
        solve, lambda z, y: y[z], sense="min", project=lambda y_hats: y_hats.clip(0, None)
    )
    y = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 0.0]])
    y_hat = np.array([[-1.0, -2.0, 3.0], [1.0, 1.0, -0.1]])
    assert decision_loss(projecting, y_hat, y).tolist() == [3.0, 0.0]
    assert regret(projecting, y_hat, y).tolist() == [2.0, 0.0]
    assert decision_loss(projecting, -np.ones((2, 2, 3)), y).tolist() == [[3.0, 0.5], [3.0, 0.5]]


def test_a_regret_that_is_rounding_is_zero():
    def total(z, y):
        return float(sum(y[z]))  # in the order of the decision

    pick = lodl.problem(lambda y_hat: np.argsort(y_hat)[-4:], total, sense="max")
    y = np.random.default_rng(0).random((50, 8))
    order = np.argsort(y, axis=1)
    y_hat = np.take_along_axis(np.tile([0.0, 0, 0, 0, 4, 3, 2, 1], (50, 1)), order.argsort(1), 1)
    assert (decision_loss(pick, y_hat, y) != decision_loss(pick, y, y)).any()
    assert not regret(pick, y_hat, y).any()


def test_a_wrong_sense_is_an_error():
    rng = np.random.default_rng(0)
    wrong = lodl.problem(np.argmax, lambda z, y: y[z], sense="min")  # it takes the largest
    y = rng.random((20, 5))
    with pytest.raises(ProblemError, match=r'Is `sense = "min"` of .* wrong'):
        regret(wrong, rng.random(y.shape), y)


def test_one_decision_of_a_heuristic_that_is_better_than_the_labels_is_no_error():
    y = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 1.0]])
    first = lodl.problem(lambda y_hat: 0, lambda z, y: y[z], sense="max")
    assert regret(first, y[:, ::-1], y).tolist() == [0.0, 0.0, 0.0]
