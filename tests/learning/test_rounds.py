import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import lodl
from lodl.domains import ShortestPath, newsvendor, shortest_path
from lodl.errors import InvalidInputError, OracleError
from lodl.evaluation import regret
from lodl.learning import Rounds, Schedule, learn_in_rounds
from lodl.learning._rounds import Evidence
from lodl.learning._search import Contender
from lodl.oracle import Oracle
from lodl.samplers import AtPredictions

pytestmark = pytest.mark.slow

DOMAIN: Any = shortest_path(1, sizes=(40, 10, 200), degree=6, noise=0.3)
PART = DOMAIN.splits.train_and_validation
N_TRAIN, VALIDATION = 40, np.arange(40, 50)
X = np.column_stack([np.ones(len(PART.x)), PART.x])


def train(loss):
    """Fit a linear model to the first 40 instances by subgradient steps from least squares."""
    weights = np.linalg.lstsq(X[:N_TRAIN], PART.y[:N_TRAIN], rcond=None)[0]
    index, step = np.arange(N_TRAIN), 0.05
    for k in range(100):
        gradient = loss.gradient(X[:N_TRAIN] @ weights, index)
        weights = weights - step / (1 + k / 10) * X[:N_TRAIN].T @ gradient / N_TRAIN
    return weights, X @ weights


def learn(oracle=DOMAIN.problem, train=train, **arguments):
    numbers = {"n_samples": 5, "n_rounds": 2, "n_per_round": 4}
    numbers |= {name: arguments.pop(name) for name in (*numbers, "max_calls") if name in arguments}
    arguments = {"validation": VALIDATION, "schedule": Schedule(**numbers)} | arguments
    return learn_in_rounds(oracle, PART.y, train, **arguments)


def test_the_calls_of_every_round_are_counted():
    rounds = learn()
    # Three calls are repeated. The last model is only scored, and its answers are not learned from.
    assert [one.n_calls for one in rounds.rounds] == [3 + 50 * n for n in (10, 14, 15)]
    assert rounds.samples.n_calls == 50 * 14


def test_the_regret_of_a_round_is_that_of_its_model():
    rounds = learn(n_rounds=1)
    for one in rounds.rounds:
        expected = regret(DOMAIN.problem, one.y_hat, PART.y)
        np.testing.assert_allclose(one.regret, expected, atol=1e-12)


def test_after_a_round_the_loss_bounds_the_regret_at_the_predictions_it_asked_about():
    first, second = learn(n_rounds=1, context=[None] * len(PART.y)).rounds  # own decisions only
    assert (first.loss.value(first.y_hat) < first.regret - 1e-9).any()
    assert (second.loss.value(first.y_hat) >= first.regret - 1e-9).all()


def test_the_best_round_has_the_best_validation_decisions():
    rounds = learn()
    scores = [one.regret[VALIDATION].mean() for one in rounds.rounds]
    np.testing.assert_allclose(rounds.scores, scores)
    assert rounds.best is rounds.rounds[int(np.argmin(scores))]


def test_rounds_end_when_validation_decisions_get_no_better():
    weights = [np.full((6, 40), 1.0), np.full((6, 40), -1.0)]
    models = iter([weights[0]] + 9 * [weights[1]])

    def scripted(loss):
        model = next(models)
        return model, X @ model * (PART.y if model is weights[0] else 1)

    rounds = learn(train=scripted, n_samples=2, n_rounds=9)
    assert len(rounds.rounds) < 10


def test_a_budget_of_calls_is_kept():
    rounds = learn(n_rounds=9, max_calls=50 * 12)
    assert len(rounds.rounds) == 2
    assert 50 * 6 < rounds.best.n_calls <= 50 * 12
    with pytest.raises(InvalidInputError, match="`max_calls` must be at least 353"):
        learn(max_calls=100)


def test_after_a_single_round_losses_have_shared_decisions_near_a_model(monkeypatch):
    nears: list[Any] = []
    learned = Evidence.learn

    def learn_near(self, family, near=None, **options):
        nears.append(near)
        return learned(self, family, near, **options)

    monkeypatch.setattr(Evidence, "learn", learn_near)
    monkeypatch.setattr("lodl.learning._rounds._MANY_NUMBERS", PART.y[0].size)
    model = lodl.DecisionFocusedRegressor(DOMAIN.problem, max_calls=2 * 50 + 20)
    assert model.fit(PART.x, PART.y).result_.n_calls <= 2 * 50 + 20
    baseline, *others = [near for near in nears if near is not None]
    assert len(others) == 4
    assert all((near != baseline).any() for near in others)


