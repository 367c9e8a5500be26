"""Every solver call of every entry point: its time limit, its failures, its count."""

import ast
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import lodl
from lodl import DecisionFocusedRegressor, DecisionHinges, learn_loss
from lodl.domains import ShortestPath
from lodl.errors import LodlError, OracleError, ProblemError
from lodl.learning import Schedule, learn_in_rounds
from lodl.oracle import Oracle, _run
from lodl.training import learner_for

pytestmark = pytest.mark.slow


def data(n, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, x @ rng.normal(size=(3, 4)) + noise * rng.normal(size=(n, 4))


X, Y = data(40)
LENGTHS = np.random.default_rng(1).uniform(1, 2, size=(40, 12))  # of the edges of a path


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
    limited, free = (quick(Oracle(cheapest(), timeout=limit)).fit(X, Y) for limit in (30.0, None))
    np.testing.assert_array_equal(limited.predict(X), free.predict(X))


def test_rounds_are_learned_with_a_time_limit():
    learner = learner_for(None)

    def train(loss):
        (model,) = learner.train(X, loss, n_steps=5)
        return model, model.predict(X)

    schedule = Schedule(n_samples=2, n_rounds=1)
    oracle = Oracle(cheapest(), timeout=30.0)
    rounds = learn_in_rounds(oracle, Y, train, family=DecisionHinges(), schedule=schedule)
    assert len(rounds.rounds) == 2


def test_a_loss_is_learned_with_a_time_limit_from_a_store_that_knows_the_labels(tmp_path):
    store, family = tmp_path / "answers", DecisionHinges()
    learn_loss(Oracle(cheapest(), store=store), Y, n_samples=1, family=family)
    limited = Oracle(cheapest(), store=store, timeout=30.0)
    loss = learn_loss(limited, Y, n_samples=3, family=family)
    again = learn_loss(cheapest(), Y, n_samples=3, family=DecisionHinges())
    np.testing.assert_array_equal(loss.value(Y + 1), again.value(Y + 1))


def make_solvers():
    """Return faulty solvers by name. They are local, so that workers get them by value."""

    def exits(self, y_hat, context):
        raise SystemExit(0)

    def interrupts(self, y_hat, context):
        raise KeyboardInterrupt

    def hangs(self, y_hat, context):
        time.sleep(60)

    def hangs_in_c(self, y_hat, context):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # as code that heeds no signal
        time.sleep(60)

    def buffered(self, y_hat, context):
        if not hasattr(self, "buffer"):
            self.buffer = np.zeros(len(y_hat))
        self.buffer[:] = 0
        self.buffer[y_hat.argmin()] = 1
        return self.buffer

    return locals()


SOLVERS = make_solvers()

ENTRY_POINTS = {
    "learn_loss": lambda oracle: learn_loss(oracle, Y, n_samples=2),
    "fit": lambda oracle: quick(oracle).fit(X, Y),
    "rounds": lambda oracle: learn_in_rounds(oracle, Y, None),
    "regret": lambda oracle: oracle.regret(Y + 1, Y),
    "decide": lambda oracle: oracle.decide(Y),
    "is_affine": lambda oracle: oracle.is_affine(Y),
}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize(
    ("solve", "name"), [("exits", "SystemExit: 0"), ("interrupts", "KeyboardInterrupt")]
)
def test_whatever_a_solver_raises_is_an_error_that_names_the_instance(entry, solve, name, n_jobs):
    with pytest.raises(OracleError, match=rf"instance \d+, the \w+( itself)?: {name}"):
        ENTRY_POINTS[entry](Oracle(cheapest(solve=SOLVERS[solve]), n_jobs=n_jobs))


@pytest.mark.parametrize("solve", ["exits", "interrupts"])
def test_whatever_a_solver_raises_breaks_the_contract(solve):
    with pytest.raises(ProblemError, match=r"`solve` raised (SystemExit|KeyboardInterrupt)"):
        lodl.testing.check_problem(cheapest(solve=SOLVERS[solve]), Y)


@pytest.mark.parametrize(
    ("entry", "solve"),
    [
        ("learn_loss", "hangs"),
        ("fit", "hangs"),
        ("regret", "hangs"),
        ("decide", "hangs_in_c"),
        ("is_affine", "hangs_in_c"),
    ],
)
def test_a_call_that_hangs_costs_about_its_time_limit(entry, solve, monkeypatch):
    monkeypatch.setattr(_run, "_SLACK", 0.2)
    began = time.monotonic()
    with pytest.raises(OracleError, match=r"longer than 0\.2 seconds"):
        ENTRY_POINTS[entry](Oracle(cheapest(solve=SOLVERS[solve]), timeout=0.2))
    assert time.monotonic() - began < 50  # it was over 60


@pytest.mark.parametrize("solve", ["hangs", "hangs_in_c"])
def test_a_check_ends_where_a_call_hangs(solve):
    began = time.monotonic()
    with pytest.raises(LodlError, match=r"longer than 0\.2 seconds"):
        Oracle(cheapest(solve=SOLVERS[solve]), timeout=0.2).check(Y)
    assert time.monotonic() - began < 50  # it was over 60


class CountedPath(ShortestPath):
    n_made = 0

    def solve_many(self, y_hats, context=None):
        CountedPath.n_made += len(y_hats)
        return super().solve_many(y_hats, context)


def test_every_call_is_counted(tmp_path):
    problem = CountedPath((3, 3))
    x, y = X, LENGTHS
    for _ in range(2):  # the second fit finds its answers in the store
        CountedPath.n_made = 0
        oracle = Oracle(problem, store=tmp_path / "answers")
        model = quick(oracle).fit(x, y)
        assert model.result_.n_calls == CountedPath.n_made
        n_before = oracle.n_calls
        model.regret(x + 1, y), model.decide(x), oracle.check(y)
        assert CountedPath.n_made - model.result_.n_calls == oracle.n_calls - n_before > 60
    # A few of the stored answers are computed again, and so are decisions that changed.
    assert model.result_.n_calls < 50 + 2 * len(model.result_.changes)


def test_data_that_a_model_cannot_take_cost_no_call():
    class Fussy(Ridge):
        def fit(self, *_):
            raise ValueError("not these")

    CountedPath.n_made = 0
    with pytest.raises(ValueError, match="not these"):
        quick(CountedPath((3, 3)), estimator=Fussy()).fit(X, LENGTHS)
    assert CountedPath.n_made == 0


def test_a_relative_store_stays_where_it_was_named(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def solve(self, y_hat, context):
        os.chdir(tmp_path / "elsewhere")
        return np.eye(len(y_hat))[y_hat.argmin()]

    quick(Oracle(cheapest(solve=solve), store="answers")).fit(X, Y)
    assert (tmp_path / "answers").exists()
    assert not (tmp_path / "elsewhere" / "answers").exists()


def test_an_objective_that_writes_to_the_label_does_not_change_the_users():
    def objective(self, z, y, context):
        value = float(z @ y)
        y[:] = 0
        return value

    y = Y.copy()
    for call in (
        lambda problem: learn_loss(problem, y),
        lambda problem: quick(problem).fit(X, y),
        lambda problem: Oracle(problem).is_affine(y),
        lambda problem: Oracle(problem).regret(y + 1, y),
    ):
        with pytest.raises(OracleError, match="read-only"):
            call(cheapest(objective=objective))
    np.testing.assert_array_equal(y, Y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_decisions_of_a_solver_that_reuses_its_buffer_are_all_its_own(n_jobs):
    decisions = Oracle(cheapest(solve=SOLVERS["buffered"]), n_jobs=n_jobs).decide(Y)
    np.testing.assert_array_equal(decisions, np.eye(4)[Y.argmin(axis=1)])


def test_decisions_of_a_vectorised_solver_that_reuses_its_buffer_are_all_its_own():
    buffer = np.zeros((40, 4))

    def solve_many(self, y_hats, context):
        buffer[: len(y_hats)] = np.eye(4)[y_hats.argmin(axis=1)]
        return buffer[: len(y_hats)]

    decisions = Oracle(cheapest(solve_many=solve_many)).decide(Y)
    np.testing.assert_array_equal(decisions, np.eye(4)[Y.argmin(axis=1)])


def test_a_model_decides_with_a_solver_that_reuses_its_buffer():
    model = quick(cheapest(solve=SOLVERS["buffered"])).fit(X, Y)
    np.testing.assert_array_equal(model.decide(X), np.eye(4)[model.predict(X).argmin(axis=1)])


def test_a_context_that_the_solver_changes_is_an_error_and_the_callers_stays():
    def solve(self, y_hat, context):
        context["used"] = context.get("used", 0) + 1
        return np.eye(len(y_hat))[y_hat.argmin()]

    contexts = [{"number": i} for i in range(len(Y))]
    for call in (
        lambda problem: learn_loss(problem, Y, context=contexts),
        lambda problem: quick(problem).fit(X, Y, context=contexts),
        lambda problem: Oracle(problem).decide(Y, context=contexts),
    ):
        with pytest.raises(ProblemError, match="changes the context"):
            call(cheapest(solve=solve))
    assert contexts == [{"number": i} for i in range(len(Y))]


def test_only_the_guard_calls_a_solver():
    root, callers = Path(lodl.__file__).parent, set()
    for path in sorted(root.rglob("*.py")):
        room = path.relative_to(root).parts[0]
        if room in ("problems", "domains", "benchmarks"):  # solvers themselves, and research
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Attribute) or node.attr not in ("solve", "solve_many"):
                continue
            if ast.unparse(node.value).endswith("problem"):
                callers.add(path.relative_to(root).as_posix())
    assert callers == {"oracle/_guard.py"}


# Solvers that are not exact ---------------------------------------------------------------------


def inexact(gap):
    """Return a `solve` that picks an item at most `gap` of the labels' spread above the best."""

    def solve(self, y_hat, context):
        good = np.flatnonzero(y_hat <= y_hat.min() + gap * Y.std())
        return np.eye(len(y_hat))[good[int(abs(y_hat).sum() * 1e6) % len(good)]]

    return solve


@pytest.mark.parametrize("gap", [0.05, 0.2, 0.5])
def test_an_inexact_solver_is_named_as_such_and_the_model_is_fitted(gap, caplog):
    x, y = data(60, noise=0.01)  # predictions are good
    model = quick(cheapest(solve=inexact(gap))).fit(x, y)
    assert np.isfinite(model.predict(x)).all()
    if gap == 0.5:
        assert "The solver is not exact" in caplog.text
        assert "Use a smaller gap or tolerance" in caplog.text


def test_a_random_solver_is_named_as_such_and_the_model_is_fitted(caplog):
    rng = np.random.default_rng(1)

    def solve(self, y_hat, context):
        return np.eye(len(y_hat))[rng.integers(len(y_hat))]

    quick(cheapest(solve=solve)).fit(X, Y)
    assert "The solver is not deterministic" in caplog.text
    assert "Fix its seed" in caplog.text


@pytest.mark.parametrize("entry", ["learn_loss", "fit"])
def test_a_wrong_sense_is_found_before_the_calls_are_spent(entry):
    CountedPath.n_made = 0
    y = LENGTHS
    problem = type("Wrong", (CountedPath,), {"sense": "max"})((3, 3))
    with pytest.raises(ProblemError, match=r'is "max": should it be "min"'):
        learn_loss(problem, y) if entry == "learn_loss" else quick(problem).fit(X, y)
    assert CountedPath.n_made < 20


# Calls that fail --------------------------------------------------------------------------------


def failing(is_hit):
    """Return a `solve` that fails at some predictions."""

    def solve(self, y_hat, context):
        if is_hit(y_hat):
            raise ArithmeticError("no solution")
        return np.eye(len(y_hat))[y_hat.argmin()]

    return solve


def at_label(row):
    return lambda y_hat: np.array_equal(y_hat, Y[row])


def now_and_then(share):
    return lambda y_hat: int(abs(y_hat).sum() * 1e6) % 1000 < 1000 * share


@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_label_that_fails_among_the_first_ends_no_fit_that_skips(row):
    oracle = Oracle(cheapest(solve=failing(at_label(row))), on_failure="skip")
    assert oracle.is_affine(Y)  # so that decisions are shared all the same
    quick(oracle).fit(X, Y)


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_that_skips_survives_five_per_cent_of_failing_calls(seed):
    x, y = data(60, seed=seed)
    problem = cheapest(solve=failing(now_and_then(0.05)))
    model = quick(Oracle(problem, on_failure="skip")).fit(x, y)
    assert np.isfinite(model.result_.mean_selected)


def test_labels_and_samples_that_fail_are_counted_apart():
    problem = cheapest(solve=failing(now_and_then(0.5)))
    with pytest.raises(OracleError, match=r"\d+ of \d+ labels failed .*, \d+ of \d+ samples fail"):
        Oracle(problem, on_failure="skip").sample(Y, n_samples=20)


def test_the_share_of_calls_that_may_fail_is_the_users():
    problem = cheapest(solve=failing(now_and_then(0.3)))
    with pytest.raises(OracleError, match=r"max_failure_rate=0.1"):
        quick(Oracle(problem, on_failure="skip")).fit(X, Y)
    quick(Oracle(problem, on_failure="skip", max_failure_rate=0.6)).fit(X, Y)


def test_a_model_that_skips_decides_reports_and_scores_around_failing_calls(tmp_path):
    problem = cheapest(solve=failing(now_and_then(0.1)))
    model = quick(Oracle(problem, on_failure="skip", max_failure_rate=0.5)).fit(X, Y)
    x, y = data(80, seed=1)
    decisions = model.decide(x)
    failed = np.array([z is None for z in decisions])
    assert 0 < failed.sum() < 80
    regret = model.regret(x, y)
    assert np.isnan(regret[failed]).all()
    assert np.isfinite(regret).any()
    assert np.isfinite(model.score(x, y))
    assert model.report(tmp_path / "report.html").exists()


def test_a_model_that_raises_names_the_instance_whose_decision_fails():
    model = quick(cheapest()).fit(X, Y)
    model.problem.__class__.solve = failing(lambda y_hat: True)
    with pytest.raises(OracleError, match="instance 0, the prediction: ArithmeticError: no sol"):
        model.decide(X)
    with pytest.raises(OracleError, match="instance 0, the label itself: ArithmeticError"):
        model.regret(X, Y + 1)
