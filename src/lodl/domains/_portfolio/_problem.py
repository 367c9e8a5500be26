"""The problem: invest for return less risk."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lodl._arrays import check_labels, require
from lodl._typing import Array, InstanceContext
from lodl.errors import InvalidInputError, ProblemError
from lodl.problems import VectorisedProblem

_EQUALITY = 5  # DAQP's code of a constraint that holds with equality
_AT_LOWER_BOUND = 3  # and of one that a solve may start from, as if it held at its lower bound
_N_STARTING_STOCKS = 10
_PRIMAL_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Portfolio(VectorisedProblem):
    """Spread money over N stocks for the most return less risk (Markowitz).

        max_z  z'y - risk_aversion z'Qz,   z >= 0,   sum_i z_i = 1   (or <= 1)

    A label is a vector (N,) of returns, a decision a vector (N,) of shares, the context of an
    instance its positive semidefinite matrix Q, shape (N, N). Solved exactly by DAQP, a dual
    active-set method for small dense quadratic programs (`pip install 'lodl[portfolio]'`).

    The paper writes sum(z) <= 1 and its authors' code has sum(z) = 1, the default here.

    Attributes:
        risk_aversion: Weight of the risk, positive; the paper's lambda.
        fully_invested: Whether all money must be invested; otherwise some may stay aside.
    """

    risk_aversion: float = 0.1
    fully_invested: bool = True
    sense = "max"

    def __post_init__(self) -> None:
        if not 0 < self.risk_aversion < np.inf:
            raise InvalidInputError(
                f"`risk_aversion` must be a positive number, got {self.risk_aversion!r}."
            )

    def solve_many(self, y_hats: Array, context: InstanceContext) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        risk = _check_risk(context, y_hats)
        solver, constraint_types = self._solver(risk)
        zs = np.empty(y_hats.shape)
        for row, (y_hat, start) in enumerate(
            zip(y_hats, _starts(y_hats, constraint_types), strict=True)
        ):
            # Each solve starts from its own prediction: no decision depends on the last one.
            solver.update(f=-y_hat, sense=start)
            z, _, flag, _ = solver.solve()
            if flag <= 0:
                raise ProblemError(
                    f"DAQP found no optimum for prediction {row} (its exit flag is {flag}). "
                    "Is the context Q positive semidefinite, and is all of a similar size?"
                )
            zs[row] = z
        return zs.clip(min=0.0)  # rounding leaves shares of -1e-16

    def objective_many(self, zs: Any, y: Array, context: InstanceContext) -> Array:
        zs = np.ascontiguousarray(zs, dtype=np.float64)
        # One product per row: a single matrix product may round by the number of rows.
        risk = (zs * (zs[:, np.newaxis] @ context)[:, 0]).sum(axis=1)
        values: Array = (zs * y).sum(axis=1) - self.risk_aversion * risk
        return values

    def slope(self, z: Any, y: Array, context: InstanceContext) -> Array:
        return np.asarray(z, dtype=np.float64)  # the risk does not depend on the label

    def _solver(self, risk: Array) -> tuple[Any, Any]:
        """Return DAQP set up for one instance, and the types of its constraints."""
        n_stocks = len(risk)
        most, least = np.full(n_stocks + 1, np.inf), np.zeros(n_stocks + 1)
        constraint_types = np.zeros(n_stocks + 1, dtype=np.int32)
        most[-1], least[-1] = 1.0, -np.inf  # the sum; the others are bounds of single shares
        if self.fully_invested:
            least[-1] = 1.0
            constraint_types[-1] = _EQUALITY
        solver = require("daqp", "portfolio").Model()
        flag, _ = solver.setup(
            2 * self.risk_aversion * risk,
            np.zeros(n_stocks),
            np.ones((1, n_stocks)),
            most,
            least,
            constraint_types,
        )
        if flag < 0:
            raise InvalidInputError(
                "The context of a portfolio, Q, must be positive semidefinite "
                f"(DAQP's exit flag is {flag})."
            )
        solver.settings = {"primal_tol": _PRIMAL_TOLERANCE}
        return solver, constraint_types


def _starts(y_hats: Array, constraint_types: Any) -> Any:
    """Return the start of each solve: only the stocks of highest prediction are bought.

    Few of many stocks are bought in the end, and a start from no constraint would take a step for
    each of the others.
    """
    n_stocks = y_hats.shape[1]
    starts = np.tile(constraint_types, (len(y_hats), 1))
    if n_stocks > _N_STARTING_STOCKS:
        others = np.argpartition(y_hats, -_N_STARTING_STOCKS)[:, :-_N_STARTING_STOCKS]
        np.put_along_axis(starts, others, _AT_LOWER_BOUND, axis=1)
    return starts


def _check_risk(context: InstanceContext, y_hats: Array) -> Array:
    """Return the matrix Q, or raise an error that says what is wrong with it."""
    if y_hats.ndim != 2:
        raise InvalidInputError(
            f"A prediction must be a vector of returns, got shape {y_hats.shape[1:]}."
        )
    n_stocks = y_hats.shape[1]
    if context is None:
        raise InvalidInputError(
            f"A portfolio needs a context: the matrix Q of shape ({n_stocks}, {n_stocks})."
        )
    risk = check_labels(context, "context")
    if risk.shape != (n_stocks, n_stocks) or not np.allclose(risk, risk.T):
        raise InvalidInputError(
            "The context of a portfolio, Q, must be a symmetric matrix of shape "
            f"({n_stocks}, {n_stocks}), got shape {risk.shape}."
        )
    return risk
