"""The two solvers behind fits: our non-negative least squares beside SciPy's, and L-BFGS.

    python speed/fit_solvers.py

Directed weights of one instance of a top-1 choice, without and with a pull towards a squared error;
then whole fits with few and many samples. Milliseconds of processor time.
"""

from collections.abc import Callable
from functools import partial
from time import process_time

import numpy as np
from scipy.optimize import nnls

from lodl._threads import one_blas_thread
from lodl.losses import DirectedWeightedMSE
from lodl.losses._least_squares import solve_nnls
from lodl.losses._weighted_mse import directed_squares
from lodl.oracle import Answers
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic


def top_one(n_samples: int, dim: int, seed: int = 0) -> Answers:
    rng = np.random.default_rng(seed)
    y, d = rng.standard_normal(dim), rng.standard_normal((n_samples, dim))
    return Answers(y, y + d, y.max() - y[(y + d).argmax(axis=1)])


def milliseconds(call: Callable[[], object], n_times: int = 10) -> float:
    call()
    start = process_time()
    for _ in range(n_times):
        call()
    return 1e3 * (process_time() - start) / n_times


def print_least_squares(n_samples: int, dim: int) -> None:
    one = top_one(n_samples, dim)
    squares, n_weights = directed_squares(one.d), 2 * dim
    ridge, towards = 0.01 * dim**2, np.full(n_weights, 0.01)
    rows = np.vstack([squares, np.sqrt(ridge) * np.eye(n_weights)])
    target = np.concatenate([one.regret, np.sqrt(ridge) * towards])
    times = [
        milliseconds(lambda: solve_nnls(squares, one.regret)),
        milliseconds(lambda: nnls(squares, one.regret)),
        milliseconds(lambda: solve_nnls(squares, one.regret, ridge=ridge, towards=towards)),
        milliseconds(lambda: nnls(rows, target)),
    ]
    print(f"{n_weights:7} {n_samples:7}  " + "  ".join(f"{time:9.2f}" for time in times))


def main() -> None:
    with one_blas_thread():
        print("weights samples       ours      SciPy  ours, pull  SciPy, pull")
        for dim in (16, 50, 264):
            for n_samples in (20, 50, 100, 1000):
                print_least_squares(n_samples, dim)
        for n_samples in (50, 150, 1000):
            one = top_one(n_samples, 50)
            for family in (DirectedWeightedMSE(), ConvexDirectedQuadratic()):
                time = milliseconds(partial(family.fit, one))
                print(f"{type(family).__name__:25} {n_samples:5} samples {time:6.1f} ms")


if __name__ == "__main__":
    main()
