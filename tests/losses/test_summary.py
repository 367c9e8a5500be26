import dataclasses

import numpy as np
import pytest

from lodl import losses
from lodl.errors import InvalidInputError
from lodl.losses import FitStatus


@pytest.fixture
def with_errors(make_loss):
    """Make a loss of ten instances with a mean regret of 2 and the given errors."""

    def make(**errors):
        loss = make_loss(n_instances=10, label_shape=(4,))
        values = {
            name: np.broadcast_to(value, 10)
            for name, value in {"mean_regret": 2.0, **errors}.items()
        }
        return dataclasses.replace(loss, errors=dataclasses.replace(loss.errors, **values))

    return make


def names(summary):
    return [finding.verdict.name for finding in summary.findings]


def test_errors_are_shares_of_the_mean_regret(with_errors):
    summary = with_errors(mae_fitted=0.2, mae_held_out=np.arange(1, 11) / 5).summary()
    assert summary.error_fitted.median == pytest.approx(0.1)
    assert summary.error_held_out.median == pytest.approx(0.55)
    assert summary.error_held_out.worst == pytest.approx(np.quantile(np.arange(1, 11) / 10, 0.9))


def test_the_worst_tenth_of_a_correlation_is_the_lowest(with_errors):
    assert with_errors(r2_held_out=np.linspace(0, 0.9, 10)).summary().r2.worst == pytest.approx(
        0.09
    )


def test_instances_that_were_not_fitted_are_counted_and_left_out(with_errors):
    status = np.array([FitStatus.NOTHING_TO_DECIDE] * 2 + [FitStatus.NO_SAMPLES] + [0] * 7)
    error = np.where(status == FitStatus.FITTED, 0.1, 100.0)
    summary = with_errors(status=status, mae_fitted=error, mae_held_out=error).summary()
    assert "10: 7 fitted, 2 nothing to decide, 1 no samples" in str(summary)
    assert summary.n_judged == 7
    assert summary.error_held_out.worst == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        ({"mae_fitted": 0.2, "mae_held_out": 0.22}, ["no change suggested"]),
        ({"mae_fitted": 0.001, "mae_held_out": 0.002}, ["no change suggested"]),
        ({"mae_fitted": 0.2, "mae_held_out": 0.8}, ["more samples"]),
        ({"mae_fitted": 1.5, "mae_held_out": 1.6}, ["another family"]),
        ({"mae_fitted": 1.5, "mae_held_out": 2.6}, ["another family", "more samples"]),
        ({"mae_fitted": 0.2, "mae_held_out": np.nan}, ["held-out samples"]),
        ({"mean_regret": -1.0}, ["sense or solver"]),
        ({"mean_regret": [-1.0] * 6 + [2.0] * 4, "status": 1}, ["sense or solver"]),
        (
            {"mean_regret": [-1.0] * 5 + [2.0] * 5, "mae_fitted": 0.2, "mae_held_out": 0.2},
            ["no change suggested"],
        ),
        ({"status": FitStatus.NO_SAMPLES}, ["problem or scale"]),
        ({"status": FitStatus.NOTHING_TO_DECIDE, "mean_regret": 0.0}, ["problem or scale"]),
    ],
)
def test_summary_and_comparison_say_what_would_help(with_errors, errors, found):
    loss = with_errors(**errors)
    assert names(loss.summary()) == found
    lines = str(loss.summary()).splitlines()
    assert lines[1].startswith(f"- {found[0]}: ")
    header, _, advice, *_ = losses.compare_losses([loss]).splitlines()
    assert header.endswith("family")
    assert advice.endswith(f": {found[0]}.")


@dataclasses.dataclass(frozen=True)
class Bound(losses.WeightedMSE):
    uses_slopes = True


def test_a_loss_that_ranks_well_is_not_called_poor_for_its_error(with_errors):
    large = {"mae_fitted": 1.5, "mae_held_out": 1.6}
    for correlation, found in ((0.6, "no change suggested"), (0.1, "another family")):
        summary = with_errors(**large, rank_correlation_held_out=correlation).summary()
        assert names(summary) == [found]
        assert f"rank correlation with the regret is {correlation:.2f}" in str(summary)


DECISIONS = {
    "rank_correlation_held_out": 0.35,
    "met_held_out": 0.5,
    "explained_held_out": 1.0,
}


