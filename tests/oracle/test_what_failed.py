"""A forgotten context is suspected wherever a problem is called."""

import re
from typing import Any

import numpy as np
import pytest

import lodl
from lodl.errors import LodlError

Y = np.random.default_rng(0).random((8, 3))
MISSING = "No `context` was given: does the problem need one?"


def pick_open(y_hat, day):
    return int(np.argmax(np.where(day["open"], y_hat, -1)))


def shifted(y_hat, context):
    return int(np.argmax(y_hat + [number for number in range(3) if context.is_open(number)]))


def without_a_licence(y_hat, context):
    environment: Any = None
    return environment.model(y_hat)


USES = {
    "fit": lambda problem: lodl.DecisionFocusedRegressor(problem).fit(Y, Y),
    "check_problem": lambda problem: lodl.testing.check_problem(problem, Y),
    "regret": lambda problem: lodl.evaluation.regret(problem, Y, Y),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("solve", [pick_open, shifted])
def test_a_forgotten_context_is_named(use, solve):
    problem = lodl.problem(solve, lambda z, y: y[z], sense="max")
    with pytest.raises(
        LodlError, match=rf"(Type|Attribute)Error: 'NoneType' .*\. {re.escape(MISSING)}"
    ) as e:
        use(problem)
    assert str(e.value).count(MISSING) == 1


def test_a_failure_with_a_context_is_not_said_to_lack_one():
    problem = lodl.problem(without_a_licence, lambda z, y, context: y[z], sense="max")
    with pytest.raises(LodlError, match="'NoneType' object has no attribute 'model'") as told:
        lodl.evaluation.regret(problem, Y, Y, context=list(range(8)))
    assert "No `context`" not in str(told.value)


def test_a_failure_that_is_not_about_none_is_not_said_to_lack_a_context():
    problem = lodl.problem(lambda y_hat: y_hat["best"], lambda z, y: y[z], sense="max")
    with pytest.raises(LodlError, match="IndexError") as told:
        lodl.evaluation.regret(problem, Y, Y)
    assert "No `context`" not in str(told.value)
