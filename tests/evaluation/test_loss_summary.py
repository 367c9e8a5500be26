import numpy as np
import pytest

from lodl.losses import FitStatus


def names(summary):
    return [finding.name for finding in summary.findings]


def test_errors_are_shares_of_the_mean_regret(summary_of):
    summary = summary_of(mae_fitted=0.2, mae_held_out=np.arange(1, 11) / 5)
    assert summary.error_fitted.median == pytest.approx(0.1)
    assert summary.error_held_out.median == pytest.approx(0.55)
    assert summary.error_held_out.worst == pytest.approx(np.quantile(np.arange(1, 11) / 10, 0.9))
    assert summary.n_samples == 100
    assert summary.n_parameters == 4


def test_the_worst_tenth_of_a_correlation_is_the_lowest(summary_of):
    assert summary_of(r2_held_out=np.linspace(0, 0.9, 10)).r2.worst == pytest.approx(0.09)


def test_instances_that_were_not_fitted_are_counted_and_left_out(summary_of):
    status = np.array([FitStatus.NOTHING_TO_DECIDE] * 2 + [FitStatus.NO_SAMPLES] + [0] * 7)
    error = np.where(status == FitStatus.FITTED, 0.1, 100.0)
    summary = summary_of(status=status, mae_fitted=error, mae_held_out=error)
    assert "10: 7 fitted, 2 nothing to decide, 1 no samples" in str(summary)
    assert summary.error_held_out.worst == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"mae_fitted": 0.2, "mae_held_out": 0.22}, []),
        ({"mae_fitted": 0.001, "mae_held_out": 0.002}, []),
        ({"mae_fitted": 0.2, "mae_held_out": 0.8}, ["more samples"]),
        ({"mae_fitted": 1.5, "mae_held_out": 1.6}, []),
        ({"mae_fitted": 0.2, "mae_held_out": np.nan}, []),
        ({"mean_regret": -1.0}, ["wrong sense"]),
        ({"mean_regret": [-1.0] * 6 + [2.0] * 4, "status": 1}, ["wrong sense"]),
        ({"mean_regret": [-1.0] * 5 + [2.0] * 5}, []),
        ({"status": FitStatus.NO_SAMPLES}, ["nothing to decide"]),
        ({"status": FitStatus.NOTHING_TO_DECIDE, "mean_regret": 0.0}, ["nothing to decide"]),
        ({"status": [1] * 5 + [0] * 5}, []),
        ({"status": [1] * 6 + [0] * 4, "mae_held_out": 0.9}, ["nothing to decide", "more samples"]),
    ],
)
def test_findings_of_a_fitted_loss_follow_from_its_errors(summary_of, errors, expected):
    summary = summary_of(**errors)
    assert names(summary) == expected
    second = str(summary).splitlines()[1]
    assert second.startswith(f"- {expected[0]}: " if expected else "- No change suggested.")
    assert all(finding.evidence.endswith(".") for finding in summary.findings)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({}, []),
        ({"met_held_out": 0.0}, []),
        ({"rank_correlation_held_out": 0.0}, ["more samples"]),
        ({"rank_correlation_held_out": np.nan}, []),
        ({"explained_held_out": 0.99}, []),
        ({"explained_held_out": 0.6}, ["local slopes"]),
        (
            {"explained_held_out": 0.6, "rank_correlation_held_out": 0.0},
            ["local slopes", "more samples"],
        ),
    ],
)
def test_findings_of_a_loss_made_of_decisions_follow_from_ranks_and_slopes(
    summary_of_decisions, errors, expected
):
    assert names(summary_of_decisions(**errors)) == expected


def test_the_summary_of_decisions_has_ranks_and_decisions_but_no_errors(summary_of_decisions):
    text = str(summary_of_decisions(met_held_out=0.0))
    assert "rank correlation  0.35 on held-out samples" in text
    assert "known decisions   0% of the costly ones" in text
    assert "R2" not in text
    assert "error" not in text


@pytest.mark.parametrize(
    ("share", "line"),
    [
        (1.0, "exact: they explain all held-out decisions"),
        (0.985, "local: they explain 98.5% of decisions"),
    ],
)
def test_the_summary_shows_whether_slopes_are_exact(summary_of_decisions, share, line):
    lines = str(summary_of_decisions(explained_held_out=share)).splitlines()
    assert f"  slopes            {line}" in lines


def test_without_held_out_samples_the_summary_says_so(summary_of_decisions):
    undefined = dict.fromkeys(
        ("rank_correlation_held_out", "met_held_out", "explained_held_out"), np.nan
    )
    text = str(summary_of_decisions(**undefined))
    assert "rank correlation  not defined: too few held-out samples with a cost" in text
    assert "known decisions" not in text
    assert "nan" not in text


def test_numbers_of_few_samples_are_averaged_over_instances(summary_of_decisions):
    few = summary_of_decisions(met_held_out=[0.0] * 6 + [1.0] * 4)
    assert few.decisions_met == pytest.approx(0.4)  # the median would be 0
