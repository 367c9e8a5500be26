"""Linear problems as models of PyEPO, for its losses and metrics."""

from typing import Any

import numpy as np
from pyepo import EPO
from pyepo.model.opt import optModel

from lodl._typing import Array
from lodl.problems import LinearProblem


class OptModel(optModel):
    """An `optModel` that is solved by a linear problem."""

    def __init__(self, problem: LinearProblem, n_costs: int) -> None:
        self._problem, self._n_costs = problem, n_costs
        self.modelSense = EPO.MINIMIZE if problem.sense == "min" else EPO.MAXIMIZE
        super().__init__()

    def _getModel(self) -> tuple[Any, Any]:  # noqa: N802 - PyEPO's name
        return self._problem, range(self._n_costs)

    def setObj(self, c: Any) -> None:  # noqa: N802 - PyEPO's name
        self._costs = np.array(c, dtype=np.float64)

    def solve(self) -> tuple[Array, float]:
        z = np.asarray(self._problem.solve(self._costs.copy(), None))
        return z, self._problem.objective(z, self._costs, None)
