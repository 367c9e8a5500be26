import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl.evaluation import decision_loss
from lodl.oracle import Oracle
from lodl.problems import problem
from lodl.problems._problem import describe


def decision_losses(problem, y_hats, y, context=None):
    """Return the decision losses of many predictions for one instance."""
    contexts = None if context is None else [context]
    oracle = Oracle(problem)
    return oracle.decision_loss(np.asarray(y_hats)[:, None], y[None], context=contexts)[:, 0]


def test_plain_functions_with_and_without_context_make_a_problem():
    y, capacity = np.array([1.0, 2.0, 3.0]), 2
    with_context = problem(
        lambda y_hat, context: np.argsort(y_hat)[-context:],
        lambda z, y, context: y[z].sum() / context,
        sense="max",
    )
    without = problem(np.argmax, lambda z, y: y[z], sense="max")
    assert decision_losses(with_context, y[np.newaxis], y, capacity) == [-2.5]
    assert decision_losses(without, y[np.newaxis], y) == [-3.0]


def test_plain_functions_may_project():
    clipped = problem(
        lambda y_hat: 0, lambda z, y: 0.0, sense="min", project=lambda y_hats: y_hats.clip(0, 1)
    )
    assert clipped.project(np.array([[-1.0, 2.0]])).tolist() == [[0.0, 1.0]]
    identity = problem(lambda y_hat: 0, lambda z, y: 0.0, sense="min")
    assert identity.project(np.array([[-1.0, 2.0]])).tolist() == [[-1.0, 2.0]]


def test_functions_may_give_the_slope_and_the_unit():
    def slope(z, y):
        return np.arange(len(y)) == z

    pick = problem(np.argmax, lambda z, y: y[z], sense="max", slope=slope, unit="EUR")
    assert pick.slope(1, np.zeros(3), None).tolist() == [False, True, False]
    assert pick.unit == "EUR"
    assert repr(pick) == describe(pick) == "problem(argmax, <lambda>, sense='max', unit='EUR')"
    assert problem(np.argmax, lambda z, y: y[z], sense="max").slope(1, np.zeros(3), None) is None


def test_functions_of_the_wrong_form_are_an_error():
    with pytest.raises(InvalidInputError, match="`solve` must be a function, got 3"):
        problem(3, lambda z, y: 0.0, sense="min")
    with pytest.raises(InvalidInputError, match="`objective` must take 2 or 3 positional"):
        problem(lambda y_hat: 0, lambda z: 0.0, sense="min")
    with pytest.raises(TypeError, match="sense"):
        problem(lambda y_hat: 0, lambda z, y: 0.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "solve",
    [
        lambda y_hat, capacity: capacity,
        lambda y_hat, context: context,
        lambda y_hat, context=None: context,
        lambda y_hat, k=2, context=None: context * k / 2,
        lambda y_hat, *, context: context,
        lambda y_hat, *more: more[0],
        lambda *arguments, k=2: arguments[1],
    ],
)
def test_the_context_goes_to_a_parameter_without_a_default_or_of_its_name(solve):
    assert problem(solve, lambda z, y: 0.0, sense="min").solve(np.ones(2), 7) == 7


@pytest.mark.parametrize(
    ("solve", "expected"),
    [
        (lambda y_hat, k=2: k, 2),
        (lambda y_hat, *, k=2: k, 2),
        (lambda y_hat, **options: options.get("k", 2), 2),
        (np.argmax, 3),
        (max, 5.0),
    ],
)
def test_the_context_never_goes_into_an_option(solve, expected):
    # As `axis` of np.argmax, an integer context would give another decision without a word.
    y_hat = np.array([0.0, 1.0, 2.0, 5.0])
    assert problem(solve, lambda z, y, c: 0.0, sense="min").solve(y_hat, 0) == expected
    flat = problem(np.argmax, lambda z, y, c: y.flat[z], sense="max")
    assert flat.solve(np.eye(2)[::-1], 0) == 1


@pytest.mark.parametrize("solve", [np.argmax, lambda y_hat, capacity=1: np.argmax(y_hat)])
def test_a_context_that_no_function_takes_is_an_error(solve):
    picking = problem(solve, lambda z, y: y[z], sense="max")
    y = np.eye(3)
    with pytest.raises(InvalidInputError, match=r"neither `solve` nor `objective` takes one"):
        decision_loss(picking, y, y, context=[1, 2, 3])
    assert decision_loss(picking, y, y).tolist() == [-1.0] * 3
