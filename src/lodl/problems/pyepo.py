"""Models of PyEPO."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from lodl._arrays import check_instance_of, require
from lodl._threads import PerThread
from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems._model_problem import check_size
from lodl.problems._problem import LinearProblem
from lodl.problems.pyomo import PYOMO_LOCK, forget_interrupts

__all__ = ["PyepoProblem"]


class PyepoProblem(LinearProblem):
    """An `optModel` of PyEPO as a problem.

    The sense is the model's own; a label is its vector of costs, and a decision the solution that
    it returns. There is no context. The model is built again in each process and thread. If it runs
    on Pyomo, threads of one process take turns: use processes (`n_jobs`).

    Args:
        model: The `optModel`, all of whose costs are predicted.

    Example:
        >>> from pyepo.model.omo import knapsackModel
        >>> model = knapsackModel(weights=[[3, 4, 5]], capacity=[8], solver="appsi_highs")
        >>> problem = PyepoProblem(model)
        >>> problem.sense, problem.solve(np.array([1.0, 3.0, 3.5]))
        ('max', array([1., 0., 1.]))
    """

    def __init__(self, model: Any) -> None:
        epo = require("pyepo.model.opt", "pyepo")
        check_instance_of(epo.optModel, "model", model, wanted="an `optModel` of PyEPO")
        if getattr(model, "c_pred_index", None) is not None:
            advice = "Add known ones in a `lodl.Problem`."
            raise InvalidInputError(f"All costs of `model` must be predicted. {advice}")
        self.sense = "max" if model.modelSense == require("pyepo.EPO", "pyepo").MAXIMIZE else "min"
        self._n_costs = int(model.num_cost)
        self._models: PerThread[Any] = PerThread(model.to_spec().build)

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        if context is not None:
            raise InvalidInputError("A model of PyEPO takes no context.")
        model = self._models.get()
        model.setObj(check_size(y_hat, self._n_costs, "costs"))
        solver = getattr(model, "_solverfac", None)  # if it runs on Pyomo
        with nullcontext() if solver is None else PYOMO_LOCK:
            solution, _ = model.solve()
        forget_interrupts(solver)
        z = np.array(solution, dtype=np.float64)
        if z.shape != (self._n_costs,) or not np.isfinite(z).all():
            wanted = f"a solution of {self._n_costs} finite numbers"
            raise ProblemError(f"The model must return {wanted}, got {solution!r}.")
        return z.reshape(np.shape(y_hat))