@pytest.fixture
def of_decisions(with_errors):
    """Make a loss made of decisions, by default one that nothing can be said against."""

    def make(**errors):
        return dataclasses.replace(with_errors(**DECISIONS | errors), family=Bound())

    return make


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        ({}, ["no change suggested"]),
        ({"met_held_out": 0.0}, ["rounds"]),
        ({"rank_correlation_held_out": 0.0}, ["more samples"]),
        ({"rank_correlation_held_out": np.nan}, ["held-out samples"]),
        ({"explained_held_out": 0.99}, ["no change suggested"]),
        ({"explained_held_out": 0.6}, ["local slopes"]),
        ({"explained_held_out": 0.6, "met_held_out": 0.0}, ["local slopes", "rounds"]),
    ],
)
def test_a_loss_made_of_decisions_is_judged_by_ranks_slopes_and_decisions_met(
    of_decisions, errors, found
):
    loss = of_decisions(**errors)
    assert names(loss.summary()) == found
    assert f": {found[0]}." in losses.compare_losses([loss])


def test_the_summary_of_decisions_leads_with_ranks_and_has_no_errors(of_decisions):
    text = str(of_decisions(met_held_out=0.0).summary())
    assert text.splitlines()[1].startswith("- rounds: The rank correlation with the regret is 0.35")
    assert "known decisions   0% of the costly ones" in text
    assert "R2" not in text
    assert "error" not in text


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1.0, "they explain all held-out decisions, as exact ones do"),
        (0.985, "local: they explain 98.5% of held-out decisions"),
    ],
)
def test_the_summary_says_what_held_out_decisions_tell_of_slopes(of_decisions, share, said):
    lines = str(of_decisions(explained_held_out=share).summary()).splitlines()
    assert f"  slopes            {said}" in lines


def test_a_comparison_shows_decisions_instead_of_errors(with_errors, of_decisions):
    fitted = with_errors(mae_fitted=0.2, mae_held_out=0.4)
    bound = of_decisions(met_held_out=0.25, explained_held_out=0.9)
    header, of_fit, of_bound, *_ = losses.compare_losses([fitted, bound]).splitlines()
    shown = header.replace("rank corr.", "rank").replace("held out", "held_out").split()
    fits, bounds = (dict(zip(shown, one.split(), strict=False)) for one in (of_fit, of_bound))
    assert (fits["held_out"], fits["met"], fits["slopes"]) == ("0.20", "-", "-")
    assert (bounds["held_out"], bounds["met"], bounds["slopes"]) == ("-", "0.25", "0.90")


def test_numbers_of_few_samples_are_averaged_over_instances(of_decisions):
    few = of_decisions(met_held_out=[0.0] * 6 + [1.0] * 4).summary()
    assert few.decisions_met == pytest.approx(0.4)  # the median would be 0
    assert names(few) == ["no change suggested"]


def test_a_comparison_names_the_family_that_ranks_best(with_errors):
    good, poor = (with_errors(rank_correlation_held_out=value) for value in (0.7, 0.4))
    better = dataclasses.replace(good, family=losses.WeightedMSE(min_weight=0.5))
    assert "Best by rank" not in losses.compare_losses([poor])
    said = losses.compare_losses([poor, better])
    assert "Best by rank correlation: WeightedMSE(min_weight=0.5) (0.70)." in said


def test_a_comparison_has_a_line_for_each_loss_of_the_same_instances(make_loss):
    some = [make_loss(losses.WeightedMSE()), make_loss(losses.Quadratic(rank=2))]
    lines = losses.compare_losses(some).splitlines()
    correlation = some[0].summary().rank_correlation
    assert lines[1].split()[0] == f"{correlation:.2f}"
    assert lines[1].split()[-2:] == ["6", "WeightedMSE()"]
    assert lines[2].split()[-2:] == ["18", "Quadratic(rank=2)"]  # 6 x 2 and the floor
    assert max(map(len, lines)) <= 80


def test_losses_of_other_instances_are_not_compared(make_loss):
    with pytest.raises(InvalidInputError, match="instance 0 differs"):
        losses.compare_losses([make_loss(seed=0), make_loss(seed=1)])
    with pytest.raises(InvalidInputError, match="at least one learned loss"):
        losses.compare_losses([])
