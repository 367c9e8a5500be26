import numpy as np
import pytest

from lodl._gain import Failures
from lodl.report import ChangedDecision, CoordinateCosts, FitRecord, TriedModel

_CHOSEN = "average of DecisionHinges() and DecisionRanking()"


def _fit_record(**changes):
    rng = np.random.default_rng(0)
    before = rng.gamma(1.0, 4.0, size=40)
    after = before * rng.uniform(0.2, 1.1, size=40)
    values = {
        "problem": "Truck <b>",
        "problem_parameters": {"class": "Truck"},
        "model": "linear model",
        "unit": "EUR",
        "chosen": _CHOSEN,
        "judged_by": "40 instances, 5 folds",
        "data": "0123",
        "instances": tuple(f"instance {i}" for i in range(40)),
        "regret_two_stage": tuple(before.tolist()),
        "regret_kept": tuple(after.tolist()),
        "failures": Failures(),
        "loss_kept": tuple((1.5 * after).tolist()),
        "history": (
            TriedModel("2-stage", 0, before.mean(), 800, 1.0),
            TriedModel("DecisionHinges()", 1, 1.2 * after.mean(), 960, 2.0),
            TriedModel(_CHOSEN, 1, after.mean(), 1000, 3.0),
        ),
        "changes": (
            ChangedDecision("instance 3", "[0, 1]", "[1, <0>]", 9.0, 1.0),
            ChangedDecision("instance 4", "[1, 0]", "[0, 1]", 1.0, 2.0),
        ),
        "coordinates": CoordinateCosts(
            tuple(f"label {j}" for j in range(25)), tuple(range(25)), tuple(range(25, 0, -1))
        ),
        "n_calls": 1000,
        "seconds": 3.2,
        "settings": {"n_rounds": "1"},
        "versions": {"lodl": "0.1.0"},
    }
    return FitRecord(**values | changes)


@pytest.fixture
def fit_record():
    """Makes the record of a small fit: fit_record(**changes)."""
    return _fit_record
