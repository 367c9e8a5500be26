import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems.pyepo import PyepoProblem
from lodl.testing import check_problem

pyepo = pytest.importorskip("pyepo")
pytest.importorskip("pyomo.environ")
RNG = np.random.default_rng(0)
WEIGHTS, CAPACITY = np.array([[3.0, 4.0, 5.0, 2.0], [2.0, 5.0, 1.0, 4.0]]), np.array([8.0, 7.0])


def pick(*, sense="min", answer=None):
    """Return the problem of a model that is a user's own class."""

    class Pick(pyepo.model.opt.optModel):  # type: ignore[name-defined]
        modelSense = pyepo.EPO.MINIMIZE if sense == "min" else pyepo.EPO.MAXIMIZE  # noqa: N815

        def _getModel(self):  # noqa: N802
            return None, range(4)

        def setObj(self, c):  # noqa: N802
            self.c = np.asarray(c)

        def solve(self):
            best = self.c.argmin() if sense == "min" else self.c.argmax()
            return (np.eye(4)[best] if answer is None else answer), 0.0

    return PyepoProblem(Pick())


@pytest.mark.parametrize("sense", ["min", "max"])
def test_the_contract_is_kept(sense):
    assert pick(sense=sense).sense == sense
    assert check_problem(pick(sense=sense), RNG.random((2, 4))).is_affine


def test_a_wrong_argument_is_named():
    with pytest.raises(InvalidInputError, match="`model` must be an `optModel` of PyEPO"):
        PyepoProblem(lodl.problem(np.argmin, lambda z, y: y[z], sense="min"))
    with pytest.raises(InvalidInputError, match="takes no context"):
        pick().solve(np.ones(4), {"capacity": 1})
    with pytest.raises(ProblemError, match="a solution of 4 finite numbers, got"):
        pick(answer=[]).solve(np.ones(4))
