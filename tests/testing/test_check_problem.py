import threading

import numpy as np
import pytest

import lodl.problems
from lodl.errors import InvalidInputError, OracleError, ProblemError
from lodl.evaluation import regret
from lodl.oracle import Oracle
from lodl.problems import Problem
from lodl.testing import check_problem

Y = np.random.default_rng(0).random((10, 4))


class PickOne(Problem):
    """A sound problem; each fault below overrides one part."""

    sense = "max"

    def solve(self, y_hat, context):
        z = np.zeros(4)
        z[np.argmax(y_hat)] = 1
        return z

    def objective(self, z, y, context):
        return z @ y


class RaggedDecision(PickOne):
    def solve(self, y_hat, context):
        return y_hat[y_hat > y_hat.mean()]


class DecisionOfVaryingAxes(PickOne):
    def solve(self, y_hat, context):
        return np.zeros((1,) * (1 + np.argmax(y_hat)), dtype=int)


class NoObjective(PickOne):
    def objective(self, z, y, context):
        return None


class TupleObjective(PickOne):
    def objective(self, z, y, context):
        return z @ y, z


class NoObjectiveMany(PickOne):
    def objective_many(self, zs, y, context):
        return [None] * len(zs)


class ObjectiveRaisesOnNoise(PickOne):
    def objective(self, z, y, context):
        if y.min() < 0:
            raise ArithmeticError("negative label")
        return z @ y


class OverwritesTheLabel(PickOne):
    def objective(self, z, y, context):
        y *= z
        return y.sum()


class OverwritesTheDecision(PickOne):
    def objective(self, z, y, context):
        z *= y
        return z.sum()


class OverwritesTheLabelOfMany(PickOne):
    def objective_many(self, zs, y, context):
        y -= 1
        return zs @ (y + 1)


class NoDecisions(PickOne):
    def solve_many(self, y_hats, context):
        return None


class RaisesAway(PickOne):
    def __getstate__(self):
        return {"away": True}

    def solve(self, y_hat, context):
        if hasattr(self, "away"):
            raise RuntimeError("no licence here")
        return super().solve(y_hat, context)


class NotFinite(PickOne):
    def objective(self, z, y, context):
        return np.nan


class VectorObjective(PickOne):
    def objective(self, z, y, context):
        return z * y


class OtherSolveMany(PickOne):
    def solve_many(self, y_hats, context):
        return np.eye(4)[y_hats.argmin(axis=1)]


class TooFewDecisions(PickOne):
    def solve_many(self, y_hats, context):
        return super().solve_many(y_hats, context)[1:]


class OtherObjectiveMany(PickOne):
    def objective_many(self, zs, y, context):
        return 2 * super().objective_many(zs, y, context)


class WrongSense(PickOne):
    sense = "min"  # type: ignore[assignment]


