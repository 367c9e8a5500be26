"""Vertices next to the optimal vertex of a linear program, by one ratio test per edge.

With rows r = A x, all variables v = (x, r) lie between bounds and satisfy [A, -I] v = 0. A basis
selects as many of them as there are rows; the others stay at a bound. If a nonbasic variable moves
away from its bound, the basic ones follow, and the first that meets a bound ends the edge at the
next vertex. The factorised basis gives all edges at once, so a neighbour costs no further solve.
"""

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_array, eye_array, hstack, vstack
from scipy.sparse.linalg import splu

from lodl._typing import Array
from lodl.errors import ProblemError

_AT_BOUND = 1e-7  # share of a variable's size: within HiGHS's tolerance for feasibility
_MAX_SIZE = 10**7  # numbers of a tableau: 80 MB; edges of larger reduced costs are left out
_OPTIONS = ("presolve", "time_limit")  # options of `milp` that `linprog` has, too


def solve_vertex(costs: Array, given: dict[str, Any], options: Any) -> tuple[Array, Array]:
    """Return a vertex of the least costs, and reduced costs of variables, then of rows.

    `given` has the arrays of a `LinearProgram`.
    """
    matrix, low, high = given["A"].tocsr(), given["row_lower"], given["row_upper"]
    is_equal = low == high
    below, above = (np.isfinite(bound) & ~is_equal for bound in (high, low))
    solve: Any = linprog  # its stubs know no sparse matrices
    result = solve(
        costs,
        A_ub=vstack([matrix[below], -matrix[above]]),
        b_ub=np.concatenate([high[below], -low[above]]),
        A_eq=matrix[is_equal],
        b_eq=low[is_equal],
        bounds=np.column_stack([given["lower"], given["upper"]]),
        method="highs-ds",
        options={name: options[name] for name in _OPTIONS if name in options},
    )
    if result.x is None:
        raise ProblemError(f"HiGHS found no decision. {result.message}")
    prices, n_below = np.zeros(len(low)), int(below.sum())
    prices[is_equal] = result.eqlin.marginals
    prices[below] += result.ineqlin.marginals[:n_below]
    prices[above] -= result.ineqlin.marginals[n_below:]
    return result.x, np.concatenate([costs - matrix.T @ prices, prices])


def adjacent_vertices(x: Array, reduced: Array, costs: Array, given: dict[str, Any]) -> Array:
    """Return other vertices on an edge with the optimal one, the cheapest first, shape (k, D).

    Degenerate pivots, which change the basis and not the vertex, and rays are left out. There are
    no neighbours if HiGHS stopped between vertices, or if the basis is not determined.
    """
    low, high = (np.concatenate([given[b], given[f"row_{b}"]]) for b in ("lower", "upper"))
    matrix = given["A"]
    n_rows, n = matrix.shape
    v, columns = np.concatenate([x, matrix @ x]), hstack([matrix, -eye_array(n_rows)], format="csc")
    near = _AT_BOUND * (1 + np.abs(v))
    is_low, is_high = v - low <= near, high - v <= near
    # Between bounds a variable is basic; at a bound it may be if its reduced cost is zero.
    is_free = ~(is_low | is_high)
    order = np.argsort(np.where(is_free, -1.0, np.abs(reduced)), kind="stable")
    basic, others = order[:n_rows], order[n_rows:]
    if is_free[others].any():
        return x[np.newaxis][:0]
    others = others[(high - low > near)[others]][: _MAX_SIZE // n_rows]
    way = np.where(is_high[others], -1.0, 1.0)
    try:
        move = -splu(csc_array(columns[:, basic])).solve(columns[:, others].toarray()) * way
    except RuntimeError:  # singular
        return x[np.newaxis][:0]
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(move > 0, high[basic, None], low[basic, None]) - v[basic, None]
        steps = np.where(np.abs(move) > _AT_BOUND, room / move, np.inf).clip(min=0)
    step = np.minimum(steps.min(axis=0, initial=np.inf), (high - low)[others])
    is_edge = np.isfinite(step) & (step > near[others])
    vertices = np.repeat(v[np.newaxis], is_edge.sum(), axis=0)
    vertices[:, basic] += (move * np.where(is_edge, step, 0.0))[:, is_edge].T
    vertices[np.arange(len(vertices)), others[is_edge]] += (way * step)[is_edge]
    vertices = np.clip(vertices, low, high)[:, :n]
    rows = vertices @ matrix.T
    slack = 10 * _AT_BOUND * (1 + np.abs(rows))  # a basis that is nearly singular loses digits
    vertices = vertices[((rows > low[n:] - slack) & (rows < high[n:] + slack)).all(axis=1)]
    return np.asarray(vertices[np.argsort(vertices @ costs, kind="stable")])
