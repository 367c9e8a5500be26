from itertools import permutations

import numpy as np
import pytest

from lodl.domains import Assignment, assignment
from lodl.errors import InvalidInputError


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


def test_there_may_be_more_tasks_than_workers_but_not_fewer():
    assert assignment(sizes=(2, 1, 1), n_workers=3, n_tasks=5).splits.train.y.shape == (2, 3, 5)
    with pytest.raises(InvalidInputError, match="a task for each of `n_workers` = 3, got 2"):
        assignment(n_workers=3, n_tasks=2)
    with pytest.raises(InvalidInputError, match=r"at least as many tasks.*got shape \(3, 2\)"):
        Assignment().solve(np.zeros((3, 2)))
