"""PyEPO's methods, with our solver. Only this file imports PyEPO's losses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lodl._typing import Array
from lodl.problems import LinearProblem
from lodl_benchmarks.peers._loop import Member
from lodl_benchmarks.peers._opt_model import OptModel

Given: TypeAlias = Literal["costs", "decisions", "all"]
"""What a loss compares the prediction with: true costs, best decisions, both and their value."""


@dataclass(frozen=True, eq=False)
class Known:
    """Labels, decisions and optima of the instances, in units of the labels' deviation."""

    costs: Tensor  # labels, shape (n, D)
    decisions: Tensor  # best decisions, shape (n, D)
    values: Tensor  # their objective, shape (n, 1)

    @classmethod
    def of(cls, y: Array, zs: Array, unit: float) -> "Known":
        """Return tensors of labels and of their best decisions."""
        costs = torch.as_tensor(y.reshape(len(y), -1) / unit)
        decisions = torch.as_tensor(zs.reshape(len(y), -1).astype(np.float64))
        return cls(costs, decisions, (costs * decisions).sum(dim=1, keepdim=True))


@dataclass(frozen=True)
class PyEPOLoss:
    """One of PyEPO's methods."""

    name: str  # its name in `pyepo.func`
    main: str = ""  # name of the argument that is selected, or ""
    given: Given = "decisions"  # what a loss takes besides the prediction; "decisions" for a layer
    # How the decision that a layer returns is judged; None for a method that is a loss.
    layer: Literal["squared", "absolute", "objective"] | None = None
    fixed: tuple[tuple[str, Any], ...] = ()  # further arguments, as pairs of name and value
    is_seeded: bool = False  # whether it draws perturbations from a seed
    # Whether it compares with a pool of decisions, at first the labels' decisions.
    has_pool: bool = False
    is_adaptive: bool = False  # whether it adapts to the gradients it has seen

    @property
    def has_memory(self) -> bool:
        """Whether what it has seen of one model must not reach another."""
        return self.has_pool or self.is_adaptive

    def build(
        self, problem: LinearProblem, known: Known, shape: tuple[int, ...], unit: float
    ) -> Callable[[Sequence[Member]], "PyEPOCriterion"]:
        """Return what makes the loss of several models.

        A method without memory treats each instance by itself, so that one module serves all
        models with the same parameter; one with memory, as a pool of decisions, has a module for
        each model, which knows that model's own instances only.
        """

        def criterion(members: Sequence[Member]) -> PyEPOCriterion:
            groups: dict[Any, list[int]] = {}
            for m, member in enumerate(members):
                key = m if self.has_memory else (member.choice.parameter,)
                groups.setdefault(key, []).append(m)
            modules = {
                tuple(group): self._module(_AtOnce(problem, shape), known, members[group[0]])
                for group in groups.values()
            }
            return PyEPOCriterion(self, modules, known, members, unit)

        return criterion

    def _module(self, solver: "_AtOnce", known: Known, member: Member) -> Any:
        arguments = dict(self.fixed)
        if self.main not in ("", "temperature"):
            arguments[self.main] = member.choice.parameter
        if self.is_seeded:
            arguments["seed"] = member.seed
        if self.layer is None:
            arguments["reduction"] = "none"
        if self.has_pool:
            arguments["dataset"] = _pool_of(known.decisions[torch.as_tensor(member.train)])
        make = getattr(import_module("pyepo.func"), self.name)
        module = make(OptModel(solver.problem, known.costs.shape[1]), **arguments)
        module.processes, module.pool = 2, solver  # batches go where PyEPO has its processes
        module._branch_rng = np.random.RandomState(member.seed)
        return module


@dataclass(frozen=True, eq=False)
class PyEPOCriterion:
    """Modules of PyEPO as the loss of several models."""

    loss: PyEPOLoss  # the method
    modules: Mapping[tuple[int, ...], Any]  # for each group of models the module that serves it
    known: Known  # what the modules compare with
    members: Sequence[Member]  # the models
    unit: float  # the labels' deviation

    def __call__(self, y_hat: Tensor, rows: Tensor, models: Sequence[int]) -> Tensor:
        costs = y_hat.flatten(2) / self.unit
        found: dict[int, Tensor] = {}
        for group, module in self.modules.items():
            here = [place for place, m in enumerate(models) if m in group]
            if here:
                temperature = self._temperature(group[0])
                losses = self._losses(
                    module, costs[here].flatten(0, 1), rows[here].flatten(), temperature
                )
                found.update(zip(here, losses.reshape(len(here), -1), strict=True))
        return torch.stack([found[place] for place in range(len(models))])

    def _temperature(self, model: int) -> float:
        if self.loss.main != "temperature":
            return 1.0
        return float(self.members[model].choice.parameter)

    def _losses(self, module: Any, costs: Tensor, rows: Tensor, temperature: float) -> Tensor:
        costs, true_costs = costs / temperature, self.known.costs[rows] / temperature
        decisions = self.known.decisions[rows]
        losses: Tensor
        if self.loss.layer is not None:
            return self._judged(module(costs), true_costs, decisions)
        if self.loss.given == "all":
            losses = module(costs, true_costs, decisions, self.known.values[rows])
        elif self.loss.given == "costs":
            losses = module(costs, true_costs)
        else:
            losses = module(costs, decisions)
        return losses

    def _judged(self, found: Tensor, costs: Tensor, decisions: Tensor) -> Tensor:
        if self.loss.layer == "squared":
            return (found - decisions).square().mean(dim=1)
        if self.loss.layer == "absolute":
            return (found - decisions).abs().mean(dim=1)
        return ((found - decisions) * costs).sum(dim=1).abs()


class _AtOnce:
    """Stands in for PyEPO's pool of processes: solves a whole batch by one vectorised call."""

    def __init__(self, problem: LinearProblem, shape: tuple[int, ...]) -> None:
        self.problem, self._shape = problem, shape

    def amap(self, _: Any, costs: Array) -> "_Result":
        zs = np.asarray(self.problem.solve_many(costs.reshape(-1, *self._shape), None))
        flat = zs.reshape(len(costs), -1).astype(np.float64)
        return _Result(list(zip(flat, (flat * costs).sum(axis=1), strict=True)))


@dataclass(frozen=True, eq=False)
class _Result:
    found: list[tuple[Array, float]]

    def get(self) -> list[tuple[Array, float]]:
        return self.found


def _pool_of(decisions: Tensor) -> Any:
    """Return a data set that holds decisions only: PyEPO's own would solve every label again."""
    base = import_module("pyepo.data.dataset").optDataset

    class Decisions(base):  # type: ignore[misc, valid-type]
        """Best decisions of the training instances."""

        def __init__(self, sols: Tensor) -> None:
            self.sols = sols

    return Decisions(decisions)
