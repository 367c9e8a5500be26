"""PyEPO's own training loop beside ours, on the data of its tutorial on training and testing.

The tutorial prints, on this data (5 x 5 path, degree 4, noise 0.5, 1,000 + 1,000 instances, seed
42, batches of 32, Adam at 0.01, 20 epochs), these test regrets after the last epoch and, in
brackets, after those from the fourth on: SPO+ 7.41 % (6.97 to 7.62), DBB with lambda 20 and the
absolute difference of objectives 20.83 % (12.68 to 22.10).

    python results/peers/own_loop.py
"""

from dataclasses import replace

import numpy as np
import pyepo
import torch
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader

from lodl._threads import one_torch_thread
from lodl.domains import Domain, ShortestPath, Split, Splits
from lodl_benchmarks.peers._methods import METHODS
from lodl_benchmarks.peers._opt_model import OptModel
from lodl_benchmarks.peers._run import measure
from lodl_benchmarks.peers._tasks import TASKS
from lodl_benchmarks.runner import Trial

N_EPOCHS = 20


def data():
    """Return features and costs for training and test, split as in the tutorial."""
    x, costs = pyepo.data.shortestpath.genData(2000, 5, (5, 5), 4, 0.5, seed=42)
    return train_test_split(x, costs, test_size=1000, random_state=42)


def criteria(model):
    """Return PyEPO's losses, given predicted costs, true costs, best decisions and their values."""
    spo_plus, black_box, perturbed = (
        pyepo.func.SPOPlus(model),
        pyepo.func.DBB(model, lambd=20),
        pyepo.func.PFY(model),
    )
    return {
        "SPO+": spo_plus,
        "DBB": lambda found, costs, _zs, values: torch.nn.functional.l1_loss(
            (black_box(found) * costs).sum(dim=1, keepdim=True), values
        ),
        "PFYL": lambda found, _costs, zs, _values: perturbed(found, zs),
    }


def own_loop(name: str) -> list[float]:
    """Return the test regret after each epoch of PyEPO's loop, in %."""
    torch.manual_seed(42)
    x, x_test, costs, costs_test = data()
    model = OptModel(ShortestPath((5, 5)), 40)
    train, test = (
        pyepo.data.dataset.optDataset(model, *part) for part in ((x, costs), (x_test, costs_test))
    )
    batches = DataLoader(train, batch_size=32, shuffle=True)
    held_out = DataLoader(test, batch_size=32)
    linear = torch.nn.Linear(5, 40)
    optimiser = torch.optim.Adam(linear.parameters(), lr=1e-2)
    criterion = criteria(model)[name]
    regrets = []
    for _ in range(N_EPOCHS):
        for features, *known in batches:
            loss = criterion(linear(features), *known)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        regrets.append(100 * pyepo.metric.regret(linear, model, held_out))
    return regrets


def our_loop(name: str) -> float:
    """Return the test regret of the same method with our loop and treatment, in %."""
    x, x_test, costs, costs_test = (np.asarray(part, dtype=np.float64) for part in data())
    splits = Splits(
        Split(x[:800], costs[:800]),
        Split(x[800:], costs[800:]),
        Split(x_test, costs_test),
    )
    domain = Domain(ShortestPath((5, 5)), splits)
    task = replace(TASKS["path-1000-4"], build=lambda _: domain)
    return 100 * measure(Trial("tutorial", name, 1), task, METHODS[name])["test"]


if __name__ == "__main__":
    with one_torch_thread():
        print("method  PyEPO's loop, last epoch  epochs 4 to 20  our loop and treatment")
        for name in ("SPO+", "DBB", "PFYL"):
            regrets = own_loop(name)
            spread = f"{min(regrets[3:]):.2f} to {max(regrets[3:]):.2f}"
            print(
                f"{name:6}  {regrets[-1]:24.2f}  {spread:>14}  {our_loop(name):22.2f}", flush=True
            )
