from itertools import permutations
from typing import Any

import numpy as np
import pytest

from lodl.errors import InvalidInputError, ProblemError
from lodl_benchmarks.domains import Assignment, assignment


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 4), (2, 5)])
def test_the_assignment_is_the_cheapest_of_all(shape):
    n_workers, n_tasks = shape
    y_hats = np.random.default_rng(0).normal(size=(30, *shape))
    for y_hat, z in zip(y_hats, Assignment().solve_many(y_hats), strict=True):
        assert set(z.sum(axis=1)) == {1.0}
        assert z.sum(axis=0).max() == 1.0
        ways = permutations(range(n_tasks), n_workers)
        cheapest = min(y_hat[range(n_workers), list(tasks)].sum() for tasks in ways)
        assert Assignment().objective(z, y_hat) == pytest.approx(cheapest)


@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (2, 5)])
def test_the_assignment_is_the_cheapest_within_the_hours(shape):
    rng, n_workers = np.random.default_rng(1), shape[0]
    hours = rng.uniform(1, 5, size=shape)
    ways = [list(tasks) for tasks in permutations(range(shape[1]), n_workers)]
    needed = np.array([hours[range(n_workers), tasks].sum() for tasks in ways])
    problem = Assignment(tuple(map(tuple, hours.tolist())), float(np.median(needed)))
    n_limited = 0
    for y_hat in rng.normal(size=(30, *shape)):
        costs = np.array([y_hat[range(n_workers), tasks].sum() for tasks in ways])
        z = problem.solve(y_hat, None)
        assert (z * hours).sum() <= problem.max_hours * (1 + 1e-6)
        cheapest = costs[needed <= problem.max_hours].min()
        assert problem.objective(z, y_hat) == pytest.approx(cheapest)
        n_limited += cheapest > costs.min()
    assert 0 < n_limited < 30


def test_hours_that_cannot_be_kept_are_an_error():
    with pytest.raises(ProblemError, match=r"HiGHS found no optimal decision.*infeasible"):
        Assignment(((1.0, 1.0), (1.0, 1.0)), 1.0).solve(np.ones((2, 2)), None)


def test_a_limit_of_the_hours_leaves_the_costs_as_they_are():
    free, limited = (assignment(sizes=(3, 1, 1), hours_share=share) for share in (None, 0.8))
    np.testing.assert_array_equal(free.splits.train.y, limited.splits.train.y)
    problem: Any = limited.problem
    assert problem.max_hours == pytest.approx(0.8 * 8 * np.mean(problem.hours))


def test_there_may_be_more_tasks_than_workers_but_not_fewer():
    assert assignment(sizes=(2, 1, 1), n_workers=3, n_tasks=5).splits.train.y.shape == (2, 3, 5)
    with pytest.raises(InvalidInputError, match="a task for each of `n_workers` = 3, got 2"):
        assignment(n_workers=3, n_tasks=2)
    with pytest.raises(InvalidInputError, match=r"as many tasks as workers.*got shape \(3, 2\)"):
        Assignment().solve(np.zeros((3, 2)), None)
