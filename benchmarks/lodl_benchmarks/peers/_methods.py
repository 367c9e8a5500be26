"""The methods: all in the same loop with the same treatment, and our learner with its defaults."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from lodl._typing import Array
from lodl.learning import DecisionFocusedRegressor
from lodl.losses import (
    DecisionHinges,
    DirectedWeightedMSE,
    Family,
    fit,
)
from lodl.oracle import Oracle
from lodl.problems import LinearProblem
from lodl.report import Trial as FitTrial
from lodl.samplers import AllPerturbed
from lodl.training.torch import LearnedLossModule
from lodl_benchmarks.convex_directed_quadratic import ConvexDirectedQuadratic
from lodl_benchmarks.peers._loop import Criterion, Member
from lodl_benchmarks.peers._opt_model import OptModel
from lodl_benchmarks.peers._polytope import adjacent_vertices, binding_normals
from lodl_benchmarks.peers._pyepo import Known, PyEPOLoss
from lodl_benchmarks.peers._treatment import Chosen, Criteria, Data, Treatment, train_one, treat

OURS = "lodl"
TWO_STAGE = "2-stage"

_COUNTS = ("n_calls", "round")  # fields of a trial that are counts
_CHECKS = 20  # solver calls that check the problem, at most, whatever the number of instances


@dataclass(frozen=True, eq=False)
class Outcome:
    """A model and what is worth keeping about how it came about."""

    y_hat: Array  # predictions for given features, which were not seen before
    # Selected parameters and the cost of one model, as JSON values.
    details: Mapping[str, Any] = field(default_factory=dict)


class Method(ABC):
    """A way to train a model for decisions."""

    needs_linear = False  # whether the objective must be linear in the label
    needs_paths = False  # whether decisions must be the paths of a small grid

    @abstractmethod
    def run(self, data: Data, treatment: Treatment, x_test: Array) -> Outcome:
        """Train on the data and predict for other features."""


@dataclass(frozen=True)
class Treated(Method):
    """A loss in the common loop, with the common treatment."""

    @property
    def parameters(self) -> tuple[Any, ...]:
        """Values of the main parameter to choose from; a single None if the method has none."""
        return (None,)

    @abstractmethod
    def criteria(self, data: Data) -> Criteria:
        """Return what makes the loss of one model."""

    def run(self, data: Data, treatment: Treatment, x_test: Array) -> Outcome:
        chosen: Chosen = treat(treatment, data, self.criteria(data), self.parameters)
        y_hat = chosen.networks.predict_all(x_test).mean(axis=0)
        details = {
            **asdict(chosen.choice),
            "n_steps": chosen.n_steps,
            "held_out": chosen.held_out / data.evaluator.scale,
            "calls_of_one": chosen.calls_of_one,
        }
        return Outcome(y_hat, details)


@dataclass(frozen=True)
class TwoStage(Treated):
    """Squared error."""

    def criteria(self, data: Data) -> Criteria:
        labels = torch.as_tensor(data.y)

        def squared_error(y_hat: Tensor, rows: Tensor, _models: Sequence[int]) -> Tensor:
            return (y_hat - labels[rows]).square().flatten(2).mean(dim=2)

        return lambda _members: squared_error


@dataclass(frozen=True)
class OfPyEPO(Treated):
    """One of PyEPO's methods, the solver in the loop."""

    loss: PyEPOLoss  # the method
    values: tuple[Any, ...] = (None,)  # values of its main parameter
    needs_linear = True

    @property
    def parameters(self) -> tuple[Any, ...]:
        return self.values

    def criteria(self, data: Data) -> Criteria:
        problem, y = data.evaluator.problem, data.y
        assert isinstance(problem, LinearProblem)
        unit = float((y - y.mean(axis=0)).std())
        known = Known.of(y, np.asarray(problem.solve_many(y, None)), unit)
        return self.loss.build(problem, known, y.shape[1:], unit)


@dataclass(frozen=True)
class OneModel(Method):
    """One of PyEPO's methods as in its tutorials: one model, Adam at 0.01, nothing selected.

    Features and labels are scaled as for all methods, which the tutorials leave to their data.
    """

    method: OfPyEPO  # the method, which has no parameter to select
    n_epochs: int  # passes over the instances
    needs_linear = True

    def run(self, data: Data, treatment: Treatment, x_test: Array) -> Outcome:
        criteria, before = self.method.criteria(data), data.ledger.calls["training"]
        networks = train_one(treatment, data, criteria, n_epochs=self.n_epochs)
        calls = data.ledger.calls["training"] - before
        return Outcome(networks.predict_all(x_test)[0], {"calls_of_one": calls})


