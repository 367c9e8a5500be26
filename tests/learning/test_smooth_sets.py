"""Instances that share no decisions: on a smooth set, every prediction leads to its own."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import lodl
from lodl.learning._folds import Trainer
from lodl.problems import LinearProblem

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N + 500, 3))
Y = (X @ RNG.uniform(0.0, 1.0, size=(3, 5)) / 3 + 1) ** 5 + 0.3 * RNG.normal(size=(N + 500, 5))


class Ball(LinearProblem):
    """The best point of the unit ball; remembers the points of all calls."""

    sense = "max"

    def __init__(self):
        self.points = []

    def solve_many(self, y_hats, context):
        self.points.extend(y_hats)
        return y_hats / np.linalg.norm(y_hats, axis=1, keepdims=True)


def fit(**options):
    problem = Ball()
    model = lodl.DecisionFocusedRegressor(problem, **options).fit(X[:N], Y[:N])
    return problem, model


def test_rounds_call_beyond_predictions_of_the_models_in_turn(monkeypatch):
    in_turn, predicted = Trainer.in_turn, []

    def spied(trainer, models, turn):
        predicted.append(in_turn(trainer, models, turn))
        rows = range(0, N, 7)
        own = [models[(i + turn) % len(models)].predict(X[i : i + 1])[0] for i in rows]
        np.testing.assert_allclose(predicted[-1][list(rows)], own)
        return predicted[-1]

    monkeypatch.setattr(Trainer, "in_turn", spied)
    problem, _ = fit()
    assert len(predicted) == 6  # of seven rounds, the first is at the baseline's own prediction
    for y_hat in predicted:
        beyond = 2 * y_hat - Y[:N]
        distance = np.abs(np.array(problem.points)[:, np.newaxis] - beyond).max(axis=2).min(axis=0)
        np.testing.assert_allclose(distance, 0.0, atol=1e-9)


def test_the_first_loss_alone_is_tried_and_judged_by_the_solver():
    _, model = fit()
    names = {row.name for row in model.result_.trials}
    assert not any("Ranking" in name or "losses" in name for name in names)
    assert any(name.startswith("DecisionHinges") and "by the solver" in name for name in names)
    regrets = [
        model.regret(X[N:], Y[N:]),
        lodl.evaluation.regret(Ball(), model.baseline_.predict(X[N:]), Y[N:]),
    ]
    assert regrets[0].mean() < 0.8 * regrets[1].mean()


def test_families_that_were_given_are_all_tried():
    families = [lodl.DecisionHinges(), lodl.DecisionRanking()]
    _, model = fit(families=families)
    names = {row.name for row in model.result_.trials}
    assert {str(family) for family in families} <= names


def test_a_right_linear_model_gets_no_rounds():
    problem = Ball()
    y = X[:N] @ np.ones((3, 5)) + 3 + RNG.normal(size=(N, 5))
    model = lodl.DecisionFocusedRegressor(problem).fit(X[:N], y)
    assert model.result_.n_calls < 4 * N


@pytest.mark.parametrize("limit", [2, 3, 5])
def test_the_budget_holds(limit):
    _, model = fit(max_calls=limit * N + 20)
    assert model.result_.n_calls <= limit * N + 20


def test_models_that_overfit_are_checked_at_held_out_predictions(monkeypatch):
    def fails(*_):
        raise AssertionError

    monkeypatch.setattr(Trainer, "in_turn", fails)
    fit(estimator=DecisionTreeRegressor(random_state=0), n_rounds=3)
