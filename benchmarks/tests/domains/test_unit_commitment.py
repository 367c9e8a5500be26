from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from lodl.errors import InvalidInputError
from lodl.problems.highs import LinearProgram, RecourseProgram
from lodl_benchmarks.domains import UnitCommitment, unit_commitment

SMALL = UnitCommitment(
    least=(0.8, 0.3), most=(1.6, 0.9), cost=(15.0, 40.0), fixed=(8.0, 3.0), start=(30.0, 12.0),
    min_up=(3, 2), spot=100.0,
)  # fmt: skip


def schedules(problem, n_periods):
    """All schedules that keep the least running times."""
    rows = [
        [row for row in product([0, 1], repeat=n_periods) if keeps(row, periods)]
        for periods in problem.min_up
    ]
    return np.array(list(product(*rows)), dtype=float)


def keeps(row, min_up):
    runs = "".join(map(str, row)).split("0")
    return all(len(run) >= min_up for run in runs[:-1] if run)  # the last lasts to the end of day


def cost_of(problem, z, y):
    """What a schedule costs, period by period, with the market as a linear program."""
    total = 0.0
    for period, demand in enumerate(y):
        now, before = z[:, period], z[:, period - 1] if period else np.zeros(len(z))
        total += now @ problem.fixed + np.maximum(now - before, 0) @ problem.start
        n = len(now)
        total += linprog(
            [*problem.cost, problem.spot, problem.surplus],
            A_eq=[[1.0] * n + [1.0, -1.0]],
            b_eq=[demand],
            bounds=[*zip(now * problem.least, now * problem.most, strict=True), *[(0, None)] * 2],
        ).fun
    return total


def as_mixed_integer_program(problem, n_periods):
    """The same task for HiGHS: variables u, starts, p, bought, surplus; the demand is predicted."""
    n, eye = len(problem.min_up), np.eye(n_periods)
    zero, wide = np.zeros((n_periods, n_periods)), np.zeros((n_periods, 2 * n_periods))

    def block(plant, u, starts, p):
        parts = [[zero] * n for _ in range(3)]
        for part, matrix in zip(parts, (u, starts, p), strict=True):
            part[plant] = matrix
        return np.hstack([*parts[0], *parts[1], *parts[2], wide])

    rows = []
    for g in range(n):
        begun = sum(np.eye(n_periods, k=-k) for k in range(problem.min_up[g]))
        rows += [
            block(g, eye - np.eye(n_periods, k=-1), -eye, zero),
            block(g, -eye, begun, zero),
            block(g, -problem.most[g] * eye, zero, eye),
            block(g, problem.least[g] * eye, zero, -eye),
        ]
    balance = np.hstack([np.zeros((n_periods, 2 * n * n_periods)), *[eye] * n, eye, -eye])
    matrix = np.concatenate([*rows, balance])
    n_whole, n_rows = 2 * n * n_periods, len(matrix)
    prices = [problem.fixed, problem.start, problem.cost, (problem.spot, problem.surplus)]
    program = LinearProgram(
        matrix,
        "min",
        row_upper=0,
        upper=np.where(np.arange(matrix.shape[1]) < n_whole, 1, np.inf),
        integrality=np.arange(matrix.shape[1]) < n_whole,
        costs=np.repeat(np.concatenate(prices), n_periods),
    )
    first, last = range(n * n_periods), range(n_rows - n_periods, n_rows)
    return RecourseProgram(program, predicted="both", first_stage=first, rows=last)


def test_the_schedule_is_the_cheapest_of_all():
    every, rng = schedules(SMALL, 5), np.random.default_rng(0)
    for y_hat in rng.uniform(0, 3, (10, 5)):
        costs = SMALL.objective_many(every, y_hat)
        z = SMALL.solve(y_hat)
        assert (every == z).all(axis=(1, 2)).any()
        assert SMALL.objective(z, y_hat) == pytest.approx(costs.min(), rel=1e-12)


def test_the_objective_is_that_of_a_linear_program_in_each_period():
    every, rng = schedules(SMALL, 4), np.random.default_rng(1)
    for z, y in zip(rng.permutation(every)[:8], rng.uniform(-0.5, 4, (8, 4)), strict=True):
        assert SMALL.objective(z, y) == pytest.approx(cost_of(SMALL, z, y))


def test_solver_and_objective_are_those_of_a_mixed_integer_program():
    domain = unit_commitment(sizes=(3, 1, 1), n_periods=8)
    problem, y = domain.problem, domain.splits.train.y
    program = as_mixed_integer_program(problem, 8)
    for y_hat in y:
        z = program.solve(y_hat)
        best = program.objective(z, y_hat)
        ours = problem.objective(problem.solve(y_hat, None), y_hat, None)
        assert ours == pytest.approx(best, rel=1e-9)
        later = program.objective(z, y[0])
        ours = problem.objective(z.reshape(4, 8), y[0], None)
        assert ours == pytest.approx(later, rel=1e-9)


def test_a_decision_does_not_depend_on_its_neighbours():
    y_hats = np.random.default_rng(2).uniform(0, 4, (150, 6))  # more than a block
    together = UnitCommitment().solve_many(y_hats)
    for at in (0, 127, 128, 149):
        np.testing.assert_array_equal(together[at], UnitCommitment().solve(y_hats[at]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_up": (1, 2, 0, 1)}, "`min_up` must be a whole number of at least 1"),
        ({"cost": (1.0,)}, "one number per plant, as many as 4"),
        ({"least": (5.0, 0.0, 0.0, 0.0)}, "`least` must be between 0 and `most`"),
        ({"spot": 50.0}, "`spot` must be higher than the cost of every plant"),
    ],
)
def test_settings_must_make_sense(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        UnitCommitment(**settings)


def test_a_prediction_must_be_a_vector():
    with pytest.raises(InvalidInputError, match=r"a vector of demands, got shape \(2, 2\)"):
        SMALL.solve(np.zeros((2, 2)))