@dataclass(frozen=True)
class LAVA(Treated):
    """Hinges at the vertices next to the best decision (Berden et al., 2025).

        sum over adjacent z of max(y_hat . z* - y_hat . z, -epsilon),

    with predictions in deviations of the labels, and epsilon 0.1 as published or 1.
    """

    needs_linear = needs_paths = True

    @property
    def parameters(self) -> tuple[Any, ...]:
        return (0.1, 1.0)

    def criteria(self, data: Data) -> Criteria:
        problem, unit = data.evaluator.problem, float((data.y - data.y.mean(axis=0)).std())
        steps = torch.as_tensor(adjacent_vertices(problem, data.y))  # z* - z; 0 fills up

        def criterion(members: Sequence[Member]) -> Criterion:
            margins = torch.tensor([-member.choice.parameter for member in members])

            def lava(y_hat: Tensor, rows: Tensor, models: Sequence[int]) -> Tensor:
                gaps = torch.einsum("mbd,mbkd->mbk", y_hat / unit, steps[rows])
                hinges = torch.maximum(gaps, margins[list(models)].reshape(-1, 1, 1))
                return hinges.sum(dim=2)

            return lava

        return criterion


@dataclass(frozen=True)
class CaVE(Treated):
    """PyEPO's cone-aligned loss: the normals of the binding constraints stand in for the solver."""

    needs_linear = needs_paths = True

    def criteria(self, data: Data) -> Criteria:
        problem, y = data.evaluator.problem, data.y
        assert isinstance(problem, LinearProblem)
        normals = torch.as_tensor(binding_normals(problem, y))
        unit = float((y - y.mean(axis=0)).std())
        module = import_module("pyepo.func").CaVE(OptModel(problem, y.shape[1]), reduction="none")

        def cave(y_hat: Tensor, rows: Tensor, _models: Sequence[int]) -> Tensor:
            losses: Tensor = module((y_hat / unit).flatten(0, 1), normals[rows.flatten()])
            return losses.reshape(rows.shape)

        return lambda _members: cave


@dataclass(frozen=True)
class AtLabels(Treated):
    """A family of the paper, learned from points around the labels."""

    family: Family  # the family
    n_samples: int  # points per instance

    def criteria(self, data: Data) -> Criteria:
        part = data.evaluator.part
        samples = Oracle(data.evaluator.problem, progress=False).sample(
            part.y, AllPerturbed(), self.n_samples, context=part.context, random_state=data.seed
        )
        loss = fit(samples, self.family, holdout=0.0, progress=False)
        module = LearnedLossModule(loss, reduction="none", dtype=torch.float64)

        def learned(y_hat: Tensor, rows: Tensor, _models: Sequence[int]) -> Tensor:
            losses: Tensor = module(y_hat.flatten(0, 1), rows.flatten())
            return losses.reshape(rows.shape)

        return lambda _members: learned


@dataclass(frozen=True)
class Ours(Method):
    """`DecisionFocusedRegressor`: folds, choice and refit are its own.

    It has its defaults, unless it is a variant whose calls are limited or that lacks a part.
    """

    calls: int | None = None  # limit on calls for each instance; None for no limit
    options: tuple[tuple[str, Any], ...] = ()  # further arguments, as pairs of name and value
    # Part that it does without, as pairs of a private name of `lodl.learning` and what replaces it.
    without: tuple[tuple[str, Any], ...] = ()

    @property
    def is_variant(self) -> bool:
        """Whether it differs from the defaults."""
        return self != Ours()

    def run(self, data: Data, treatment: Treatment, x_test: Array) -> Outcome:
        architecture, part = data.architecture, data.evaluator.part
        module = architecture.module() if architecture.hidden else None
        n, options = len(data.y), dict(self.options)
        if self.calls is not None:
            options["max_calls"] = self.calls * n + _CHECKS
        model = DecisionFocusedRegressor(
            data.evaluator.problem, module, random_state=data.seed, **options
        )
        with ExitStack() as stack:
            for name, replacement in self.without:
                stack.enter_context(patch(f"lodl.learning.{name}", replacement))
            model.fit(data.x, data.y, context=part.context)
        data.ledger.move(n, "looks", "test")  # calls of the harness, not of the learner
        result = model.result_
        data.ledger.move(n_looks(result.trials, n), "training", "looks")
        n_shown = result.n_calls - result.trials[-1].n_calls
        data.ledger.move(n_shown, "training", "test")  # decisions that only a report shows
        details = {
            "chosen": result.selected_name,
            "held_out": result.mean_selected / data.evaluator.scale,
            "history": [
                [row.name, row.round, round(row.regret / data.evaluator.scale, 5), row.n_calls]
                for row in result.trials
            ],
        }
        return Outcome(model.predict(x_test), details)


