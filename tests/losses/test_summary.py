import dataclasses

import numpy as np
import pytest

from lodl import losses
from lodl.errors import InvalidInputError
from lodl.losses import FitStatus


@pytest.fixture
def with_errors(make_loss):
    """Makes a loss of ten instances with a mean regret of 2 and the given figures."""

    def make(**figures):
        loss = make_loss(n_instances=10, label_shape=(4,))
        values = {
            name: np.broadcast_to(value, 10)
            for name, value in {"mean_regret": 2.0, **figures}.items()
        }
        return dataclasses.replace(loss, errors=dataclasses.replace(loss.errors, **values))

    return make


def test_errors_are_shares_of_the_mean_regret(with_errors):
    summary = losses.summarise(with_errors(mae_fitted=0.2, mae_held_out=np.arange(1, 11) / 5))
    assert summary.error_fitted.median == pytest.approx(0.1)
    assert summary.error_held_out.median == pytest.approx(0.55)
    assert summary.error_held_out.worst == pytest.approx(np.quantile(np.arange(1, 11) / 10, 0.9))


def test_the_worst_tenth_of_a_correlation_is_the_lowest(with_errors):
    summary = losses.summarise(with_errors(r2_held_out=np.linspace(0, 0.9, 10)))
    assert summary.r2.worst == pytest.approx(0.09)


def test_poor_fits_are_those_with_an_error_above_half_the_regret(with_errors):
    error = np.array([0.9, 1.0, 1.1, 3.0, *[0.1] * 5, np.nan])
    summary = losses.summarise(with_errors(mae_held_out=error))
    assert (summary.n_poor, summary.n_judged) == (2, 9)
    assert "2 of 9 (held-out error above 0.5 of the mean regret)" in str(summary)


def test_instances_that_fell_back_are_counted_and_left_out(with_errors):
    status = np.array([FitStatus.NOTHING_TO_DECIDE] * 2 + [FitStatus.NO_SAMPLES] + [0] * 7)
    error = np.where(status == FitStatus.FITTED, 0.1, 100.0)
    summary = losses.summarise(with_errors(status=status, mae_fitted=error, mae_held_out=error))
    assert "10: 7 fitted, 2 nothing to decide, 1 no samples" in str(summary)
    assert summary.n_judged == 7
    assert summary.error_held_out.worst == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("fitted", "held_out", "advice"),
    [
        (0.2, 0.22, "more samples would change little"),
        (0.2, 0.8, "more samples would help"),
        (1.5, 1.6, "try another family"),
        (0.001, 0.002, "more samples would change little"),
        (0.2, np.nan, "not known"),
    ],
)
def test_the_summary_says_what_would_help(with_errors, fitted, held_out, advice):
    loss = with_errors(mae_fitted=fitted, mae_held_out=held_out)
    assert advice in loss.summary()


@pytest.mark.parametrize("status", [FitStatus.FITTED, FitStatus.NOTHING_TO_DECIDE])
def test_mostly_negative_regrets_put_the_sense_in_doubt(with_errors, status):
    loss = with_errors(status=status, mean_regret=np.array([-1.0] * 6 + [2.0] * 4))
    assert losses.summarise(loss).n_negative == 6
    assert "is `sense` right, or is the solver a heuristic?" in loss.summary()


def test_a_few_negative_regrets_leave_the_advice_of_the_others(with_errors):
    mean_regret = np.array([-1.0] * 5 + [2.0] * 5)
    loss = with_errors(mae_fitted=0.2, mae_held_out=0.2, mean_regret=mean_regret)
    assert "more samples would change little" in loss.summary()


def test_a_loss_without_a_fitted_instance_has_a_summary(with_errors):
    summary = losses.summarise(with_errors(status=FitStatus.NOTHING_TO_DECIDE, mean_regret=0.0))
    assert "No instance could be fitted" in str(summary)
    assert np.isnan(summary.error_fitted.median)


def test_a_comparison_has_a_line_for_each_loss_of_the_same_instances(make_loss):
    some = [make_loss(losses.WeightedMSE()), make_loss(losses.Quadratic(rank=2))]
    lines = losses.compare_losses(some).splitlines()
    assert lines[1].startswith("WeightedMSE(")
    assert lines[1].split()[1:3] == ["6", f"{losses.summarise(some[0]).error_fitted.median:.2f}"]
    assert lines[2].startswith("Quadratic(rank=2")
    assert lines[2].split()[2] == "18"  # 6 x 2 and the floor
    assert len({len(line) for line in lines[:3]}) == 1


@pytest.mark.parametrize(
    ("figures", "remedy"),
    [
        ({"mae_fitted": 0.2, "mae_held_out": 0.22}, "nothing"),
        ({"mae_fitted": 0.2, "mae_held_out": 0.8}, "more samples"),
        ({"mae_fitted": 1.5, "mae_held_out": 1.6}, "another family"),
        ({"mae_fitted": 0.2, "mae_held_out": np.nan}, "not known"),
        ({"mean_regret": -1.0}, "sense or solver"),
        ({"status": FitStatus.NO_SAMPLES}, "problem or scale"),
    ],
)
def test_a_comparison_says_what_would_help_each_loss(with_errors, figures, remedy):
    header, line, *_ = losses.compare_losses([with_errors(**figures)]).splitlines()
    assert header.endswith("would help")
    assert line.endswith(f"  {remedy}")


def test_losses_of_other_instances_are_not_compared(make_loss):
    with pytest.raises(InvalidInputError, match="instance 0 differs"):
        losses.compare_losses([make_loss(seed=0), make_loss(seed=1)])
    with pytest.raises(InvalidInputError, match="at least one learned loss"):
        losses.compare_losses([])
