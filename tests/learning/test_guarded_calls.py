"""Every solver call of every entry point: its time limit, its failures, its count."""

import numpy as np
import pytest

import lodl
from lodl import DecisionFocusedRegressor, DecisionHinges, learn_loss
from lodl.learning import learn_in_rounds
from lodl.training import learner_for

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(40, 4))


def cheapest(**methods):
    """Return a problem that picks the cheapest of the labels, with some methods replaced.

    Its class is local, so that worker processes get it by value.
    """

    class Cheapest(lodl.LinearProblem):
        sense = "min"

        def solve(self, y_hat, context):
            return np.eye(len(y_hat))[y_hat.argmin()]

    for name, method in methods.items():
        setattr(Cheapest, name, method)
    return Cheapest()


def quick(problem, **arguments):
    arguments = {"families": [DecisionHinges()], "n_rounds": 1, **arguments}
    return DecisionFocusedRegressor(problem, **arguments)


def test_a_regressor_is_fitted_with_a_time_limit():
    limited, free = (quick(cheapest(), timeout=limit).fit(X, Y) for limit in (30.0, None))
    np.testing.assert_array_equal(limited.predict(X), free.predict(X))


def test_rounds_are_learned_with_a_time_limit():
    learner = learner_for(None)

    def train(loss):
        model = learner.train(X, loss, n_steps=5)
        return model, model.predict(X)

    rounds = learn_in_rounds(
        cheapest(), Y, train, family=DecisionHinges(), n_samples=2, n_rounds=1, timeout=30.0
    )
    assert len(rounds.rounds) == 2


def test_a_loss_is_learned_with_a_time_limit_from_a_store_that_knows_the_labels(tmp_path):
    asked = {"family": DecisionHinges(), "store": tmp_path / "answers"}
    learn_loss(cheapest(), Y, n_samples=1, **asked)
    loss = learn_loss(cheapest(), Y, n_samples=3, timeout=30.0, **asked)
    again = learn_loss(cheapest(), Y, n_samples=3, family=DecisionHinges())
    np.testing.assert_array_equal(loss.value(Y + 1), again.value(Y + 1))
