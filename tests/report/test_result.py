"""The record of a fit: verdict, summary and JSON."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from lodl.errors import DataError
from lodl.report import BASELINE, Estimate, Failures, FitResult, Trial
from lodl.report._result import inexactness_of

REGRET = np.random.default_rng(0).exponential(size=200)
PERMUTED = np.random.default_rng(3).permutation(REGRET) - 0.01


@pytest.mark.parametrize(
    ("selected", "words"),
    [
        (REGRET, "Keep squared error: no clear gain here. Its regret is "),
        (REGRET + 0.1, "Keep squared error"),
        (REGRET / 2, "Use this model: regret "),
        (REGRET / 2, "(-50%, 95% interval of the gain "),
        (PERMUTED, "No clear gain: regret "),
        (PERMUTED, "This may be chance; use more validation instances to find out."),
    ],
)
def test_the_verdict_says_what_to_do(fit_result, selected, words):
    assert words in fit_result(REGRET, selected).verdict


def test_the_verdict_shows_what_a_simple_correction_reaches(fit_result):
    trials = (Trial(BASELINE, 0, 2.0, 1, 0.1), Trial("DecisionHinges()", 1, 1.0, 2, 0.2))
    shifted = Trial(f"{BASELINE}, shifted by the learned loss", 1, 1.1, 3, 0.3)
    result = fit_result(REGRET, REGRET / 2, trials=(*trials, shifted), selected=1)
    name = "squared error, shifted by the learned loss"
    assert result.verdict.endswith(f"With a simple correction ({name}): 1.10.")
    worse = Trial(f"{BASELINE}, shifted by a quantile", 1, 1.5, 3, 0.3)
    for both in ((shifted, worse), (worse, shifted)):
        better = fit_result(REGRET, REGRET / 2, trials=(*trials, *both), selected=1)
        assert better.verdict.endswith(f"With a simple correction ({name}): 1.10.")
    itself = fit_result(REGRET, REGRET / 2, trials=(*trials, shifted), selected=2)
    assert "simple correction" not in itself.verdict
    kept = fit_result(REGRET, REGRET, trials=(*trials, shifted), selected=0)
    assert "simple correction" not in kept.verdict


def test_the_interval_is_of_95_percent_and_paired(fit_result):
    gain = fit_result(REGRET, REGRET - 1).gain
    assert gain.low == pytest.approx(1) == gain.high == gain.mean
    noisy = REGRET * np.random.default_rng(1).random(200)
    error = stats.sem(REGRET - noisy)
    low, high = stats.norm.interval(0.95, loc=(REGRET - noisy).mean(), scale=error)
    gain = fit_result(REGRET, noisy).gain
    assert (gain.low, gain.high) == pytest.approx((low, high), rel=1e-4)


def test_a_regret_below_zero_is_named_as_inexactness_and_not_praised(fit_result):
    rng = np.random.default_rng(0)
    before, after = rng.normal(-0.36, 0.01, size=200), rng.normal(-1.89, 0.01, size=200)
    assert fit_result(before, after).verdict == (
        "No clear gain: regret -0.36 -> -1.89 EUR per instance, a difference that the "
        "solver's inexactness explains. The solver is not exact: 200 of 200 validation decisions "
        "are better than its own for the true label, by 1.89 EUR per instance."
    )


def test_a_gain_beyond_the_solvers_inexactness_is_one_and_the_inexactness_is_named(fit_result):
    after = np.where(np.arange(200) < 10, -0.2, REGRET / 2)
    text = fit_result(REGRET, after).verdict
    assert text.startswith("Use this model: regret ")
    assert "The solver is not exact: 10 of 200 validation decisions" in text
    assert "by 0.0100 EUR per instance." in text


def test_rounding_of_a_solver_is_not_called_inexact(fit_result):
    after = np.where(np.arange(200) < 10, -1e-8, REGRET / 2)
    assert "exact" not in fit_result(REGRET, after).verdict


@pytest.mark.parametrize(
    ("before", "after"), [(0.0, -1.0), (-1.0, -2.0), (0.5, -0.1), (0.0, 0.0), (-1.0, 0.0)]
)
def test_only_regrets_above_zero_are_compared_in_percent(fit_result, before, after):
    result = fit_result(np.full(20, before), np.full(20, after))
    assert "(-" not in result.verdict
    assert "--" not in result.verdict
    assert "inf" not in result.summary()


def test_a_regret_that_vanishes_is_a_gain_of_100_percent(fit_result):
    assert "(-100%, " in fit_result(REGRET, np.zeros(200)).verdict


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "1 validation instance is too few to judge: regret 3.00 -> 2.00 EUR per instance."),
        (4, "4 validation instances are too few to judge: regret 3.00 -> 2.00 EUR per instance."),
    ],
)
def test_a_handful_of_instances_cannot_tell(fit_result, n, words):
    text = fit_result(np.full(n, 3.0), np.full(n, 2.0)).verdict
    assert text == f"{words} Use at least 5, better 50."


def test_failed_decisions_are_part_of_the_verdict(fit_result):
    text = fit_result(REGRET, REGRET / 2, failures=Failures(3, 5)).verdict
    assert text.endswith(
        "3 of 200 validation decisions failed with squared error, 5 with this model; each counts "
        "as the worst decision of squared error."
    )
    text = fit_result(REGRET, REGRET, failures=Failures(3, 3, left_out=2)).verdict
    assert text.endswith(
        "3 of 200 validation decisions failed with squared error; each counts as the worst "
        "decision of squared error. Instances left out because the solver failed on them with "
        "every model: 2."
    )


def test_five_instances_are_enough_for_a_verdict(fit_result):
    result = fit_result(np.full(5, 2.0) + np.arange(5) / 100, np.ones(5))
    assert result.verdict.startswith("Use this model")


def test_the_inexactness_is_that_of_the_model_with_the_more_negative_regrets():
    exact, inexact = np.array([9.0, 9.0, 9.0, 9.0, 0.0]), np.array([-1.0, -1.0, 20.0, 20.0, 0.0])
    for pair in ((exact, inexact), (inexact, exact)):
        assert inexactness_of(*pair) == (2, 0.4)  # a regret of 0 is exact


def test_a_small_negative_regret_is_inexactness_however_many_instances_there_are():
    regret = np.ones(1000)
    regret[0] = -0.01  # the mean of the negative parts is ten times the rounding of a solver
    n_inexact, size = inexactness_of(regret, np.ones(1000))
    assert n_inexact == 1
    assert size == pytest.approx(1e-5)


def test_positive_regrets_do_not_hide_which_model_is_less_exact():
    more, less = np.array([-1.0, 1.0, 1.0, 1.0, 1.0]), np.array([-0.5, 0.0, 0.0, 0.0, 0.0])
    for pair in ((more, less), (less, more)):
        assert inexactness_of(*pair) == (1, 0.2)


def test_a_gain_as_large_as_the_inexactness_is_explained_by_it(fit_result):
    before = np.array([-1.0, 3.0] * 10)
    result = fit_result(before, before - 0.5)  # 0.75 of inexactness
    assert "a difference that the solver's inexactness explains" in result.verdict


@pytest.mark.parametrize("failures", [Failures(baseline=2), Failures(selected=2)])
def test_failures_of_one_model_alone_are_named(fit_result, failures):
    verdict = fit_result(REGRET, REGRET / 2, failures=failures).verdict
    assert f"{failures.baseline} of 200 validation decisions failed with squared error" in verdict


def test_the_standard_error_of_two_values_is_known_and_of_one_is_not():
    assert Estimate.of([0.0, 2.0]).standard_error == 1.0
    assert Estimate.of([1.0]).standard_error == np.inf


def test_the_summary_leads_with_what_to_do_in_the_objectives_unit(fit_result):
    text = fit_result(REGRET, REGRET / 2).summary().replace("\n", " ")
    assert text.startswith("Use this model: regret 1.13 -> 0.56 EUR per instance (-50%, ")
    assert "Validation: 200 instances, 5 folds." in text


def test_the_summary_fits_a_terminal(fit_result):
    name = "average of DecisionRanking(temperature=0.3) and DecisionHinges(margin=1.0), 50% of it"
    lines = (
        fit_result(
            123456.7 * REGRET,
            98765.4 * REGRET,
            unit="thousand EUR",
            trials=(Trial(BASELINE, 0, 1.5, 10, 0.1), Trial(name, 3, 1e-7, 10**8, 1e4)),
            selected=1,
            n_calls=123_456_789,
            seconds=12345.6,
            label_names=tuple(f"town {i}" for i in range(25)),
        )
        .summary()
        .splitlines()
    )
    assert max(map(len, lines)) <= 80
    first = lines.index("") + 2
    assert lines[first].split() == ["1.50", "0", "10", "0.1", "squared", "error"]
    assert " ".join("".join(lines[first + 1 :]).split()).endswith(name)
    assert "Predicts 25 numbers: town 0, town 1, ... town 24." in lines


def test_a_constant_prediction_is_the_mean_label_unless_it_is_shifted(fit_result):
    kept = fit_result(REGRET, REGRET / 2, shrinkage=1.0).verdict
    shifted = fit_result(REGRET, REGRET / 2, shrinkage=1.0, shift=(1.0,) * 25).verdict
    assert kept.startswith("The features do not help: the mean label decides no worse")
    assert shifted.startswith("The features do not help: a constant prediction decides no worse")


def test_the_summary_explains_what_may_surprise(fit_result):
    trials = (
        Trial(BASELINE, 0, 1.0, 8, 0.1),
        Trial("DecisionHinges()", 2, 0.8, 10, 0.1),
        Trial("average of 2 losses", 2, 0.9, 10, 0.1),
    )
    result = fit_result(np.ones(9), np.full(9, 0.7), trials=trials, shrinkage=1.0)
    text = result.summary().replace("\n", " ")
    assert "A single loss is selected only if it is clearly better." in text
    assert text.startswith("The features do not help")
    assert text.rpartition(" ")[2] == "better."  # below the table that it is about
    assert fit_result().remarks() == []
    by_loss = fit_result(trials=trials, is_by_loss=True)
    assert by_loss.remarks()[0].startswith("Values are of a learned loss, not regrets, except")
    assert repr(by_loss) == by_loss.summary()


def test_the_numbers_of_trials_are_below_their_titles(fit_result):
    trials = (Trial(BASELINE, 0, 123.0, 8, 0.1), Trial("DecisionHinges()", 12, 0.8, 10_000, 123.4))
    rows = fit_result(trials=trials, selected=1).summary().split("\n\n")[1].splitlines()
    ends = [[m.end() for m in re.finditer(r"[\w.,]+(?=  )", row)][:4] for row in rows]
    assert ends[0] == ends[1] == ends[2]


def test_the_summary_names_cost_and_selection(fit_result):
    lines = fit_result([4.0] * 6, [3.0] * 6).summary().splitlines()
    assert "Selected: average of DecisionHinges() and DecisionRanking()." in lines
    assert "Cost: 1,000 solver calls, 3.2 s." in lines
    same = fit_result([4.0] * 6, [4.0] * 6).summary()
    assert "Expect a little less" not in same  # nothing was gained
    assert "Expect a little less" in " ".join(lines)


@pytest.mark.parametrize(
    ("n", "words"), [(8, "Predicts a0, a1, a2, a3"), (9, "Predicts 9 numbers")]
)
def test_a_few_label_names_are_listed_in_full(fit_result, n, words):
    names = tuple(f"a{i}" for i in range(n))
    shape = {"label_shape": (n,), "mean_label": (0.0,) * n}
    assert words in fit_result(label_names=names, **shape).summary()


def test_the_table_has_a_row_for_each_trial_and_its_numbers_in_full(fit_result):
    result = fit_result()
    header, *rows = result.table().texts()
    assert header == ["trained on", "regret", "round", "calls", "seconds"]
    assert [row[0] for row in rows] == [trial.name for trial in result.trials]
    assert [row[1].value for row in result.table().rows] == [t.regret for t in result.trials]


def test_a_name_that_wraps_is_indented_below_itself(fit_result):
    name = "average of " + " and ".join(["DecisionRanking()"] * 3)
    result = fit_result([2.0] * 5, [1.0] * 5, trials=(Trial(name, 1, 1.0, 10, 0.1),), selected=0)
    *_, first, second = result.summary().splitlines()
    assert second.startswith(" " * (first.index("average") + 2) + "Dec")


def test_labels_of_one_number_have_the_shape_of_none(fit_result):
    single = {"mean_label": (0.5,)}
    assert fit_result(label_shape=(), **single).label_shape == ()
    for shape in ((0,), (1, 0)):
        with pytest.raises(ValueError, match="`label_shape` must be positive"):
            fit_result(label_shape=shape, mean_label=())


def test_a_result_comes_back_from_json(fit_result):
    result = fit_result(label_names=tuple(f"a\n{i}" for i in range(25)))
    again = FitResult.from_json(result.to_json())
    assert again == result
    assert again.label_names[1] == "a\n1"  # frames are matched by these names
    assert "a\\n1" in again.summary()


def test_texts_are_shown_without_control_characters(fit_result):
    assert fit_result(problem="a\x1b[2Jb").problem == "a\\x1b[2Jb"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lodl_result", 0, "its format is 0, this package reads 1"),
        ("trials", [], "`trials` must not be empty"),
        ("selected", 3, "`selected` must be a position"),
        ("selected", True, "`selected` has an unsuitable value"),
        ("shrinkage", 2, "`shrinkage` must be from 0 to 1"),
        ("instances", [], "`instances` must not be empty"),
        ("regret_baseline", [1.0], "`regret_baseline` must have 40 values"),
        ("label_shape", [-5, -5], "`label_shape` must be positive"),
        ("label_shape", [5], "`mean_label` must have the shape"),
        ("label_names", ["a"], "`label_names` must have 25 values or none"),
        ("n_features", 0, "`n_features` must be at least 1"),
        ("seconds", 10**400, "too large"),
        ("model", None, "`model` has an unsuitable value"),
        ("trials", [[]], "must be an object"),
    ],
)
def test_a_hostile_file_is_refused(fit_result, name, value, message):
    content = json.loads(fit_result().to_json()) | {name: value}
    with pytest.raises(DataError, match=message):
        FitResult.from_json(json.dumps(content))


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "[" * 100_000, '{"lodl_result": 1}', '{"seconds": NaN}']
)
def test_text_that_is_no_result_is_refused(text):
    with pytest.raises(DataError, match="This is not the result of a fit"):
        FitResult.from_json(text)


def test_an_infinite_number_is_refused(fit_result):
    text = fit_result().to_json().replace('"seconds": 3.2', '"seconds": 1e999')
    with pytest.raises(DataError, match="numbers must be finite"):
        FitResult.from_json(text)


def test_records_need_no_matplotlib():
    code = (
        "import sys, lodl.report; sys.exit('matplotlib' in sys.modules or 'jinja2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
