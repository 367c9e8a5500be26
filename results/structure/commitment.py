"""A mixed-integer program of more than half a second a solve: units committed against prices.

    python results/structure/commitment.py SEED 1 2 ...       # ours with so many calls an instance
    python results/structure/commitment.py SEED default ...   # ours without `max_calls`
    python results/structure/commitment.py SEED SPO+ ...      # half an hour; adds to rows.jsonl

Prices of 48 hours (0.6 plus 0.6 of a polynomial of degree 6 with noise 0.5) are predicted by a
linear model of five features. Units have start-up costs, least outputs, ramps, and least times on
and off. An hour's output is limited, at most one unit starts in an hour, and the limit on emissions
ties units and hours together. Regret of test instances in percent of the sum of their optima. SPO+
is that of `structure.py`, 21 calls an instance. Checks of the problem are among ours, but for 20
with one call an instance. Seconds are CPU time on one core, without test decisions.
"""

import json
import sys
import time

import numpy as np
from scipy.sparse import lil_array
from structure import ROWS, spo_plus

import lodl
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import legacy_rng, polynomials
from lodl.problems.highs import LinearProgram

N, N_TEST, UNITS, HOURS = 60, 60, 10, 48


def commitment(seed: int, n_units: int = UNITS, hours: int = HOURS) -> LinearProgram:
    """Return the program of all variables: on, started, output above the least one; hourly sum."""
    rng = np.random.default_rng(seed)
    least, room = rng.uniform(0.3, 0.6, n_units), rng.uniform(0.5, 1.2, n_units)
    marginal, idle = rng.uniform(0.4, 1.3, n_units), rng.uniform(0.05, 0.3, n_units)
    start, ramp = rng.uniform(0.5, 2.0, n_units), room * rng.uniform(0.3, 0.6, n_units)
    up, down = rng.integers(3, 7, n_units), rng.integers(2, 6, n_units)
    emitted = rng.uniform(0.5, 1.5, n_units)
    on, started, above = (k * n_units * hours for k in range(3))
    total = 3 * n_units * hours
    n = total + hours
    rows, low, high = list[dict[int, float]](), list[float](), list[float]()

    def add(row: dict[int, float], lower: float, upper: float) -> None:
        rows.append(row)
        low.append(lower)
        high.append(upper)

    for g in range(n_units):
        for t in range(hours):
            u, v, q = (k + g * hours + t for k in (on, started, above))
            add({q: 1, u: -room[g]}, -np.inf, 0)
            if t:
                add({v: 1, u: -1, u - 1: 1}, 0, np.inf)
                add({q: 1, q - 1: -1}, -ramp[g], ramp[g])
            else:
                add({v: 1, u: -1}, 0, np.inf)
            add({u: -1, **{v - k: 1 for k in range(min(up[g], t + 1))}}, -np.inf, 0)
            if t >= down[g]:
                add({u - down[g]: 1, **{v - k: 1 for k in range(down[g])}}, -np.inf, 1)
    for t in range(hours):
        produced = {above + g * hours + t: 1.0 for g in range(n_units)}
        produced |= {on + g * hours + t: least[g] for g in range(n_units)}
        add({**produced, total + t: -1}, 0, 0)
        add({started + g * hours + t: 1 for g in range(n_units)}, 0, 1)
    burnt = {above + g * hours + t: emitted[g] for g in range(n_units) for t in range(hours)}
    burnt |= {
        on + g * hours + t: emitted[g] * least[g] for g in range(n_units) for t in range(hours)
    }
    add(burnt, 0, 0.25 * float(emitted @ (least + room)) * hours)
    matrix = lil_array((len(rows), n))
    for i, row in enumerate(rows):
        for j, number in row.items():
            matrix[i, j] = number
    costs = -np.concatenate([np.repeat(of, hours) for of in (idle + marginal * least, start)])
    costs = np.concatenate([costs, -np.repeat(marginal, hours), np.zeros(hours)])
    upper = np.r_[np.ones(2 * n_units * hours), np.full(n_units * hours, np.inf)]
    return LinearProgram(
        matrix.tocsc(),
        "max",
        row_lower=low,
        row_upper=high,
        upper=np.r_[upper, np.full(hours, 0.7 * float((least + room).sum()))],
        integrality=np.r_[np.ones(2 * n_units * hours), np.zeros(n_units * hours + hours)],
        costs=costs,
        predicted=range(total, n),
        options={"mip_rel_gap": 1e-5},
    )


def labels(seed: int) -> tuple[Array, Array]:
    x, y = polynomials(legacy_rng(seed), (N + N_TEST, 5, HOURS), degree=6, noise=0.5)
    return x, 0.6 + 0.6 * y


class Predicted:
    """A program whose decision is that of the last variables: the slope of its objective."""

    def __init__(self, program: LinearProgram, dim: int) -> None:
        self.program, self.dim, self.sense = program, dim, program.sense

    def solve(self, y: Array, context: InstanceContext = None) -> Array:
        return self.program.solve(y, context)[-self.dim :]


def run(task: str, program: LinearProgram, x: Array, y: Array, n: int) -> None:
    """Train by the methods of the command line, and append a row for each with its test regret."""
    seed, best = int(sys.argv[1]), np.empty(0)
    for method in sys.argv[2:]:
        began, calls, chosen = time.process_time(), 21.0, ""
        if method == "SPO+":
            own = Predicted(program, y.shape[1])
            predictors = {method: spo_plus(own, x[:n], y[:n], [None] * n)}
        else:
            most = None if method == "default" else max(int(method) * n, n + 20)
            model = lodl.DecisionFocusedRegressor(program, max_calls=most, random_state=seed)
            model.fit(x[:n], y[:n])
            chosen, calls = model.result_.selected_name, model.result_.n_calls / n
            predictors = {"default": model.predict}
            if most:
                predictors = {
                    "squared error": model.plain_.predict,
                    f"at most {method} calls": model.predict,
                }
        more = {"calls": round(calls, 2), "seconds": round(time.process_time() - began, 1)}
        if not len(best):
            best = np.array([program.objective(program.solve(of), of) for of in y[n:]])
        for name, predict in predictors.items():
            pairs = zip(map(program.solve, predict(x[n:])), y[n:], strict=True)
            lost = best - np.array([program.objective(*pair) for pair in pairs])
            regret = 100 * abs(lost.sum() / best.sum())
            row = {"task": task, "seed": seed, "method": name, "regret": round(float(regret), 3)}
            if name != "squared error":
                row |= {**more, "chosen": chosen}
            with ROWS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    SEED = int(sys.argv[1])
    run("commitment", commitment(SEED), *labels(SEED), N)
