"""Linear programs whose calls bring the vertices next to theirs, without them, and SPO+.

    python results/structure/structure.py contexts SEED ...   # adds to rows.jsonl
    python results/structure/structure.py path SEED ...
    python results/structure/structure.py curve SEED ...
    python results/structure/structure.py --pivots  # time of a call with neighbours, of one without
    python results/structure/structure.py --table   # means and paired differences

200 instances with five features, linear models, costs or profits of degree 6 with noise 0.5;
regret of 1,000 test instances in percent of the sum of their optima. With a context, constraints
differ by instance: demands (transport, flow) or capacities (production). SPO+ is one linear model,
from least squares, 20 epochs of Adam at 0.02 in batches of 32, with a running mean of the weights.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import lodl
from lodl._typing import Array
from lodl.domains._domain import legacy_rng, polynomials
from lodl.problems.highs import LinearProgram

ROWS = Path(__file__).with_name("rows.jsonl")
N, N_TEST = 200, 1000
Instances = tuple[LinearProgram, Array, Array, list[Any]]


class Plain(LinearProgram):
    """The same program without its neighbours."""

    def has_neighbours(self, context: Any) -> bool:
        return False


def labels(seed: int, n_numbers: int) -> tuple[Array, Array]:
    return polynomials(legacy_rng(seed), (N + N_TEST, 5, n_numbers), degree=6, noise=0.5)


def transport(seed: int, kind: type[LinearProgram]) -> Instances:
    """Five plants, eight customers whose demands are the context."""
    rng, s, d = np.random.default_rng(seed), 5, 8
    mean = rng.integers(5, 15, d).astype(float)
    supply = np.ceil(rng.dirichlet(np.full(s, 8.0)) * mean.sum() * 1.3)
    matrix = np.concatenate([np.kron(np.eye(s), np.ones(d)), np.kron(np.ones(s), np.eye(d))])
    demand = np.round(mean * rng.uniform(0.5, 1.4, (N + N_TEST, d)))
    demand = np.floor(demand * np.minimum(1, supply.sum() / demand.sum(1))[:, None])
    none = np.full(s, -np.inf)
    contexts = [{"row_lower": np.r_[none, q], "row_upper": np.r_[supply, q]} for q in demand]
    return kind(matrix, "min"), *labels(seed, s * d), contexts


def flow(seed: int, kind: type[LinearProgram]) -> Instances:
    """Three plants, four hubs and six customers; arcs have capacities, demands are the context."""
    rng, a, b, c = np.random.default_rng(seed), 3, 4, 6
    arcs = [(i, a + j) for i in range(a) for j in range(b)]
    arcs += [(a + j, a + b + k) for j in range(b) for k in range(c)]
    mean = rng.integers(5, 15, c).astype(float)
    demand = np.round(mean * rng.uniform(0.5, 1.4, (N + N_TEST, c)))
    upper = np.ceil(np.r_[np.full(a * b, 0.3 * mean.sum()), np.full(b * c, 0.7 * mean.max())])
    low = np.c_[np.zeros((len(demand), a + b)), -demand]
    high = low.copy()
    high[:, :a] = np.ceil(0.6 * mean.sum())
    contexts = [{"row_lower": q, "row_upper": r} for q, r in zip(low, high, strict=True)]
    return kind(incidence(a + b + c, arcs), "min", upper=upper), *labels(seed, len(arcs)), contexts


def production(seed: int, kind: type[LinearProgram]) -> Instances:
    """Twenty products on six resources whose capacities are the context; profits are predicted."""
    rng, products, resources = np.random.default_rng(seed), 20, 6
    matrix = rng.uniform(0.5, 3, (resources, products)) * (rng.random((resources, products)) < 0.6)
    matrix[rng.integers(resources, size=products), np.arange(products)] += 1
    typical = 0.35 * (matrix @ np.full(products, 10.0))
    capacity = typical * rng.uniform(0.6, 1.4, (N + N_TEST, resources))
    return (
        kind(matrix, "max", upper=10.0),
        *labels(seed, products),
        [{"row_upper": q} for q in capacity],
    )


def path(seed: int, kind: type[LinearProgram], grid: int = 12) -> Instances:
    """The 12 x 12 path of PyEPO as a flow, without context."""
    arcs = []
    for i in range(grid):
        arcs += [(i * grid + j, i * grid + j + 1) for j in range(grid - 1)]
        arcs += [(i * grid + j, (i + 1) * grid + j) for j in range(grid) if i < grid - 1]
    need = np.zeros(grid * grid)
    need[0], need[-1] = 1, -1
    sizes = {"sizes": (N, 1, N_TEST), "grid": (grid, grid), "degree": 6, "noise": 0.5}
    splits = lodl.domains.shortest_path(seed, **sizes).splits  # type: ignore[arg-type]
    train, test = splits.train, splits.test
    x, y = np.concatenate([train.x, test.x]), np.concatenate([train.y, test.y])
    bounds = {"row_lower": need[:-1], "row_upper": need[:-1]}
    program = kind(incidence(grid * grid, arcs)[:-1], "min", upper=1.0, **bounds)  # type: ignore[arg-type]
    return program, x, y, [None] * len(x)


def incidence(n_nodes: int, arcs: list[tuple[int, int]]) -> Array:
    """Return the flow out of each node less the flow into it."""
    matrix = np.zeros((n_nodes, len(arcs)))
    for k, (tail, head) in enumerate(arcs):
        matrix[tail, k], matrix[head, k] = 1, -1
    return matrix


CONTEXTS = {"transport": transport, "flow": flow, "production": production}


def decisions(problem: LinearProgram, ys: Array, contexts: list[Any]) -> Array:
    return np.array([problem.solve(y, c) for y, c in zip(ys, contexts, strict=True)])


def spo_plus(problem: LinearProgram, x: Array, y: Array, contexts: list[Any]) -> Any:
    """Return the predictor of one SPO+ model."""
    sign, best = (1 if problem.sense == "min" else -1), decisions(problem, y, contexts)
    x_mean, x_std, y_mean, y_std = x.mean(0), x.std(0), y.mean(0), y.std(0)
    rows = np.c_[(x - x_mean) / x_std, np.ones(len(x))]
    w = np.linalg.lstsq(rows, (y - y_mean) / y_std, rcond=None)[0]
    average, mean, square, step, rng = w, 0 * w, 0 * w, 0, np.random.default_rng(0)
    for _ in range(20):
        for at in np.array_split(rng.permutation(len(x)), len(x) // 32):
            beyond = 2 * (y_mean + y_std * (rows[at] @ w)) - y[at]
            z = decisions(problem, beyond, [contexts[i] for i in at])
            gradient = rows[at].T @ (2 * sign * (best[at] - z) * y_std) / len(at)
            step += 1
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            size = np.sqrt(square / (1 - 0.999**step)) + 1e-12
            w = w - 0.02 * mean / (1 - 0.9**step) / size
            average = 0.95 * average + 0.05 * w
    return lambda new: y_mean + y_std * (np.c_[(new - x_mean) / x_std, np.ones(len(new))] @ average)


def run(name: str, make: Any, seed: int, methods: dict[str, dict[str, Any]]) -> None:
    """Train by each method and append a row with its test regret."""
    problem, x, y, contexts = make(seed, LinearProgram)
    known = contexts[:N] if contexts[0] is not None else None
    optimum = (decisions(problem, y[N:], contexts[N:]) * y[N:]).sum()
    for method, options in methods.items():
        began, calls, chosen = time.process_time(), 21.0, ""
        if method == "SPO+":
            predict = spo_plus(problem, x[:N], y[:N], contexts[:N])
        else:
            kind = Plain if method.startswith("without") else LinearProgram
            model = lodl.DecisionFocusedRegressor(make(seed, kind)[0], random_state=seed, **options)
            model.fit(x[:N], y[:N], context=known)
            predict, calls = model.predict, model.result_.n_calls / N
            chosen = model.result_.selected_name
            if method == "without":
                add(
                    name,
                    seed,
                    "squared error",
                    problem,
                    model.plain_.predict,
                    optimum,
                    x,
                    y,
                    contexts,
                )
        took = time.process_time() - began
        more = {"calls": calls, "seconds": round(took, 1), "chosen": chosen}
        add(name, seed, method, problem, predict, optimum, x, y, contexts, **more)


def add(*given: Any, **more: Any) -> None:
    name, seed, method, problem, predict, optimum, x, y, contexts = given
    cost = (decisions(problem, predict(x[N:]), contexts[N:]) * y[N:]).sum()
    regret = 100 * abs(cost - optimum) / abs(optimum)
    row = {"task": name, "seed": seed, "method": method, "regret": round(float(regret), 3), **more}
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def table() -> None:
    """Print mean regrets, calls and seconds, and paired differences with their standard errors."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    by: dict[tuple[str, str], dict[int, Any]] = {}
    for row in rows:
        by.setdefault((row["task"], row["method"]), {})[row["seed"]] = row
    print("| task | method | seeds | regret, % | less SPO+ | less `without` | calls | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for (task, method), seeds in by.items():
        cells = [
            task,
            method,
            str(len(seeds)),
            f"{np.mean([r['regret'] for r in seeds.values()]):.2f}",
        ]
        for other in ("SPO+", "without"):
            pair = by.get((task, other), {})
            gap = [r["regret"] - pair[s]["regret"] for s, r in seeds.items() if s in pair]
            error = np.std(gap, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            cells.append(f"{np.mean(gap):+.2f} ± {error:.2f}" if gap else "")
        for key in ("calls", "seconds"):
            known = [r[key] for r in seeds.values() if key in r]
            cells.append(f"{np.mean(known):.1f}" if known else "")
        print("| " + " | ".join(cells) + " |")


def pivots() -> None:
    """Print milliseconds of a call with and without neighbours, and how many there are."""
    print("| task | solve, ms | with neighbours, ms | neighbours |\n|---|---|---|---|")
    for name, make in {**CONTEXTS, "path": path}.items():
        problem, _, y, contexts = make(1001, LinearProgram)
        began = time.process_time()
        decisions(problem, y[:100], contexts[:100])
        middle, pairs = time.process_time(), zip(y[:100], contexts[:100], strict=True)
        found = [len(problem.neighbours(*pair)) - 1 for pair in pairs]
        took = 10 * (middle - began), 10 * (time.process_time() - middle)
        print(f"| {name} | {took[0]:.1f} | {took[1]:.1f} | {min(found)} to {max(found)} |")


def main() -> None:
    if sys.argv[1].startswith("--"):
        return table() if sys.argv[1] == "--table" else pivots()
    for seed in map(int, sys.argv[2:]):
        if sys.argv[1] == "contexts":
            for name, make in CONTEXTS.items():
                run(name, make, seed, {"without": {}, "neighbours": {}, "SPO+": {}})
        elif sys.argv[1] == "path":
            kinds, few = ("without", "neighbours"), (1, 2)
            limits = {f"{of}, {k} calls": {"max_calls": k * N + 20} for k in few for of in kinds}
            run("path", path, seed, {"without": {}, "neighbours": {}, **limits})
        else:
            for name, make in CONTEXTS.items():
                methods = {f"neighbours, {r} rounds": {"n_rounds": r} for r in (1, 2, 5, 8)}
                few = {f"without, {k} calls": {"max_calls": k * N + 20} for k in (10, 20)}
                run(name, make, seed, {**methods, **few})
    return None


if __name__ == "__main__":
    main()