class Remembering(PickOne):
    def __init__(self):
        self.calls = 0

    def solve(self, y_hat, context):
        self.calls += 1
        return np.eye(4)[(np.argmax(y_hat) + self.calls // 4) % 4]


class Overwriting(PickOne):
    def solve(self, y_hat, context):
        z = super().solve(y_hat, context)
        y_hat[:] = 0
        return z


class CannotTravel(PickOne):
    def __init__(self):
        self.solver = threading.Lock()


class Raising(PickOne):
    def solve(self, y_hat, context):
        raise RuntimeError("licence expired")


class ProjectsByBlock(PickOne):
    def project(self, y_hats):
        return y_hats - y_hats.mean(axis=0)


class ProjectsTheLabelAway(PickOne):
    def project(self, y_hats):
        return y_hats.clip(2, 3)


class ProjectsToAnotherShape(PickOne):
    def project(self, y_hats):
        return y_hats[:, :2]


class NoDecisionUnderNoise(PickOne):
    def solve(self, y_hat, context):
        return super().solve(y_hat, context) if (y_hat > 0).all() else None


FAULTS = {
    NoDecisionUnderNoise: "`solve` returned None: is a `return` missing, or is there no solution",
    RaggedDecision: "decisions of different shapes",
    DecisionOfVaryingAxes: "decisions of different shapes",
    NoObjective: "`objective` must return one number, got None",
    TupleObjective: r"`objective` must return one number, got \(",
    NoObjectiveMany: r"its results cannot be compared \(TypeError",
    ObjectiveRaisesOnNoise: "`objective` raised ArithmeticError: negative label",
    OverwritesTheLabel: "`objective` changes the label it is given",
    OverwritesTheDecision: "`objective` changes the decision it is given",
    OverwritesTheLabelOfMany: "`objective_many` raised ValueError: .*read-only",
    NoDecisions: "`solve_many` returned None",
    RaisesAway: "in a copy sent to another process `solve` raised RuntimeError: no licence here",
    NotFinite: "`objective` must be finite, got nan",
    VectorObjective: r"`objective` must return one number, got shape \(4,\)",
    OtherSolveMany: "`solve_many` disagrees with `solve`",
    TooFewDecisions: r"one decision per prediction \(4\), got 3",
    OtherObjectiveMany: "`objective_many` disagrees with `objective`",
    WrongSense: 'true label .* is worse than under noise.* Should `sense` be "max"',
    Remembering: "depends on earlier calls",
    Overwriting: "`solve` changes the prediction it is given",
    CannotTravel: "cannot be sent to another process.*TypeError",
    Raising: "`solve` raised RuntimeError: licence expired",
    ProjectsByBlock: "differently when there are others",
    ProjectsTheLabelAway: "`project` changes the true label",
    ProjectsToAnotherShape: r"must keep the shape of its points \(4, 4\), got \(4, 2\)",
}


def test_a_sound_problem_passes():
    check_problem(PickOne(), Y)


def test_a_sound_problem_of_functions_with_context_passes():
    by_functions = lodl.problems.problem(
        lambda y_hat, cost: (y_hat > cost).astype(float),
        lambda z, y, cost: z @ (y - cost),
        sense="max",
    )
    check_problem(by_functions, Y, context=np.full(len(Y), 0.5))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_named(fault):
    with pytest.raises(ProblemError, match=f"(?s)- instances? 0.*{FAULTS[fault]}"):
        check_problem(fault(), Y)


def test_a_decision_may_be_positions_of_any_number():
    class PickPositive(Problem):
        sense = "max"

        def solve(self, y_hat, context):
            return np.flatnonzero(y_hat > 0)

        def objective(self, z, y, context):
            return y[z].sum()

    check_problem(PickPositive(), Y - 0.5)


def test_a_decision_may_be_a_tuple_of_arrays():
    class InAndOut(PickOne):
        def solve(self, y_hat, context):
            order = np.argsort(y_hat)
            return order[:3], order[3:]

        def objective(self, z, y, context):
            return y[z[1]].sum()

    check_problem(InAndOut(), Y)


def test_an_objective_may_be_undefined_under_a_noisy_prediction():
    class OnlyPositive(PickOne):
        def objective(self, z, y, context):
            return z @ y if y.min() > 0 else np.nan

    check_problem(OnlyPositive(), Y)


@pytest.mark.parametrize("method", ["solve", "objective"])
def test_a_changed_context_is_named(method):
    class Counting(PickOne):
        def solve(self, y_hat, context):
            context["n"] += method == "solve"
            return super().solve(y_hat, context)

        def objective(self, z, y, context):
            context["n"] += method == "objective"
            return super().objective(z, y, context)

    with pytest.raises(ProblemError, match="`solve` or `objective` changes the context"):
        check_problem(Counting(), Y, context=[{"n": 0} for _ in Y])


def test_a_class_is_told_to_be_called():
    with pytest.raises(InvalidInputError, match=r"got the class PickOne\. Call it"):
        check_problem(PickOne, Y)


def test_a_missing_sense_is_named():
    class Forgetful(PickOne):
        sense = None

    with pytest.raises(ProblemError, match="does not state its sense"):
        check_problem(Forgetful(), Y)


def test_it_costs_few_oracle_calls():
    class Counting(PickOne):
        calls = 0

        def solve(self, y_hat, context):
            Counting.calls += 1
            return super().solve(y_hat, context)

    check_problem(Counting(), Y)
    assert Counting.calls <= 60


@pytest.mark.parametrize(
    ("objective", "is_affine"),
    [
        (lambda z, y: y[z] + 3, True),
        (lambda z, y: y[z] ** 2, False),
        (lambda z, y: abs(y[z]), False),
    ],
)
def test_it_says_whether_the_objective_is_affine_in_the_label(objective, is_affine):
    y = np.abs(np.random.default_rng(0).standard_normal((5, 4)))
    problem = lodl.problem(
        lambda y_hat: int(np.argmax(y_hat)), objective, sense="max", project=np.abs
    )
    report = check_problem(problem, y)
    assert report.is_affine == is_affine
    assert ("is not affine" in str(report)) != is_affine
    assert "is ok on 3 instances" in str(report)


def test_a_context_that_is_changed_by_the_first_call_only_is_noticed():
    def solve(y_hat, context):
        context.sort()
        return int(np.argmax(y_hat))

    problem = lodl.problem(solve, lambda z, y, context: y[z], sense="max")
    with pytest.raises(ProblemError, match="changes the context it is given"):
        check_problem(problem, np.eye(3), context=[[3, 1, 2] for _ in range(3)])


def test_a_solver_that_ignores_the_prediction_is_asked_about():
    problem = lodl.problem(lambda y_hat: 0, lambda z, y: y[z], sense="max")
    report = check_problem(problem, np.random.default_rng(0).random((3, 4)))
    assert report.n_changed == 0
    assert "Does `solve` use the prediction?" in str(report)


def test_a_finding_of_several_instances_is_told_once():
    problem = lodl.problem(lambda y_hat: 0, lambda z, y: np.nan, sense="max")
    with pytest.raises(ProblemError, match="instances 0, 1, 2: `objective` must be finite") as told:
        check_problem(problem, np.eye(3))
    assert str(told.value).count("must be finite") == 1


class Locked(Problem):
    """Cannot be pickled."""

    sense = "max"

    def __init__(self):
        self.handle = threading.Lock()

    def solve(self, y_hat, context):
        return int(np.argmax(y_hat))

    def objective(self, z, y, context):
        return y[z]


@pytest.mark.slow
def test_a_problem_that_cannot_travel_is_told_how_it_could():
    with pytest.raises(ProblemError, match=r"def __setstate__\(self, arguments\)"):
        check_problem(Locked(), np.eye(3))
    with pytest.raises(OracleError, match=r"def __setstate__\(self, arguments\)"):
        regret(Oracle(Locked(), n_jobs=2), np.eye(3), np.eye(3))
