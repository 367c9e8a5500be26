from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from lodl.errors import InvalidInputError, MissingExtraError, OracleError, ProblemError, ShapeError
from lodl.oracle import Oracle
from lodl.problems import _ortools_models
from lodl.problems.ortools import OrtoolsLinearProblem, OrtoolsProblem
from lodl.samplers import AllPerturbed
from lodl.testing import check_problem

cp_model = pytest.importorskip("ortools.sat.python.cp_model")
pywraplp = pytest.importorskip("ortools.linear_solver.pywraplp")
mathopt = pytest.importorskip("ortools.math_opt.python.mathopt")
WEIGHTS = np.array([[3, 4, 5, 2, 6], [1, 5, 2, 4, 3]])
ITEMS = range(5)


def make_in_cp_sat():
    cp, rows = cp_model, WEIGHTS.tolist()

    def in_cp_sat(context=(9, 8)):  # inside, so that it travels by value
        model = cp.CpModel()
        take = [model.new_bool_var(f"take{i}") for i in range(5)]
        for weights, room in zip(rows, context or (9, 8), strict=True):
            model.add(cp.LinearExpr.weighted_sum(take, weights) <= room)
        return model, take

    return in_cp_sat


in_cp_sat = make_in_cp_sat()


def in_linear_solver(context=(9, 8)):
    model = pywraplp.Solver.CreateSolver("SCIP")
    take = [model.BoolVar(f"take{i}") for i in ITEMS]
    for weights, room in zip(WEIGHTS.tolist(), context or (9, 8), strict=True):
        model.Add(sum(weights[i] * take[i] for i in ITEMS) <= room)
    return model, take


def in_mathopt(context=(9, 8)):
    model = mathopt.Model()
    take = [model.add_binary_variable(name=f"take{i}") for i in ITEMS]
    for weights, room in zip(WEIGHTS.tolist(), context or (9, 8), strict=True):
        model.add_linear_constraint(sum(weights[i] * take[i] for i in ITEMS) <= room)
    return model, take


EVERY = pytest.mark.parametrize(
    "build", [in_cp_sat, in_linear_solver, in_mathopt], ids=lambda build: build.__name__
)


def newsvendor(*, recourse=True):
    """Order at 1 a piece, at most 10; what is missing is bought later at 3 and 4."""

    def build(demand):
        model = mathopt.Model()
        order = [model.add_variable(lb=0) for _ in demand]
        missing = [model.add_variable(lb=0, ub=1e3 if recourse else 0.0) for _ in demand]
        for ordered, bought, wanted in zip(order, missing, demand.tolist(), strict=True):
            model.add_linear_constraint(ordered + bought >= wanted)
        model.add_linear_constraint(sum(order) <= 10)
        model.minimize(sum(order) + 3 * missing[0] + 4 * missing[1])
        return model, {"order": order}

    return OrtoolsProblem(build, "min", solver="GLOP")


def facilities(y_hat):
    """Serve two customers, each from one of two places; a place costs 3 to open."""
    model = cp_model.CpModel()
    serve = [[model.new_bool_var(f"{i} {j}") for j in range(2)] for i in range(2)]
    is_open = [model.new_bool_var(f"{j}") for j in range(2)]
    for i, j in product(range(2), repeat=2):
        model.add_implication(serve[i][j], is_open[j])
    for row in serve:
        model.add_exactly_one(row)
    costs = (float(y_hat[i, j]) * serve[i][j] for i, j in product(range(2), repeat=2))
    model.minimize(sum(costs) + 3.0 * sum(is_open))
    return model, {"serve": serve, "open": is_open}


def best_packing(values, capacity):
    packings = np.array(list(product([0.0, 1.0], repeat=5)))
    fits = packings[(packings @ WEIGHTS.T <= capacity).all(axis=1)]
    return fits[(fits @ values).argmax()]


@EVERY
@pytest.mark.parametrize("context", [None, (6, 5)])
def test_the_packing_is_the_one_of_brute_force(build, context):
    problem = OrtoolsLinearProblem(build, "max")
    for values in np.random.default_rng(0).normal(1, 1, (6, 5)):
        z = problem.solve(values, context)
        np.testing.assert_array_equal(z, best_packing(values, context or (9, 8)))
        assert problem.objective(z, values, context) == z @ values
        np.testing.assert_array_equal(problem.slope(z, values, context), z)


@EVERY
def test_a_model_is_built_once_while_the_context_stays(build):
    built = []

    def counted(context):
        built.append(context)
        return build(context)

    problem, y = OrtoolsLinearProblem(counted, "max"), np.ones(5)
    for context in [(9, 8), (9, 8), (6, 5), (6, 5), (9, 8)]:
        problem.solve(y, context)
    assert built == [(9, 8), (6, 5), (9, 8)]


@EVERY
def test_the_contract_is_kept(build):
    y = np.random.default_rng(0).normal(1, 1, (2, 5))
    assert check_problem(OrtoolsLinearProblem(build, "max"), y).is_affine


def test_workers_threads_and_a_store_give_the_same_answers(tmp_path):
    problem, y = OrtoolsLinearProblem(in_cp_sat, "max"), np.random.default_rng(1).random((3, 5))
    context = [(9, 8), (6, 5), (7, 7)]
    asked = {"context": context, "sampler": AllPerturbed(0.5), "slopes": True}
    here = Oracle(problem).sample(y, n_samples=4, **asked)  # set up before it travels
    with ThreadPoolExecutor(2) as threads:
        runs = [
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=2, **asked),
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=4, **asked),
            Oracle(problem, executor=threads).sample(y, n_samples=4, **asked),
        ]
    for run in runs:
        np.testing.assert_array_equal(run[2].regret, here[2].regret[: run.n_samples])