def test_labels_are_solved_once_for_all_rounds():
    problem = CountedPath(DOMAIN.problem.grid)
    CountedPath.n_calls = 0
    rounds = learn(problem)
    assert CountedPath.n_calls == rounds.rounds[-1].n_calls == 3 + 50 * 15


def test_what_is_printed_leads_to_the_model():
    rounds = learn(n_rounds=1)
    assert repr(rounds).startswith("Rounds of 2 models, the best is number")
    assert "round 1: validation regret" in str(rounds)
    assert "`.best.model`" in str(rounds)


class CountedPath(ShortestPath):
    n_calls = 0

    def solve_many(self, y_hats, context=None):
        CountedPath.n_calls += len(y_hats)
        return super().solve_many(y_hats, context)


def test_a_second_run_on_the_same_store_asks_hardly_anything(tmp_path):
    problem = CountedPath(DOMAIN.problem.grid)
    oracles = [Oracle(problem, store=tmp_path / "store") for _ in range(2)]
    first = learn(oracles[0])
    CountedPath.n_calls = 0
    again = learn(oracles[1])
    assert CountedPath.n_calls <= 8 * len(first.rounds) + 32  # a few answers verify the store
    np.testing.assert_array_equal(again.best.y_hat, first.best.y_hat)


def test_regret_only_families_may_have_rounds_too():
    rounds = learn(family=lodl.WeightedMSE(), n_rounds=1, n_samples=20)
    assert len(rounds.rounds) == 2
    assert rounds.samples.n_samples == 20 + 4


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n_per_round": 0}, "`n_per_round` must be a whole number of at least 1"),
        ({"n_rounds": -1}, "`n_rounds` must be a whole number of at least 0"),
        ({"validation": []}, "`validation` must name at least one instance"),
        ({"validation": np.zeros(50, dtype=bool)}, "`validation` must name at least one instance"),
        ({"validation": [99]}, "`validation` must hold positions of instances from 0 to 49"),
    ],
)
def test_bad_arguments_are_named(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        learn(**arguments)


def test_a_trainer_that_returns_predictions_only_is_told_so():
    with pytest.raises(
        InvalidInputError, match="`train` must return the model and its predictions"
    ):
        learn(train=lambda loss: PART.y)


def test_the_first_two_candidates_are_the_prediction_and_the_point_beyond_it():
    y, y_hat = np.zeros((1, 3)), np.array([[1.0, 2.0, 3.0]])
    sampler = AtPredictions(y_hat, scale=1.0, margin=3.0)
    drawn = sampler.draw(y[0], y_hat[0], np.asarray(1.0), seed=0, key=0, block=0, n=4)
    np.testing.assert_array_equal(drawn[0], y_hat[0])
    np.testing.assert_allclose(drawn[1], 1.5 * y_hat[0])
    assert not np.array_equal(drawn[2], drawn[3])


def test_a_margin_of_one_has_no_point_beyond():
    with pytest.raises(InvalidInputError, match="`margin` must be a number above 1"):
        AtPredictions(np.ones((1, 3)), margin=1.0)


@pytest.mark.parametrize(("margin", "expected"), [(3.0, 3.0), (2.0, 2.0), (1.0, 2.0)])
def test_rounds_ask_beyond_predictions_as_far_as_the_margin_says(margin, expected):
    samples = learn(n_rounds=1, family=lodl.DecisionHinges(margin=margin)).samples
    samplers = [one.sampler for one in samples.draws]
    assert [one.margin for one in samplers if isinstance(one, AtPredictions)] == [expected]


def test_the_family_fits_the_objective():
    family: Any
    shared = learn(n_rounds=0).best.loss.family, lodl.learn_loss(DOMAIN.problem, PART.y).family
    for family in shared:
        assert (family.margin, family.squared_error) == (1.0, 1.0)
    own = learn(n_rounds=0, context=[None] * len(PART.y))
    assert own.best.loss.family == lodl.DecisionHinges()
    domain = newsvendor(sizes=(20, 5, 1), n_products=3)
    part = domain.splits.train_and_validation

    def predict_the_mean(loss):
        return None, np.broadcast_to(loss.y.mean(axis=0), loss.y.shape)

    schedule = Schedule(n_rounds=0)
    rounds = learn_in_rounds(domain.problem, part.y, predict_the_mean, schedule=schedule)
    assert rounds.best.loss.family == lodl.DirectedWeightedMAE(squares=True)
    assert rounds.samples.n_samples == 10


def test_too_few_samples_for_a_family_are_said(caplog):
    learn(n_rounds=1, family=lodl.Quadratic(rank=2))
    assert "120 parameters per instance, and 9 samples are few for them" in caplog.text


def test_a_round_does_not_win_because_its_hard_instances_failed():
    hard = np.arange(10) < 3

    def a_round(regret):
        return Contender("", 0, np.zeros((10, 1)), regret=regret)

    rounds = Rounds(
        (
            a_round(np.where(hard, 9.0, 1.0)),
            a_round(np.where(hard, np.nan, 1.1)),
            a_round(np.where(np.arange(10) < 1, np.nan, 0.5)),
        ),
        np.arange(10),
        None,
    )
    assert rounds.scores.tolist() == pytest.approx([3.4, (27 + 7.7) / 10, (9 + 4.5) / 10])
    assert rounds.best is rounds.rounds[2]


def test_a_round_without_any_validation_answer_is_an_error_that_says_so():
    class Fails(ShortestPath):
        def solve_many(self, y_hats, context=None):
            if (y_hats == 7.0).any():
                raise ValueError("no way")
            return super().solve_many(y_hats, context)

    with pytest.raises(OracleError, match=r"failed at the model's predictions .* \(10 of them\)"):
        learn(
            Oracle(Fails(), on_failure="skip", max_failure_rate=1.0, progress=False),
            lambda loss: (None, np.full(loss.y.shape, 7.0)),
        )


KILLED = """
import os, signal, sys
import numpy as np
from lodl import LinearProblem, Oracle
from lodl.learning import Schedule, learn_in_rounds

folder, kill_at = sys.argv[1], int(sys.argv[2])


class Best(LinearProblem):
    sense = "max"

    def solve(self, y_hat, context=None):
        with open(f"{folder}/calls", "ab", buffering=0) as calls:
            calls.write(b".")
            if calls.tell() == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return np.eye(len(y_hat))[np.argmax(y_hat)]


y = np.random.default_rng(0).normal(size=(40, 4))


def train(loss):
    y_hat = y.mean(axis=0) - 0.1 * loss.gradient(np.broadcast_to(y.mean(axis=0), y.shape))
    return None, y_hat


schedule = Schedule(n_samples=6, n_rounds=3, n_per_round=4)
oracle = Oracle(Best(), store=f"{folder}/answers")
rounds = learn_in_rounds(oracle, y, train, schedule=schedule)
np.save(f"{folder}/y_hat.npy", rounds.rounds[-1].y_hat)
"""


def test_rounds_that_are_killed_go_on(tmp_path):
    def run(folder, kill_at=-1):
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-c", KILLED, str(folder), str(kill_at)]
        return subprocess.run(command, check=False).returncode

    def n_calls(folder):
        return (folder / "calls").stat().st_size

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(whole) == 0
    assert run(killed, kill_at=400) == -signal.SIGKILL
    assert run(killed) == 0
    assert np.array_equal(np.load(whole / "y_hat.npy"), np.load(killed / "y_hat.npy"))
    # The question in flight, and what a start asks: is the objective affine, is it this problem?
    assert n_calls(killed) <= n_calls(whole) + 40 * 4 + 15 + 2 * 4


def test_instances_share_their_decisions_where_they_can():
    own, shared = learn(n_rounds=1, context=[None] * len(PART.y)), learn(n_rounds=1)
    n_own, n_shared = (rounds.rounds[0].loss.phi["regret"].shape[1] for rounds in (own, shared))
    assert n_shared > n_own
    assert shared.samples.n_calls == own.samples.n_calls
    regrets_only = learn(n_rounds=0, family=lodl.WeightedMSE())
    assert "shared" not in regrets_only.best.loss.provenance
