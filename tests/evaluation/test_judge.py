import dataclasses

import numpy as np
import pytest

from lodl.evaluation import Fidelity, Region
from lodl.evaluation._judge import judge
from lodl.losses import FitStatus, FitSummary, Spread, WeightedMSE
from lodl.losses._verdicts import NO_CHANGE, PROBLEM_OR_SCALE

NAN = Spread(np.nan, np.nan)

FIDELITY = Fidelity(
    regret=1.0,
    loss=1.0,
    error=0.2,
    share_bounded=0.5,
    rank_correlation=0.8,
    rank_correlation_within=0.8,
    reversed_regret=1.0,
    foreign_regret=2.0,
    sees_direction=True,
    worst=(),
)
REGION = Region(
    scale=0.5, size_ratio=1.0, n_at_once=5, share_wider=0.0, share_outside=0.0, share_inside=0.0
)
WIDER = {"n_at_once": 1, "share_wider": 1.0, "share_outside": 1.0}
FIT = FitSummary(
    family=WeightedMSE(),
    n_instances=10,
    n_parameters=5,
    n_by_status={status: 10 * (status is FitStatus.FITTED) for status in FitStatus},
    n_samples=100,
    error_fitted=Spread(0.2, 0.3),
    error_held_out=Spread(0.22, 0.3),
    r2=NAN,
    rank_correlation=np.nan,
    decisions_met=None,
    decisions_explained=None,
    n_judged=10,
    n_negative=0,
)
BAD_FIT = {"error_fitted": Spread(0.7, 0.8), "error_held_out": Spread(0.75, 0.8)}
GAP = {"error_held_out": Spread(0.4, 0.5)}


@pytest.mark.parametrize(
    ("fidelity", "region", "fit", "names"),
    [
        ({}, {}, {}, ["no change suggested"]),
        ({"reversed_regret": 0.05, "sees_direction": False}, {}, {}, ["directed family"]),
        ({"reversed_regret": 20.0, "sees_direction": False}, {}, {}, ["directed family"]),
        ({"reversed_regret": 0.2, "sees_direction": False}, {}, {}, ["no change suggested"]),
        ({"reversed_regret": 0.05}, {}, {}, ["no change suggested"]),
        ({}, {"size_ratio": 4.0}, {}, ["larger scale"]),
        ({}, {"size_ratio": 2.0}, {}, ["no change suggested"]),
        ({"loss": 0.1}, {"size_ratio": 0.2}, {}, ["smaller scale"]),
        ({"loss": 0.1}, {"size_ratio": 0.7}, {}, ["no change suggested"]),
        ({"loss": 0.9}, {"size_ratio": 0.05}, {}, ["no change suggested"]),
        ({}, {"size_ratio": np.nan}, {}, ["no change suggested"]),
        ({}, WIDER, {}, ["more coordinates at once"]),
        ({}, WIDER | {"share_wider": 0.4}, {}, ["no change suggested"]),
        ({"regret": 0.1}, WIDER, {}, ["good decisions"]),
        ({}, WIDER | {"size_ratio": 4.0}, {}, ["more coordinates at once", "larger scale"]),
        ({}, {}, GAP, ["more samples"]),
        ({}, {}, BAD_FIT, ["another family"]),
        ({"reversed_regret": 0, "sees_direction": False}, {}, BAD_FIT, ["directed family"]),
        ({}, {"size_ratio": 9.0}, GAP, ["larger scale", "more samples"]),
        ({}, {}, {"n_judged": 0, "error_held_out": NAN}, ["held-out samples"]),
        ({"regret": 0.1}, {"size_ratio": 9.0}, BAD_FIT, ["good decisions"]),
        ({"regret": 0.0, "foreign_regret": 0.0}, {}, BAD_FIT, ["good decisions"]),
        ({"foreign_regret": 0.0}, {}, GAP, ["more samples"]),
        ({"regret": -0.1}, {}, GAP, ["sense or solver"]),
        ({"regret": 0.0, "foreign_regret": -0.1}, {}, {}, ["sense or solver"]),
        ({}, {}, {"n_negative": 9}, ["sense or solver"]),
    ],
)
def test_verdicts_follow_from_numbers(fidelity, region, fit, names):
    found = judge(
        dataclasses.replace(FIDELITY, **fidelity),
        dataclasses.replace(REGION, **region),
        dataclasses.replace(FIT, **fit),
    )
    assert [finding.verdict.name for finding in found] == names
    assert all(finding.evidence.endswith(".") for finding in found)


def test_where_the_region_is_not_known_nothing_is_said_of_the_scale():
    (finding,) = judge(FIDELITY, None, FIT)
    assert finding.verdict is NO_CHANGE


def test_an_unfitted_loss_has_one_verdict():
    n_by_status = {status: 10 * (status is FitStatus.NO_SAMPLES) for status in FitStatus}
    unfitted = dataclasses.replace(FIT, n_by_status=n_by_status, n_judged=0)
    (finding,) = judge(FIDELITY, REGION, unfitted)
    assert finding.verdict is PROBLEM_OR_SCALE


def test_a_scale_is_proposed_by_the_size_of_the_errors():
    (finding,) = judge(FIDELITY, dataclasses.replace(REGION, size_ratio=4.0), FIT)
    assert str(finding).startswith("larger scale: The errors are 4 times as large")
    assert "a scale of 2 would match them" in finding.evidence
