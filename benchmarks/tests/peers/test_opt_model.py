import numpy as np
import pytest
import torch
from pyepo.func import SPOPlus

from lodl.problems.highs import LinearProgram
from lodl.problems.pyepo import PyepoProblem
from lodl_benchmarks.peers._opt_model import OptModel

WEIGHTS, CAPACITY = np.array([[3.0, 4.0, 5.0, 2.0], [2.0, 5.0, 1.0, 4.0]]), np.array([8.0, 7.0])
OURS = LinearProgram(WEIGHTS, "max", row_upper=CAPACITY, upper=1, integrality=1)
Y = np.random.default_rng(0).random((3, 4))


def test_a_problem_travels_to_pyepo_and_back():
    back = PyepoProblem(OptModel(OURS, n_costs=4))
    assert back.sense == "max"
    for y in Y:
        np.testing.assert_array_equal(back.solve(y), OURS.solve(y))


def test_the_loss_of_pyepo_runs_on_our_problem():
    z = np.array([OURS.solve(y) for y in Y])
    best = (z * Y).sum(axis=1, keepdims=True)
    tensors = (torch.tensor(array, dtype=torch.float32) for array in (Y, Y, z, best))
    loss = SPOPlus(OptModel(OURS, n_costs=4), processes=1)(*tensors)
    assert float(loss) == pytest.approx(0, abs=1e-5)
