"""Lines of code that the same model takes: ours, one SPO+ model, and SPO+ with a search.

    python results/peers/lines.py

The solver is given to all (`best_path`, not counted); lines are those of each function, without its
head, blank lines and comments.
"""

import inspect
import itertools
import time

import numpy as np
import pyepo
import torch
from pyepo.data.dataset import optDataset
from pyepo.model.opt import optModel
from torch import nn
from torch.utils.data import DataLoader

import lodl

DATA = lodl.domains.shortest_path(16, sizes=(80, 20, 1000), degree=6, noise=0.5)
calls = 0


def best_path(costs):
    """Return the cheapest path, and count the call."""
    global calls
    calls += 1
    return np.asarray(DATA.problem.solve(costs, None))


def with_lodl(x, y):
    class Path(lodl.LinearProblem):
        sense = "min"

        def solve(self, y_hat, context):
            return best_path(y_hat)

    model = lodl.DecisionFocusedRegressor(Path()).fit(x, y)
    return model.predict


class Path(optModel):  # noqa: D101
    def _getModel(self):  # noqa: N802
        self.modelSense = pyepo.EPO.MINIMIZE
        return None, range(DATA.problem.n_arcs)

    def setObj(self, c):  # noqa: N802
        self.costs = np.asarray(c, dtype=float)

    def solve(self):
        z = best_path(self.costs)
        return z, float(z @ self.costs)


def with_pyepo(x, y, n_epochs=20, rate=0.01):
    torch.manual_seed(0)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    problem = Path()
    data = optDataset(problem, (x - mean) / deviation, y)
    loader = DataLoader(data, batch_size=32, shuffle=True)
    net = nn.Linear(x.shape[1], y.shape[1])
    loss = pyepo.func.SPOPlus(problem)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    for _ in range(n_epochs):
        for features, costs, decisions, values in loader:
            optimizer.zero_grad()
            loss(net(features), costs, decisions, values).backward()
            optimizer.step()

    def predict(x_new):
        features = torch.as_tensor((x_new - mean) / deviation, dtype=torch.float32)
        return net(features).detach().numpy().astype(float)

    return predict


def with_pyepo_and_a_search(x, y):
    parts = np.array_split(np.random.default_rng(0).permutation(len(x)), 3)
    regrets = {}
    for n_epochs, rate in itertools.product((5, 10, 20, 50), (0.01, 0.05)):
        total = 0.0
        for part in parts:
            rest = np.setdiff1d(np.arange(len(x)), part)
            y_hat = with_pyepo(x[rest], y[rest], n_epochs, rate)(x[part])
            total += sum(
                best_path(found) @ true for found, true in zip(y_hat, y[part], strict=True)
            )
        regrets[n_epochs, rate] = total
    return with_pyepo(x, y, *min(regrets, key=regrets.get))


def n_lines(*parts):
    """Return the number of lines of code of functions and classes."""
    lines = [line.strip() for part in parts for line in inspect.getsource(part).splitlines()[1:]]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def main():
    global calls
    train, test = DATA.splits.train_and_validation, DATA.splits.test
    optimum = (DATA.problem.solve_many(test.y, None) * test.y).sum()
    print("| | lines | test regret, % | solver calls | CPU s |\n|---|---|---|---|---|")
    for name, fit, parts in (
        ("lodl", with_lodl, (with_lodl,)),
        ("PyEPO, one SPO+ model, 20 epochs", with_pyepo, (Path, with_pyepo)),
        (
            "PyEPO, SPO+, epochs and rate by three folds",
            with_pyepo_and_a_search,
            (Path, with_pyepo, with_pyepo_and_a_search),
        ),
    ):
        calls, started = 0, time.process_time()
        predict = fit(train.x, train.y)
        n_calls, seconds = calls, time.process_time() - started
        z = DATA.problem.solve_many(np.asarray(predict(test.x)), None)
        regret = 100 * ((z * test.y).sum() - optimum) / optimum
        print(f"| {name} | {n_lines(*parts)} | {regret:.2f} | {n_calls:,} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
