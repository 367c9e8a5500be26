from itertools import product

import numpy as np
import pytest

from lodl.errors import InvalidInputError
from lodl_benchmarks.real import Job, JobScheduling, ReserveCrews, Staffing


def schedules(jobs, capacities, n_periods):
    """All schedules that fit, by brute force."""
    starts = [range(job.earliest_start, job.latest_end - job.duration + 1) for job in jobs]
    for begin in product(*starts):
        for machine in product(range(len(capacities)), repeat=len(jobs)):
            use, z = np.zeros((len(capacities), n_periods)), np.zeros(n_periods)
            for job, start, m in zip(jobs, begin, machine, strict=True):
                use[m, start : start + job.duration] += job.use
                z[start : start + job.duration] += job.power
            if np.less_equal(use.T, capacities).all():
                yield z


@pytest.mark.parametrize("seed", range(4))
def test_jobs_run_at_the_least_cost_of_all_schedules_that_fit(seed):
    rng = np.random.default_rng(seed)
    jobs = tuple(
        Job(int(d), int(e), 6, float(p), int(u))
        for d, e, p, u in zip(
            rng.integers(1, 4, 4),
            rng.integers(0, 3, 4),
            rng.uniform(1, 5, 4),
            [3, 3, 2, 4],
            strict=True,
        )
    )
    capacities = (4, 5)
    every = np.array(list(schedules(jobs, capacities, 6)))
    problem = JobScheduling(jobs, capacities, 6)
    y_hats = rng.normal(1, 3, (10, 6))
    cost = (problem.solve_many(y_hats) * y_hats).sum(axis=1)
    np.testing.assert_allclose(cost, (y_hats @ every.T).min(axis=1))


def test_jobs_without_a_schedule_are_refused():
    jobs = (Job(6, 0, 6, 1.0, 3),) * 2
    with pytest.raises(InvalidInputError, match="No schedule fits"):
        JobScheduling(jobs, (4,), 6).solve(np.ones(6), None)
    with pytest.raises(InvalidInputError, match="A job must fit"):
        JobScheduling((Job(7, 0, 6, 1.0, 3),), (4,), 6)


@pytest.mark.parametrize("limit", [0, 3, 9])
def test_staff_is_the_cheapest_of_all(limit):
    problem = Staffing(n_shifts=3, wage=5.0, penalty=2.0, rate=3.0)
    rng = np.random.default_rng(limit)
    every = np.array([z for z in product(range(limit + 1), repeat=3) if sum(z) <= limit])
    for y_hat in rng.uniform(-2, 12, (10, 6)):
        z = problem.solve(y_hat, limit)
        assert z.sum() <= limit
        least = problem.objective_many(every, np.maximum(y_hat, 0), limit).min()
        assert problem.objective(z, np.maximum(y_hat, 0), limit) == pytest.approx(least)


def test_staff_needs_a_limit():
    with pytest.raises(InvalidInputError, match="needs a limit"):
        Staffing(n_shifts=3, wage=5.0, penalty=2.0, rate=3.0).solve(np.ones(6))


def test_crews_are_sent_where_most_seats_wait():
    problem, seats = ReserveCrews(n_crews=2), np.array([50.0, 100.0, 200.0])
    np.testing.assert_array_equal(problem.solve(np.array([30.0, 20.0, 1.0]), seats), [50, 100, 0])
    np.testing.assert_array_equal(problem.solve(np.array([-1.0, 20.0, -1.0]), seats), [0, 100, 0])
    assert problem.objective(np.array([50.0, 100, 0]), np.array([1.0, 2, 3]), seats) == 250
