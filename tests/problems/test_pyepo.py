from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.oracle import Oracle
from lodl.problems.highs import LinearProgram
from lodl.problems.pyepo import PyepoProblem, opt_model
from lodl.samplers import AllPerturbed
from lodl.testing import check_problem

pyepo = pytest.importorskip("pyepo")
pytest.importorskip("pyomo.environ")
RNG = np.random.default_rng(0)
WEIGHTS, CAPACITY = np.array([[3.0, 4.0, 5.0, 2.0], [2.0, 5.0, 1.0, 4.0]]), np.array([8.0, 7.0])


def knapsack():
    from pyepo.model.omo import knapsackModel

    return PyepoProblem(knapsackModel(WEIGHTS, CAPACITY, solver="appsi_highs"))


def pick(*, sense="min", answer=None):
    """Return the problem of a model that is a user's own class."""

    class Pick(pyepo.model.opt.optModel):
        modelSense = pyepo.EPO.MINIMIZE if sense == "min" else pyepo.EPO.MAXIMIZE  # noqa: N815

        def _getModel(self):  # noqa: N802
            return None, range(4)

        def setObj(self, c):  # noqa: N802
            self.c = np.asarray(c)

        def solve(self):
            best = self.c.argmin() if sense == "min" else self.c.argmax()
            return (np.eye(4)[best] if answer is None else answer), 0.0

    return PyepoProblem(Pick())


def test_the_knapsack_is_the_one_of_brute_force():
    problem = knapsack()
    subsets = np.array(list(product([0.0, 1.0], repeat=4)))
    fits = subsets[(subsets @ WEIGHTS.T <= CAPACITY).all(axis=1)]
    assert problem.sense == "max"
    for y in RNG.random((4, 4)):
        z = problem.solve(y)
        assert problem.objective(z, y) == pytest.approx((fits @ y).max())


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_contract_is_kept(sense):
    assert pick(sense=sense).sense == sense
    assert check_problem(pick(sense=sense), RNG.random((2, 4))).is_affine


def test_workers_threads_and_a_store_give_the_same_answers(tmp_path):
    problem, y = pick(), RNG.random((3, 4))
    asked = {"sampler": AllPerturbed(0.5), "slopes": True}
    here = Oracle(problem).sample(y, n_samples=4, **asked)
    with ThreadPoolExecutor(2) as threads:
        runs = [
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=2, **asked),
            Oracle(problem, n_jobs=2, store=tmp_path / "store").sample(y, n_samples=4, **asked),
            Oracle(problem, executor=threads).sample(y, n_samples=4, **asked),
        ]
    for run in runs:
        np.testing.assert_array_equal(run[2].regret, here[2].regret[: run.n_samples])


def test_a_problem_travels_to_pyepo_and_back():
    ours = LinearProgram(WEIGHTS, "max", row_upper=CAPACITY, upper=1, integrality=1)
    back = PyepoProblem(opt_model(ours, n_costs=4))
    assert back.sense == "max"
    for y in RNG.random((3, 4)):
        np.testing.assert_array_equal(back.solve(y), ours.solve(y))


def test_the_loss_of_pyepo_runs_on_our_problem():
    torch = pytest.importorskip("torch")
    ours = LinearProgram(WEIGHTS, "max", row_upper=CAPACITY, upper=1, integrality=1)
    model, y = opt_model(ours, n_costs=4), RNG.random((3, 4))
    z = np.array([ours.solve(one) for one in y])
    spo = pyepo.func.SPOPlus(model, processes=1)
    best = (z * y).sum(axis=1, keepdims=True)
    loss = spo(*(torch.tensor(one, dtype=torch.float32) for one in (y, y, z, best)))
    assert float(loss) == pytest.approx(0, abs=1e-5)


def test_a_wrong_argument_is_named():
    with pytest.raises(InvalidInputError, match="`model` must be an `optModel` of PyEPO"):
        PyepoProblem(lodl.problem(np.argmin, lambda z, y: y[z], sense="min"))
    with pytest.raises(InvalidInputError, match=r"`problem` must be a `lodl.LinearProblem`"):
        opt_model(lodl.problem(np.argmin, lambda z, y: y[z], sense="min"), n_costs=3)
    with pytest.raises(InvalidInputError, match="takes no context"):
        pick().solve(np.ones(4), {"capacity": 1})
    with pytest.raises(ShapeError, match=r"must have 4 costs, got \(3,\)"):
        pick().solve(np.ones(3))
    with pytest.raises(ProblemError, match="a solution of 4 finite numbers, got"):
        pick(answer=[]).solve(np.ones(4))