def n_looks(trials: Sequence[FitTrial], n_instances: int) -> int:
    """Return the calls of our learner that choose among models and teach none.

    A round calls the solver at held-out predictions and learns from the answers. A model that is
    only compared costs at most one call per instance, after the last round.
    """
    calls, rounds = (np.array([getattr(row, name) for row in trials]) for name in _COUNTS)
    is_round = np.diff(np.maximum.accumulate(rounds)) > 0
    return int(np.diff(calls)[(np.diff(calls) <= n_instances) & ~is_round].sum())


_RATIO = (("solve_ratio", 0.05),)
_THREE = (("n_samples", 3),)  # perturbations of a prediction
_RATIOS = (0.05, 0.5)  # how often the pool is refreshed
_SIGMAS = (0.5, 3.0)  # in deviations of the labels; PyEPO's default is 1 in their own unit


def _pool(name: str, given: Any) -> OfPyEPO:
    return OfPyEPO(PyEPOLoss(name, "solve_ratio", given, has_pool=True), _RATIOS)


_SPO_PLUS = OfPyEPO(PyEPOLoss("SPOPlus", given="all"))
ONE_MODEL: Mapping[str, OneModel] = {
    f"SPO+, {n_epochs} epochs": OneModel(_SPO_PLUS, n_epochs) for n_epochs in (5, 10, 20, 50)
}
"""SPO+ without a search, by name."""

BUDGETS: Mapping[str, Ours] = {f"{OURS}, {n} calls": Ours(calls=n) for n in (1, 2, 5, 10, 20)}
"""Our learner with a limit on the calls for each instance, by name."""

ABLATIONS: Mapping[str, Ours] = {
    f"{OURS}, one loss": Ours(options=(("families", (DecisionHinges(squared_error=0.1),)),)),
    f"{OURS}, own decisions": Ours(
        without=(("_defaults.Situation.is_shared", property(lambda _: False)),)
    ),
    f"{OURS}, no rounds": Ours(options=(("n_rounds", 0),)),
    f"{OURS}, no average": Ours(options=(("ensemble", False),)),
    f"{OURS}, no shrinkage": Ours(without=(("_search._SHRINKAGES", ()),)),
    f"{OURS}, no test of the model": Ours(without=(("_fit.is_right", lambda *_: False),)),
    f"{OURS}, no corrections": Ours(without=(("_fit._is_corrected", lambda *_: False),)),
}
"""Our learner without one of its parts, by name.

Without shared decisions an instance learns from its own calls, with the losses, samples and rounds
that are the defaults then. Without rounds there are ten points around each label instead. Without
the average, one loss is selected and one model trained on all instances.
"""

METHODS: Mapping[str, Method] = {
    TWO_STAGE: TwoStage(),
    "SPO+": _SPO_PLUS,
    "PFYL": OfPyEPO(PyEPOLoss("PFY", "sigma", fixed=(("n_samples", 1),), is_seeded=True), _SIGMAS),
    "lsLTR": OfPyEPO(
        PyEPOLoss("lsLTR", "temperature", "costs", fixed=_RATIO, has_pool=True), (0.1, 0.5)
    ),
    "NCE": _pool("NCE", "decisions"),
    OURS: Ours(),
    **ONE_MODEL,
    **BUDGETS,
    **ABLATIONS,
    "LAVA": LAVA(),
    "CaVE": CaVE(),
    "CMAP": _pool("CMAP", "decisions"),
    "ptLTR": _pool("ptLTR", "costs"),
    "prLTR": _pool("prLTR", "costs"),
    "DPO": OfPyEPO(
        PyEPOLoss("DPO", "sigma", layer="squared", fixed=_THREE, is_seeded=True), _SIGMAS
    ),
    "I-MLE": OfPyEPO(PyEPOLoss("IMLE", "sigma", layer="absolute", fixed=_THREE), _SIGMAS),
    "AI-MLE": OfPyEPO(
        PyEPOLoss("AIMLE", "sigma", layer="absolute", fixed=_THREE, is_adaptive=True), _SIGMAS
    ),
    "DBB": OfPyEPO(PyEPOLoss("DBB", "lambd", layer="objective"), (3.0, 20.0)),
    "NID": OfPyEPO(PyEPOLoss("NID", layer="objective")),
    "PG": OfPyEPO(PyEPOLoss("PG", "sigma", "costs"), (0.1, 1.0)),
    "RFYL": OfPyEPO(PyEPOLoss("RFY", "lambd", fixed=(("max_iter", 20),)), (0.3, 1.0)),
    "RFWO": OfPyEPO(
        PyEPOLoss("RFWO", "lambd", layer="squared", fixed=(("max_iter", 20),)), (0.3, 1.0)
    ),
    "DirectedWeightedMSE": AtLabels(DirectedWeightedMSE(), 100),
    "ConvexDirectedQuadratic": AtLabels(ConvexDirectedQuadratic(), 300),
}
"""The methods by name, the most important first."""

VARIANTS = frozenset((*BUDGETS, *ABLATIONS))
"""Names of our learner with other settings than its defaults: no method to compare it with."""
