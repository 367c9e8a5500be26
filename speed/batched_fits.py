"""Would it pay to fit all instances of `ConvexDirectedQuadratic` at once, instead of one by one?

    python speed/batched_fits.py

A projected L-BFGS in NumPy that takes its steps for all instances together, each with its own step
length and its own end, beside SciPy's L-BFGS-B on the same objectives from the same starts and with
the same tolerance. 50 samples of top-1 choices; milliseconds of processor time an instance, and how
often the two end at the same value.
"""

from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.optimize

from fit_solvers import top_one
from lodl._threads import one_blas_thread
from lodl._typing import Array
from lodl.losses._least_squares import Objective, Standardised
from lodl.losses._weighted_mse import directed_squares
from lodl.oracle import Answers
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic

N_SAMPLES, N_HINGES, MEMORY = 50, 4, 10
TOLERANCE, MAX_ITERATIONS = 1e-7, 300

optimize: Any = scipy.optimize
minimise = optimize.minimize
Rows = npt.NDArray[np.intp]


class OneByOne:
    """The package's own fits, with the objective, start and end of each kept."""

    def __init__(self, instances: list[Answers]) -> None:
        self.objectives: list[Objective] = []
        self.starts: list[Array] = []
        self.ends: list[Array] = []
        optimize.minimize = self._minimise
        started = process_time()
        for one in instances:
            ConvexDirectedQuadratic().fit(one)
        self.seconds = process_time() - started
        optimize.minimize = minimise

    def _minimise(self, objective: Objective, start: Array, **options: Any) -> Any:
        result = minimise(objective, start, **options)
        self.objectives.append(objective)
        self.starts.append(start)
        self.ends.append(result.x)
        return result


class AllAtOnce:
    """The same objectives, value and gradient for many instances at once."""

    def __init__(self, instances: list[Answers], objectives: list[Objective], dim: int) -> None:
        data = [Standardised.of(one) for one in instances]
        self.d = np.stack([one.d for one in data]).astype(np.float32)
        self.squares = np.stack([directed_squares(one.d) for one in data]).astype(np.float32)
        self.regret = np.stack([one.regret for one in data]).astype(np.float32)
        self.n_factor = N_HINGES * dim
        self.strength, self.towards = self._penalties(objectives)

    def _penalties(self, objectives: list[Objective]) -> tuple[Array, Array]:
        """Read what the package's objectives are penalised by."""
        cells = [
            dict(zip(one.__code__.co_freevars, one.__closure__ or (), strict=True))
            for one in objectives
        ]
        return tuple(  # type: ignore[return-value]
            np.stack([cell[name].cell_contents for cell in cells])
            for name in ("strength", "towards")
        )

    def __call__(self, x: Array, rows: Rows) -> tuple[Array, Array]:
        d, squares, n = self.d[rows], self.squares[rows], len(rows)
        a, w = np.split(x.astype(np.float32), [self.n_factor], axis=1)
        hinge = np.maximum(a.reshape(n, N_HINGES, -1) @ d.swapaxes(1, 2), 0.0)
        residual = np.square(hinge).sum(1) + (squares @ w[..., None])[..., 0] - self.regret[rows]
        of_hinges = 2 * ((hinge * residual[:, None]) @ d).reshape(n, -1)
        of_weights = (residual[:, None] @ squares)[:, 0]
        distance = x - self.towards[rows]
        pull = self.strength[rows] * distance
        value = np.square(residual).mean(axis=1) / 2 + (pull * distance).sum(axis=1) / 2
        return value, np.concatenate([of_hinges, of_weights], axis=1) / N_SAMPLES + pull


