from itertools import product
from typing import Any

import numpy as np
import pytest

from lodl.errors import InvalidInputError, MissingExtraError, ProblemError, ShapeError
from lodl.problems import ortools
from lodl.problems.ortools import OrtoolsLinearProblem, OrtoolsProblem
from lodl.testing import check_problem

cp_model = pytest.importorskip("ortools.sat.python.cp_model")
WEIGHTS = np.array([[3, 4, 5, 2, 6], [1, 5, 2, 4, 3]])


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


def test_a_model_is_built_once_while_the_context_stays():
    built = []

    def counted(context):
        built.append(context)
        return in_cp_sat(context)

    problem, y = OrtoolsLinearProblem(counted, "max"), np.ones(5)
    for context in [(9, 8), (9, 8), (6, 5), (6, 5), (9, 8)]:
        problem.solve(y, context)
    assert built == [(9, 8), (6, 5), (9, 8)]


class ScoredFacilities(OrtoolsProblem):
    def objective(self, z, y, context=None):
        return float((z["serve"] * y).sum() + 3 * z["open"].sum())

    def slope(self, z, y, context=None):
        return z["serve"]


@pytest.mark.parametrize("kind", [OrtoolsProblem, ScoredFacilities])
def test_costs_in_part_known_are_scored_in_floats(kind):
    problem = kind(facilities, "min")
    y = np.array([[1.1, 2.3], [5.7, 0.4]])
    z = problem.solve(y)
    np.testing.assert_array_equal(z["open"], [0, 1])  # 3 + 2.3 + 0.4 is less than 6 + 1.1 + 0.4
    assert problem.objective(z, y) == pytest.approx(5.7, rel=1e-12)
    assert problem.objective(z, y + 1) == pytest.approx(7.7, rel=1e-12)
    assert check_problem(problem, y + np.random.default_rng(0).random((2, 2, 2))).is_affine


def invalid():
    model = cp_model.CpModel()
    take = model.new_int_var(0, 2**28, "take")
    model.add(2**60 * take <= 5)
    return model, [take]


def test_an_invalid_model_is_a_failed_call():
    with pytest.raises(ProblemError, match=r"its status is MODEL_INVALID.*overflow"):
        OrtoolsLinearProblem(invalid, "max").solve(np.ones(1))


def newsvendor(demand, most=100):
    """Order two goods; what is missing is bought later, at most `most` of each."""
    model = cp_model.CpModel()
    order = [model.new_int_var(0, 100, f"order {i}") for i in range(2)]
    missing = [model.new_int_var(0, most, f"missing {i}") for i in range(2)]
    for i in range(2):
        model.add(order[i] + missing[i] >= int(demand[i]))
    model.add(sum(order) <= 10)
    model.minimize(sum(order) + 3 * missing[0] + 4 * missing[1])
    return model, {"order": order}


def test_recourse_is_solved_under_the_label_with_the_decision_fixed():
    problem = OrtoolsProblem(newsvendor, "min")
    for y_hat, y in np.random.default_rng(2).integers(0, 8, (4, 2, 2)).astype(float):
        z = problem.solve(y_hat)
        assert list(z) == ["order"]
        cost = z["order"].sum() + np.maximum(y - z["order"], 0) @ [3, 4]
        assert problem.objective(z, y) == pytest.approx(cost)


def test_a_decision_that_the_label_forbids_says_what_to_add():
    problem = OrtoolsProblem(lambda demand: newsvendor(demand, most=0), "min")
    z = problem.solve(np.array([2.0, 5.0]))
    assert problem.objective(z, np.array([2.0, 5.0])) == pytest.approx(7)
    with pytest.raises(ProblemError, match=r"INFEASIBLE.*Give the model recourse"):
        problem.objective(z, np.array([3.0, 5.0]))


def test_a_wrong_argument_is_named():
    def with_objective():
        model, take = in_cp_sat()
        model.minimize(take[0])
        return model, take

    wide = lambda: (model := cp_model.CpModel(), [model.new_int_var(0, 2**40, "z")])  # noqa: E731
    three: Any = lambda: 3  # noqa: E731
    y = np.ones(5)
    for call, message in [
        (lambda: OrtoolsLinearProblem(in_cp_sat, "best"), "`sense` of OrtoolsLinearProblem"),
        (lambda: OrtoolsLinearProblem(in_cp_sat()[0], "max"), "`build` must be a function"),
        (lambda: OrtoolsLinearProblem(three, "max").solve(y), "must return a model and the v"),
        (lambda: OrtoolsLinearProblem(lambda: (3, []), "max").solve(y), "got a int for the model"),
        (lambda: OrtoolsLinearProblem(with_objective, "max").solve(y), "must have no objective"),
        (
            lambda: OrtoolsLinearProblem(in_cp_sat, "max").solve(np.ones(4)),
            "one per variable",
        ),
        (lambda: OrtoolsLinearProblem(wide, "max").solve(np.ones(1)), "narrower bounds"),
        (
            lambda: OrtoolsProblem(facilities, "max").solve(np.ones((2, 2))),
            '`sense` is "max", but the sense of the model.* "min"',
        ),
    ]:
        with pytest.raises((InvalidInputError, ShapeError, ProblemError), match=message):
            call()


def test_a_clash_with_highspy_says_what_to_install(monkeypatch):
    def fail(module, extra):
        raise MissingExtraError("absent") from ImportError("libortools.so: undefined symbol: x")

    monkeypatch.setattr(ortools, "require", fail)
    with pytest.raises(MissingExtraError, match=r"pip install 'highspy<1\.15'"):
        OrtoolsLinearProblem(in_cp_sat, "max")


def test_or_tools_and_highspy_live_in_one_process():
    assert pytest.importorskip("highspy").Highs().version()  # OR-Tools is loaded above
