from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from lodl.errors import FamilyError, InvalidInputError
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    DirectedQuadratic,
    DirectedWeightedMAE,
    DirectedWeightedMSE,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
)
from lodl.testing import check_family

FAMILIES = [
    WeightedMSE(),
    DirectedWeightedMSE(),
    DirectedWeightedMAE(),
    DirectedWeightedMAE(squares=True),
    Quadratic(),
    Quadratic(rank=2),
    DirectedQuadratic(),
    DecisionHinges(),
    DecisionRanking(),
    NeuralLoss(n_units=8),
]


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_every_family_of_the_package_passes(family):
    if isinstance(family, NeuralLoss):
        pytest.importorskip("torch")
    check_family(family, zero_at_label=not isinstance(family, NeuralLoss))


def spoiled(**methods):
    """Returns a family in which some methods of `WeightedMSE` are replaced."""
    kind: Any = type("Spoiled", (WeightedMSE,), methods)
    return dataclass(frozen=True)(kind)()


@pytest.mark.parametrize(
    ("methods", "finding"),
    [
        (
            {"fit": lambda self, answers: {"w": np.ones(3)}},
            r"`fit` must return parameters of the shapes \{'w': \(5,\)\}, got \{'w': \(3,\)\}",
        ),
        ({"fit": lambda self, answers: {"w": np.full(5, np.nan)}}, "that are not finite"),
        ({"fit": lambda self, answers: {"w": -np.ones(5)}}, "`fit` returns a negative 'w'"),
        ({"fallback": lambda self, cost, scale: {}}, "`fallback` must return parameters"),
        ({"degrees": {"w": 1}}, "not the sum of the terms that `degrees` names"),
        ({"fit_many": lambda self, instances: []}, "`fit_many` returns 0 results for 3 instances"),
        (
            {"value": lambda self, phi, d: phi["w"][:, None] * d * d},
            r"`value` must return shape \(3, 20\), got \(3, 20, 5\)",
        ),
        ({"value": lambda self, phi, d: -(phi["w"][:, None] * d * d).sum(-1)}, "loss is negative"),
        (
            {"value": lambda self, phi, d: (phi["w"][:, None] * d * d).sum(-1) + 1},
            "loss is not zero at the label",
        ),
        (
            {"value": lambda self, phi, d: (phi["w"][:, None] * d * d).sum(-1) ** 0.25},
            "not convex as `is_convex` says",
        ),
        (
            {"gradient": lambda self, phi, d: phi["w"][:, None] * d},
            "`gradient` is not the derivative of `value`",
        ),
        (
            {"curvature": lambda self, phi, d: -2 * phi["w"][:, None] + 0 * d},
            "`curvature` is negative",
        ),
        ({"curvature": lambda self, phi, d: 0 * d}, "`curvature` is negative or always 0"),
        (
            {
                "value": lambda self, phi, d: (phi["w"][:1, None] * d**2).sum(-1),
                "gradient": lambda self, phi, d: 2 * phi["w"][:1, None] * d,
            },
            "depends on the parameters of others",
        ),
    ],
)
def test_what_is_wrong_is_said(methods, finding):
    with pytest.raises(FamilyError, match=finding):
        check_family(spoiled(**methods))


def test_a_formula_that_differs_on_torch_is_found():
    pytest.importorskip("torch")

    def value(self, phi, d):
        factor = 1 if isinstance(d, np.ndarray) else 2
        return factor * (phi["w"][:, None] * d * d).sum(-1)

    with pytest.raises(FamilyError, match="`value` differs between torch tensors and NumPy arrays"):
        check_family(spoiled(value=value))


def test_a_family_that_cannot_be_saved_is_found():
    class NotMadeOfJson(WeightedMSE):
        def __init__(self, power):
            super().__init__()

    with pytest.raises(FamilyError, match="cannot be saved and loaded: `family` must be a datacl"):
        check_family(NotMadeOfJson(3))


def test_what_is_no_family_is_refused():
    with pytest.raises(InvalidInputError, match="got the class WeightedMSE"):
        check_family(WeightedMSE)