def minimise_all(objective: AllAtOnce, x: Array, lower: Array) -> Array:
    """Return where a projected L-BFGS stops, for each row of `x`."""
    ends, rows = x.copy(), np.arange(len(x))
    value, gradient = objective(x, rows)
    scale = 1 / np.linalg.norm(gradient, axis=1)
    steps: list[tuple[Array, Array]] = []
    changes: list[Array] = []
    for _ in range(MAX_ITERATIONS):
        is_free = (x > lower) | (gradient < 0)
        direction = -_newton(gradient * is_free, steps, changes, scale) * is_free
        new, new_value, new_gradient = _search(
            objective, rows, (x, value, gradient), direction, lower
        )
        step, change = new - x, new_gradient - gradient
        bend = (step * change).sum(axis=1)
        is_bent = bend > 1e-10 * np.square(change).sum(axis=1)
        scale = np.where(is_bent, bend / np.square(change).sum(axis=1).clip(min=1e-300), scale)
        rate = np.where(is_bent, 1 / np.where(is_bent, bend, 1.0), 0.0)
        steps, changes = [*steps[1 - MEMORY :], (step, rate)], [*changes[1 - MEMORY :], change]
        is_done = value - new_value <= TOLERANCE * np.maximum(value, 1.0)
        x, value, gradient = new, new_value, new_gradient
        ends[rows] = x
        if is_done.all():
            break
        if is_done.any():
            left = ~is_done
            rows, x, value, gradient = rows[left], x[left], value[left], gradient[left]
            scale, changes = scale[left], [one[left] for one in changes]
            steps = [(one[left], rate[left]) for one, rate in steps]
    return ends


def _newton(
    gradient: Array, steps: list[tuple[Array, Array]], changes: list[Array], scale: Array
) -> Array:
    """Return the two-loop recursion of L-BFGS."""
    q, kept = gradient, []
    for (step, rate), change in zip(steps[::-1], changes[::-1], strict=True):
        share = rate * np.einsum("np,np->n", step, q)
        q = q - share[:, None] * change
        kept.append(share)
    q = q * scale[:, None]
    for (step, rate), change, share in zip(steps, changes, kept[::-1], strict=True):
        q = q + (share - rate * np.einsum("np,np->n", change, q))[:, None] * step
    return q


def _search(
    objective: AllAtOnce,
    rows: Rows,
    at: tuple[Array, Array, Array],
    direction: Array,
    lower: Array,
) -> tuple[Array, Array, Array]:
    """Return points that are better by Armijo's rule; where there is none, the old one."""
    x, value, gradient = at
    found = [array.copy() for array in at]
    waiting, length = np.arange(len(rows)), 1.0
    while len(waiting) and length > 1e-6:
        new = np.maximum(x[waiting] + length * direction[waiting], lower)
        new_value, new_gradient = objective(new, rows[waiting])
        slope = (gradient[waiting] * (new - x[waiting])).sum(axis=1)
        is_better = new_value <= value[waiting] + 1e-4 * slope
        for array, better in zip(found, (new, new_value, new_gradient), strict=True):
            array[waiting[is_better]] = better[is_better]
        waiting, length = waiting[~is_better], length / 2
    return found[0], found[1], found[2]


def main() -> None:
    print("dim instances  one by one  steps at once  same to 1e-6  to 1e-4  mean value, at once")
    with one_blas_thread():
        for dim in (10, 20, 40):
            for n in (8, 32, 300):
                instances = [top_one(N_SAMPLES, dim, seed) for seed in range(n)]
                ours = OneByOne(instances)
                objective = AllAtOnce(instances, ours.objectives, dim)
                lower = np.repeat([-np.inf, 0.0], [N_HINGES * dim, 2 * dim])
                started = process_time()
                ends = minimise_all(objective, np.stack(ours.starts), lower)
                seconds = process_time() - started
                pairs = zip(ours.objectives, ours.ends, ends, strict=True)
                values = np.array([(f(one)[0], f(other)[0]) for f, one, other in pairs])
                apart = np.abs(values[:, 1] - values[:, 0])
                print(
                    f"{dim:3} {n:9}  {1e3 * ours.seconds / n:10.2f}  {1e3 * seconds / n:13.2f}  "
                    f"{np.mean(apart < 1e-6):12.0%}  {np.mean(apart < 1e-4):7.0%}  "
                    f"{values[:, 0].mean():.5f}, {values[:, 1].mean():.5f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
