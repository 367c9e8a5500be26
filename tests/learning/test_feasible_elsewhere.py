"""Instances with contexts that share the decisions which their contexts allow."""

import logging

import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError, ProblemError
from lodl.learning._defaults import Schedule
from lodl.learning._rounds import Evidence
from lodl.oracle import Oracle
from lodl.problems.highs import LinearProgram
from lodl.testing import check_problem

RNG = np.random.default_rng(0)
N, WEIGHTS = 60, np.array([3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
SETS = (np.arange(64)[:, np.newaxis] >> np.arange(6) & 1).astype(float)
ROOM = RNG.uniform(8.0, 22.0, N)
X = RNG.normal(size=(N, 3))
Y = np.exp(0.7 * X @ RNG.normal(size=(3, 6)))


class Sacks(lodl.LinearProblem):
    """The best set of items whose weight is at most the context."""

    sense = "max"

    def solve_many(self, y_hats, context):
        sets = SETS[context >= SETS @ WEIGHTS]
        return sets[(y_hats @ sets.T).argmax(axis=1)]


class Sharing(Sacks):
    def are_feasible(self, zs, context):
        return zs @ WEIGHTS <= context


class Careless(Sacks):
    def are_feasible(self, zs, context):
        return np.ones(len(zs), dtype=bool)


def evidence(problem, context=ROOM, families=None, **numbers):
    oracle = Oracle(problem)
    made = Evidence.of(oracle, oracle.instances(Y, context), families, Schedule(**numbers), 0)
    made.start()
    return made


def test_the_pool_has_what_each_context_allows():
    pool = evidence(Sharing()).samples.pool()
    zs = -pool.gradient
    np.testing.assert_array_equal(pool.is_allowed, zs @ WEIGHTS <= ROOM[:, np.newaxis])
    assert not pool.is_allowed.all()


def test_the_cheapest_known_decision_is_one_that_the_context_allows():
    made, y_hat = evidence(Sharing()), RNG.random(Y.shape)
    pool = made.samples.pool()
    zs, expected = -pool.gradient, []
    for i in range(N):
        allowed = zs[zs @ WEIGHTS <= ROOM[i]]
        taken = allowed[(allowed @ y_hat[i]).argmax()]
        expected.append(Y[i] @ (Sharing().solve(Y[i], ROOM[i]) - taken))
    np.testing.assert_allclose(pool.regrets_at(y_hat), expected, atol=1e-12)


def test_a_loss_has_no_decision_that_its_context_forbids():
    made = evidence(Sharing())
    loss = made.learn(lodl.DecisionHinges(), Y + 0.1)
    slopes, regrets = np.asarray(loss.phi["slope"]), loss.phi["regret"]
    own = np.stack([Sharing().solve(y, room) for y, room in zip(Y, ROOM, strict=True)])
    zs = own[:, np.newaxis] - slopes  # of gains: a slope is that of a cost
    is_used = np.isfinite(regrets)
    assert (zs @ WEIGHTS <= ROOM[:, np.newaxis] + 1e-9)[is_used].all()
    np.testing.assert_allclose(regrets[is_used], np.einsum("nd,nkd->nk", Y, slopes)[is_used])
    assert (is_used.sum(axis=1) > 3).mean() > 0.8  # others' decisions, too


def test_typical_regrets_are_those_of_allowed_decisions():
    pool = evidence(Sharing()).samples.pool()
    own = np.stack([Sharing().solve(y, room) for y, room in zip(Y, ROOM, strict=True)])
    expected = []
    for i in range(N):
        allowed = own[own @ WEIGHTS <= ROOM[i]]
        expected.append(Y[i] @ own[i] - (allowed @ Y[i]).mean())
    np.testing.assert_allclose(pool.regrets_of_others, expected, atol=1e-12)


@pytest.mark.slow
def test_sharing_saves_calls_and_decides_better_than_squared_error():
    problems = Sharing(), Sacks()
    models = [lodl.DecisionFocusedRegressor(p).fit(X, Y, context=ROOM) for p in problems]
    assert models[0].result_.n_calls < models[1].result_.n_calls / 2
    regret = models[0].regret(X, Y, context=ROOM).mean()
    y_hat = models[0].plain_.predict(X)
    plain = lodl.evaluation.regret(Sharing(), y_hat, Y, context=ROOM).mean()
    assert regret < 0.5 * plain


def test_contexts_that_seldom_allow_a_decision_do_not_share(caplog):
    assert evidence(Sharing()).situation.is_shared
    assert not evidence(Sacks()).situation.is_shared
    exactly = LinearProgram(np.ones((1, 6)), "max", upper=1, integrality=1)
    counts = [{"row_lower": k % 7, "row_upper": k % 7} for k in range(N)]
    with caplog.at_level(logging.WARNING, logger="lodl"):
        assert not evidence(exactly, counts).situation.is_shared
    assert "Contexts allow 14% of the decisions of a few labels" in caplog.text


def test_it_does_not_matter_which_instances_come_first():
    order = np.argsort(-ROOM)
    sorted_rooms = evidence(Sharing(), ROOM[order])
    assert sorted_rooms.situation.is_shared


def test_a_linear_program_knows_which_decisions_its_context_allows():
    program = LinearProgram([WEIGHTS], "max", row_upper=9, upper=1, integrality=1)
    expected = SETS @ WEIGHTS <= 12
    np.testing.assert_array_equal(program.are_feasible(SETS, {"row_upper": 12}), expected)
    assert not program.are_feasible(SETS[1:2] / 2, None).any()  # a share of an item
    assert program.are_feasible(SETS[1:2] / 2, {"integrality": 0}).all()
    assert not program.are_feasible(2 * SETS[1:2], None).any()
    partial = LinearProgram([WEIGHTS], "max", row_upper=9, upper=1, predicted=[0, 1])
    assert partial.are_feasible(SETS[:, :2], None) is None


def test_shared_decisions_of_whole_numbers_replace_neighbours():
    program = LinearProgram([WEIGHTS], "max", upper=1, integrality=1)
    capacities = [{"row_upper": room} for room in ROOM]
    assert evidence(program, capacities).situation.is_shared
    relaxed = LinearProgram([WEIGHTS], "max", upper=1)
    assert evidence(relaxed, capacities).situation.learns_neighbours


def test_a_decision_that_is_too_good_is_reported(caplog):
    with caplog.at_level(logging.WARNING, logger="lodl"):
        evidence(Careless())
    assert "`are_feasible` allows better decisions than the solver's" in caplog.text


def test_a_check_compares_feasibility_with_decisions():
    check_problem(Sharing(), Y, context=ROOM)

    class Refuses(Sharing):
        def are_feasible(self, zs, context):
            return zs @ WEIGHTS > context

    with pytest.raises(ProblemError, match="refuses 5 of 5 decisions that `solve` returned"):
        check_problem(Refuses(), Y, context=ROOM)
    with pytest.raises(ProblemError, match="refuses 60 of 60 decisions that `solve` returned"):
        evidence(Refuses())


def test_the_callers_context_and_decisions_stay():
    class Changes(Sharing):
        def are_feasible(self, zs, context):
            context["room"] -= 0.5
            return zs @ WEIGHTS <= context["room"] + 0.5

        def solve_many(self, y_hats, context):
            return super().solve_many(y_hats, context["room"])

    rooms = [{"room": room} for room in ROOM]
    evidence(Changes(), rooms)
    assert [context["room"] for context in rooms] == ROOM.tolist()


def test_an_exception_is_named_with_its_instance():
    class Raises(Sharing):
        def are_feasible(self, zs, context):
            raise RuntimeError("licence lost")

    with pytest.raises(ProblemError, match="Instance 0: `are_feasible` raised RuntimeError"):
        evidence(Raises())


def test_another_shape_is_named():
    class Wrong(Sharing):
        def are_feasible(self, zs, context):
            return True

    with pytest.raises(ProblemError, match="Instance 0: `are_feasible` must return an array of"):
        evidence(Wrong())
    with pytest.raises(InvalidInputError, match="LinearProblem` that has `are_feasible`"):
        Oracle(Sacks()).sample(Y, n_samples=2, context=ROOM, slopes=True).pool()


def test_semi_continuous_variables_are_unknown():
    program = LinearProgram([WEIGHTS], "max", row_upper=9, lower=1, upper=3, integrality=2)
    assert program.are_feasible(SETS[:2], None) is None


def test_one_label_that_fails_among_the_first_looks_does_not_end_a_fit():
    class Fails(Sharing):
        def solve(self, y_hat, context):
            if context == ROOM[19]:  # one of the ten
                raise RuntimeError("infeasible")
            sets = SETS[context >= SETS @ WEIGHTS]
            return sets[(sets @ y_hat).argmax()]

        solve_many = lodl.Problem.solve_many

    oracle = Oracle(Fails(), on_failure="skip", max_failure_rate=0.05)
    made = Evidence.of(oracle, oracle.instances(Y, ROOM), None, Schedule(), 0)
    made.start()
    assert np.isnan(made.samples.pool().regrets_of_others).sum() == 1
