import dataclasses
import re

import numpy as np
import pytest

from lodl.evaluation import Diagnosis
from lodl.evaluation._loss_summary import ADVICE


@pytest.fixture
def diagnosis(summary_of):
    """A diagnosis without findings."""
    return Diagnosis(
        summary=summary_of(),
        instances=np.arange(2),
        losses=np.ones(2),
        regrets=np.ones(2),
        foreign_regret=2.0,
        rank_correlation_within=0.8,
        scale=0.5,
        size_ratio=1.0,
        n_calls=16,
    )


def of_size(**values):
    """Changes of a diagnosis, with the same loss and regret at both instances."""
    arrays = {"loss": "losses", "regret": "regrets"}
    return {
        arrays.get(name, name): np.full(2, value) if name in arrays else value
        for name, value in values.items()
    }


GAP = {"mae_held_out": 0.9}


@pytest.mark.parametrize(
    ("changes", "errors", "expected"),
    [
        ({}, {}, []),
        ({"size_ratio": 4.0}, {}, ["scale"]),
        ({"size_ratio": 2.0}, {}, []),
        ({"loss": 0.1, "size_ratio": 0.2}, {}, ["scale"]),
        ({"loss": 0.1, "size_ratio": 0.7}, {}, []),
        ({"loss": 0.9, "size_ratio": 0.05}, {}, []),
        ({"size_ratio": np.nan, "scale": np.nan}, {}, []),
        ({}, GAP, ["more samples"]),
        ({"size_ratio": 9.0}, GAP, ["scale", "more samples"]),
        ({"regret": 0.1, "size_ratio": 9.0}, GAP, []),  # decisions are good
        ({"regret": 0.0, "foreign_regret": 0.0}, GAP, []),
        ({"foreign_regret": 0.0}, GAP, ["more samples"]),
        ({"foreign_regret": np.nan}, GAP, ["more samples"]),
        ({"regret": -0.1}, GAP, ["wrong sense"]),
        ({"regret": 0.0, "foreign_regret": -0.1}, {}, ["wrong sense"]),
        ({}, {"mean_regret": -1.0}, ["wrong sense"]),
        ({"size_ratio": 9.0}, {"status": 2}, ["nothing to decide"]),
    ],
)
def test_findings_at_predictions_follow_from_numbers(
    diagnosis, summary_of, changes, errors, expected
):
    changed = dataclasses.replace(diagnosis, summary=summary_of(**errors), **of_size(**changes))
    assert [finding.name for finding in changed.findings] == expected
    assert all(finding.evidence.endswith(".") for finding in changed.findings)


def test_a_scale_is_proposed_by_the_size_of_the_errors(diagnosis):
    (finding,) = dataclasses.replace(diagnosis, size_ratio=4.0).findings
    assert str(finding).startswith("scale: The errors of predictions are 4 times as large")
    assert "a scale of 2 would match them" in finding.evidence


def test_advice_is_a_sentence_of_its_own():
    assert all(re.fullmatch(r"[A-Z].*\.", advice) for advice in ADVICE.values())
    assert len(set(ADVICE.values())) == len(ADVICE)
