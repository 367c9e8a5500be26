"""Assignment: give each worker a task at the least cost."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains import Domain
from lodl.domains._domain import Sizes, check_sizes, legacy_rng, polynomials
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems import LinearProblem


def assignment(
    seed: int = 135,
    *,
    sizes: Sizes = (1000, 250, 1000),
    n_workers: int = 8,
    n_tasks: int = 8,
    hours_share: float | None = None,
    degree: int = 4,
    noise: float = 0.5,
) -> Domain:
    """Assignment: give each worker one task, by the predicted costs of all pairs.

    Data: an instance has 5 features in all, x ~ N(0, I), and the cost of each of 8 x 8 pairs of a
    worker and a task is a polynomial of a random half of them,

        y_ij = ((B_ij x / sqrt(5) + 3)^degree + 1) / 3.5^degree * e_ij,

    with a random 0/1 array B, the same for all instances, and noise e_ij ~ U[1 - noise, 1 + noise].
    x has shape (n, 5), y has shape (n, 8, 8). With `hours_share`, each pair also takes fixed hours,
    drawn from U[1, 5], and all together may take no more than that share of what a random
    assignment takes. Model: linear, from the features to all costs at once. Problem: `Assignment`;
    a call takes 3 µs, or 14 ms with `hours_share=0.7`.

    Matching is a standard task of the literature, on data that varies from paper to paper; here the
    generator of `shortest_path` gives the costs. The least-squares model has a relative test regret
    of 0.15 to 0.17, depending on the seed.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_workers: Workers, at most as many as tasks.
        n_tasks: Tasks.
        hours_share: Limit of the hours, as a share of the mean; None for no limit.
        degree: Degree of the polynomial.
        noise: Half width of the multiplicative noise.
    """
    sizes = check_sizes(sizes)
    shape = (check_count("n_workers", n_workers), check_count("n_tasks", n_tasks))
    if n_workers > n_tasks:
        raise InvalidInputError(
            f"There must be a task for each of `n_workers` = {n_workers}, got {n_tasks}."
        )
    n_pairs = n_workers * n_tasks
    rng = legacy_rng(seed)
    x, y = polynomials(rng, (sum(sizes), 5, n_pairs), degree=degree, noise=noise)
    problem = Assignment()
    if hours_share is not None:
        hours = rng.uniform(1, 5, size=shape)
        max_hours = hours_share * n_workers * float(hours.mean())
        problem = Assignment(tuple(map(tuple, hours.tolist())), max_hours)
    return Domain.in_order(problem, sizes, x, y.reshape(-1, *shape))


@dataclass(frozen=True)
class Assignment(LinearProblem):
    """Give each of M workers one of N >= M tasks, no task to two workers.

        min_z  sum_ij z_ij y_ij,   z_ij in {0, 1},   sum_j z_ij = 1,   sum_i z_ij <= 1
        and, where hours are given,   sum_ij z_ij hours_ij <= max_hours

    A label is a matrix (M, N) of costs, a decision a matrix of zeros and ones. There is no context.
    Solved by the algorithm of Jonker and Volgenant in SciPy, and by HiGHS if that breaks the limit.

    Attributes:
        hours: Hours that each worker needs for each task; None if they do not matter.
        max_hours: Hours that all tasks may take together.
    """

    hours: tuple[tuple[float, ...], ...] | None = None
    max_hours: float = np.inf
    sense = "min"

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        hours = np.zeros(y_hats.shape[1:]) if self.hours is None else np.array(self.hours)
        if y_hats.ndim != 3 or y_hats.shape[1] > y_hats.shape[2] or hours.shape != y_hats.shape[1:]:
            raise InvalidInputError(
                "A prediction must be a matrix of costs (workers, tasks) with at least as many "
                "tasks as workers, and of the shape of `hours` where they are given, got shape "
                f"{y_hats.shape[1:]}."
            )
        zs = np.zeros(y_hats.shape)
        for z, y_hat in zip(zs, y_hats, strict=True):
            pairs = linear_sum_assignment(y_hat)
            if hours[pairs].sum() <= self.max_hours:  # the limit costs nothing
                z[pairs] = 1.0
            else:
                z[:] = _within_hours(y_hat, hours, self.max_hours)
        return zs


def _within_hours(y_hat: Array, hours: Array, max_hours: float) -> Array:
    """Return the cheapest assignment that keeps the limit of the hours."""
    n_workers, n_tasks = y_hat.shape
    worker, task = np.divmod(np.arange(y_hat.size), n_tasks)
    constraints = [
        LinearConstraint(worker == np.arange(n_workers)[:, np.newaxis], lb=1, ub=1),
        LinearConstraint(task == np.arange(n_tasks)[:, np.newaxis], ub=1),
        LinearConstraint(hours.ravel(), ub=max_hours),
    ]
    solution = milp(
        y_hat.ravel(),
        constraints=constraints,
        integrality=np.ones(y_hat.size, dtype=np.int8),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if solution.status != 0 or solution.x is None:
        raise ProblemError(f"HiGHS found no optimal decision: {solution.message}")
    z: Array = np.rint(solution.x).reshape(y_hat.shape)
    return z
