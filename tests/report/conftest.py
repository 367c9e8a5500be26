import numpy as np
import pytest

from lodl.report import BASELINE, ChangedDecision, FitResult, Trial

_SELECTED = "average of DecisionHinges() and DecisionRanking()"


def _fit_result(before=None, after=None, **changes):
    """Return the result of a small fit.

    Args:
        before: Regrets of the baseline.
        after: Regrets of the selected model.
        changes: Other values of the result.
    """
    rng = np.random.default_rng(0)
    before = rng.gamma(1.0, 4.0, size=40) if before is None else np.array(before, dtype=float)
    n = len(before)
    after = before * rng.uniform(0.2, 1.1, size=n) if after is None else np.array(after)
    values = {
        "problem": "Truck <b>",
        "problem_parameters": {"class": "Truck"},
        "model": "linear model",
        "unit": "EUR",
        "validation": f"{n} instances, 5 folds",
        "trials": (
            Trial(BASELINE, 0, before.mean(), 800, 1.0),
            Trial("DecisionHinges()", 1, 1.2 * after.mean(), 960, 2.0),
            Trial(_SELECTED, 1, after.mean(), 1000, 3.0),
        ),
        "selected": 2,
        "instances": tuple(f"instance {i}" for i in range(n)),
        "data": "0123",
        "regret_baseline": tuple(before.tolist()),
        "regret_selected": tuple(after.tolist()),
        "changes": (
            ChangedDecision("instance 3", "[0, 1]", "[1, <0>]", 9.0, 1.0),
            ChangedDecision("instance 4", "[1, 0]", "[0, 1]", 1.0, 2.0),
        ),
        "label_shape": (25,),
        "n_features": 3,
        "has_context": False,
        "mean_label": (0.5,) * 25,
        "n_calls": 1000,
        "seconds": 3.2,
        "settings": {"n_rounds": 1, "families": None},
        "versions": {"lodl": "0.1.0"},
    }
    return FitResult(**values | changes)


@pytest.fixture(scope="session")
def fit_result():
    """Makes the result of a small fit: fit_result(before, after, **changes)."""
    return _fit_result
