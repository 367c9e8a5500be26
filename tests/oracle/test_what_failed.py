"""A forgotten context is named wherever a problem is called, and only then."""

from typing import Any

import numpy as np
import pytest

import lodl
from lodl.errors import LodlError

Y = np.random.default_rng(0).random((8, 3))
MISSING = "No `context` was given, but the problem's functions take one"


def pick_open(y_hat, day):
    return int(np.argmax(np.where(day["open"], y_hat, -1)))


def shifted(y_hat, context):
    return int(np.argmax(y_hat + [number for number in range(3) if context.is_open(number)]))


def licence_is_gone(y_hat):
    environment: Any = None
    return environment.model(y_hat)


def licence_is_gone_with_a_context_not_looked_at(y_hat, context):
    return licence_is_gone(y_hat)


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
        LodlError, match=rf"(Type|Attribute)Error: 'NoneType' .*\. {MISSING}\."
    ) as e:
        use(problem)
    assert str(e.value).count(MISSING) == 1


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("solve", [licence_is_gone, licence_is_gone_with_a_context_not_looked_at])
def test_a_failure_that_has_nothing_to_do_with_a_context_says_nothing_of_one(use, solve):
    problem = lodl.problem(solve, lambda z, y: y[z], sense="max")
    with pytest.raises(LodlError, match="'NoneType' object has no attribute 'model'") as told:
        use(problem)
    assert "No `context`" not in str(told.value)
