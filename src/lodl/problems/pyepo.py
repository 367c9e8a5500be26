"""Models of PyEPO as problems, and problems as models of PyEPO."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lodl._arrays import check_count, check_instance_of, require
from lodl._typing import Array, Decision, InstanceContext
from lodl.errors import InvalidInputError, ProblemError, ShapeError
from lodl.problems._linear_problem import LinearProblem
from lodl.problems._per_thread import PerThread
from lodl.problems._pyomo_highs import forget_interrupts

__all__ = ["PyepoProblem", "opt_model"]


class PyepoProblem(LinearProblem):
    """An `optModel` of PyEPO as a problem.

    Use it to learn a loss for a model that PyEPO has already, or to compare with its methods. The
    sense is the model's own; a label is its vector of costs, and a decision the solution that it
    returns. There is no context. The model is built again, by PyEPO's recipe (`to_spec`), in each
    process and thread, and takes new costs with `setObj`. Models that run on Pyomo are not safe for
    several threads of one process: use processes (`n_jobs`).

    A call fails with what the model raises, or if it returns no solution of one number per cost.

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
            raise InvalidInputError(
                "`model` must have all its costs predicted, but it has known ones too. Write a "
                "`lodl.Problem` that adds them in `objective`."
            )
        self.sense = "max" if model.modelSense == require("pyepo.EPO", "pyepo").MAXIMIZE else "min"
        self._n_costs = int(model.num_cost)
        build: Callable[[], Any] = model.to_spec().build
        self._models = PerThread(build)

    def solve(self, y_hat: Array, context: InstanceContext = None) -> Decision:
        if context is not None:
            raise InvalidInputError("A model of PyEPO takes no context.")
        if y_hat.shape != (self._n_costs,):
            raise ShapeError(f"A prediction must have {self._n_costs} costs, got {y_hat.shape}.")
        model = self._models.get()
        model.setObj(y_hat)
        solution, _ = model.solve()
        forget_interrupts(getattr(model, "_solverfac", None))  # where it runs on Pyomo
        z = np.asarray(solution, dtype=np.float64)
        if z.shape != y_hat.shape or not np.isfinite(z).all():
            raise ProblemError(
                f"The model must return a solution of {self._n_costs} finite numbers, got "
                f"{solution!r}."
            )
        return z


def opt_model(problem: LinearProblem, n_costs: int) -> Any:
    """Return an `optModel` that asks a linear problem, for PyEPO's losses and metrics.

    Args:
        problem: The problem, which needs no context and takes vectors of costs.
        n_costs: Number of costs.

    Example:
        >>> from lodl.problems.highs import LinearProgram
        >>> model = opt_model(LinearProgram([[1, 1]], "min", row_lower=1), n_costs=2)
        >>> model.setObj([3.0, 2.0])
        >>> model.solve()
        (array([0., 1.]), 2.0)
    """
    hint = "PyEPO's losses are made for linear objectives."
    check_instance_of(LinearProblem, "problem", problem, wanted="a `lodl.LinearProblem`", hint=hint)
    check_count("n_costs", n_costs)
    epo, base = require("pyepo.EPO", "pyepo"), require("pyepo.model.opt", "pyepo").optModel

    class LodlModel(base):  # type: ignore[misc, valid-type]
        """A linear problem of `lodl`."""

        def __init__(self, problem: LinearProblem, n_costs: int) -> None:
            self._problem, self._n_costs = problem, n_costs
            self.modelSense = epo.MINIMIZE if problem.sense == "min" else epo.MAXIMIZE
            super().__init__()

        def _getModel(self) -> tuple[Any, Any]:  # noqa: N802 - PyEPO's name
            return self._problem, range(self._n_costs)

        def setObj(self, c: Any) -> None:  # noqa: N802 - PyEPO's name
            self._costs = np.array(c, dtype=np.float64)

        def solve(self) -> tuple[Array, float]:
            z = np.asarray(self._problem.solve(self._costs.copy(), None))
            return z, self._problem.objective(z, self._costs, None)

    return LodlModel(problem, n_costs)