def test_recourse_is_solved_under_the_truth_with_the_decision_fixed():
    problem = newsvendor()
    for y_hat, y in np.random.default_rng(2).uniform(0, 8, (4, 2, 2)):
        z = problem.solve(y_hat)
        cost = z["order"].sum() + np.maximum(y - z["order"], 0) @ [3, 4]
        assert problem.objective(z, y) == pytest.approx(cost)
    check_problem(problem, np.random.default_rng(2).uniform(2, 5, (2, 2)))


def test_a_decision_that_the_truth_forbids_names_the_pattern():
    problem = newsvendor(recourse=False)
    z = problem.solve(np.array([2.0, 5.0]))
    with pytest.raises(ProblemError, match=r"decision fixed.*INFEASIBLE.*Give the model recourse"):
        problem.objective(z, np.array([3.0, 5.0]))


@pytest.mark.parametrize("given", [False, True])
def test_costs_in_part_known_are_scored_in_floats(given):
    def objective(z, y):
        return float((z["serve"] * y).sum() + 3 * z["open"].sum())

    slope = (lambda z, y: z["serve"]) if given else None
    problem = OrtoolsProblem(facilities, "min", objective=objective if given else None, slope=slope)
    y = np.array([[1.1, 2.3], [5.7, 0.4]])
    z = problem.solve(y)
    np.testing.assert_array_equal(z["open"], [0, 1])  # 3 + 2.3 + 0.4 is less than 6 + 1.1 + 0.4
    assert problem.objective(z, y) == pytest.approx(5.7, rel=1e-12)
    assert problem.objective(z, y + 1) == pytest.approx(7.7, rel=1e-12)
    assert check_problem(problem, y + np.random.default_rng(0).random((2, 2, 2))).is_affine


@EVERY
def test_failed_calls_carry_the_status_of_or_tools(build):
    problem = OrtoolsLinearProblem(build, "max")
    with pytest.raises(OracleError, match=r"instance 0, the label itself.*is INFEASIBLE"):
        Oracle(problem).sample(np.ones((1, 5)), AllPerturbed(1), 1, context=[(-1, 8)])
    assert problem.solve(np.ones(5), (9, 8)).sum() == 2  # the next call works


def hard():
    model, rng = cp_model.CpModel(), np.random.default_rng(0)
    take = [model.new_bool_var(f"{i}") for i in range(50)]
    for weights in rng.integers(1, 100, (5, 50)).tolist():
        model.add(sum(w * x for w, x in zip(weights, take, strict=True)) == 1205)
    return model, take


def invalid():
    model = cp_model.CpModel()
    take = model.new_int_var(0, 2**28, "take")
    model.add(2**60 * take <= 5)
    return model, [take]


def unbounded():
    model = mathopt.Model()
    return model, [model.add_variable(lb=0)]


@pytest.mark.parametrize(
    ("build", "n", "status"),
    [(hard, 50, "UNKNOWN"), (invalid, 1, "MODEL_INVALID.*overflow"), (unbounded, 1, "UNBOUNDED")],
)
def test_no_decision_is_a_failed_call(build, n, status):
    problem = OrtoolsLinearProblem(build, "max", time_limit=1e-3)
    with pytest.raises(ProblemError, match=f"found no decision: its status is {status}"):
        problem.solve(np.ones(n))


def test_a_wrong_argument_is_named():
    def with_objective():
        model, take = in_cp_sat()
        model.minimize(take[0])
        return model, take

    wide = lambda: (model := cp_model.CpModel(), [model.new_int_var(0, 2**40, "z")])  # noqa: E731
    y = np.ones(5)
    for call, message in [
        (lambda: OrtoolsLinearProblem(in_cp_sat, "best"), "`sense` of OrtoolsLinearProblem"),
        (lambda: OrtoolsLinearProblem(in_cp_sat()[0], "max"), "`build` must be a function"),
        (lambda: OrtoolsLinearProblem(lambda: 3, "max").solve(y), "must return a model and the v"),
        (lambda: OrtoolsLinearProblem(lambda: (3, []), "max").solve(y), "got a int for the model"),
        (lambda: OrtoolsLinearProblem(with_objective, "max").solve(y), "no objective of its own"),
        (lambda: OrtoolsLinearProblem(in_cp_sat, "max").solve(np.ones(4)), "of 5 variables, got"),
        (lambda: OrtoolsLinearProblem(wide, "max").solve(np.ones(1)), "narrower bounds"),
        (
            lambda: OrtoolsLinearProblem(in_mathopt, "max", solver="SCIP").solve(y),
            r"`solver` must be one of .*'GSCIP'.*got 'SCIP'",
        ),
        (
            lambda: OrtoolsLinearProblem(in_linear_solver, "max", options={"a": 1}).solve(y),
            "takes no `options`",
        ),
        (
            lambda: OrtoolsProblem(facilities, "max").solve(np.ones((2, 2))),
            '`sense` is "max", but the model.* has "min"',
        ),
    ]:
        with pytest.raises((InvalidInputError, ShapeError, ProblemError), match=message):
            call()


def test_a_clash_with_highspy_says_what_to_install(monkeypatch):
    def fail(module, extra):
        raise MissingExtraError("absent") from ImportError("libortools.so: undefined symbol: x")

    monkeypatch.setattr(_ortools_models, "require", fail)
    with pytest.raises(MissingExtraError, match=r"pip install 'highspy<1\.15'"):
        OrtoolsLinearProblem(in_cp_sat, "max")


def test_or_tools_and_highspy_live_in_one_process():
    assert pytest.importorskip("highspy").Highs().version()  # OR-Tools is loaded above
