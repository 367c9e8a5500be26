"""The table of `evaluate`."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from lodl.report import BASELINE, PLAIN, Evaluation


def make(**regrets: list[float]) -> Evaluation:
    arrays = {name: np.array(values) for name, values in regrets.items()}
    n = len(next(iter(arrays.values())))
    return Evaluation.of(arrays, np.full(n, 50.0), unit="EUR", n_calls=12)


def test_differences_are_paired_by_instance():
    evaluation = make(plain=[1.0, 2.0, 3.0, 4.0, 5.0], model=[0.5, 1.5, 2.5, 3.5, 4.5])
    gain = evaluation.gain("plain")
    assert (gain.low, gain.mean, gain.high) == pytest.approx((0.5, 0.5, 0.5))


def test_an_instance_on_which_any_model_failed_is_left_out_of_all_rows():
    evaluation = make(plain=[1.0, np.nan, 3.0], model=[1.0, 1.0, 2.0])
    assert evaluation.n_left_out == 1
    assert evaluation.regrets == {"plain": (1.0, 3.0), "model": (1.0, 2.0)}


def test_regret_is_also_shown_in_percent_of_the_optimum():
    evaluation = make(plain=[1.0] * 6, model=[0.5] * 6)
    assert evaluation.percent("plain") == pytest.approx(2.0)
    assert "% of optimum" in evaluation.table().columns
    zero = Evaluation.of({"plain": np.ones(6), "model": np.ones(6)}, np.zeros(6))
    assert zero.percent("plain") is None
    assert "% of optimum" not in str(zero)


def test_the_table_has_a_line_for_each_model_and_one_for_what_it_took():
    lines = str(make(plain=[1.0, 2.0] * 5, model=[0.04, 0.06] * 5)).splitlines()
    assert lines[1].split() == ["plain", "1.5000", "3.00", "1.45", "(1.13", "to", "1.77)"]
    assert lines[2].split() == ["model", "0.0500", "0.10"]
    assert lines[3] == "Regret per instance, in EUR: 10 test instances, 12 solver calls."
    assert lines[4].startswith("Use this model: compared with plain, the best simpler way, regret")
    assert max(map(len, lines[4:])) <= 80


def test_no_interval_is_shown_for_a_handful_of_instances():
    assert "(" not in str(make(plain=[1.0, 2.0], model=[0.5, 1.0])).splitlines()[1]


def test_a_table_without_instances_says_so():
    assert "No instance" in str(make(plain=[np.nan], model=[1.0]))


NOISE = np.random.default_rng(0).normal(size=50)


@pytest.mark.parametrize(
    ("regrets", "words"),
    [
        ({"a": [3.0] * 6, "b": [2.0] * 6, "model": [1.0] * 6}, "Use this model: compared with b,"),
        ({"a": [3.0] * 6, "b": [1.0] * 6, "model": [2.0] * 6}, "Use b instead: with this model,"),
        ({"a": [3.0] * 50, "model": list(3 + NOISE)}, "No clear difference from a, the best"),
        ({"a": [3.0] * 6, "model": [3.0] * 6}, "This model decides like a: regret 3.00 EUR per"),
        ({"a": [3.0] * 2, "model": [2.0] * 2}, "2 test instances are too few to judge: regret"),
    ],
)
def test_the_verdict_compares_with_the_best_simpler_way(regrets, words):
    assert make(**regrets).verdict.startswith(words)


def test_the_headline_shows_the_best_simpler_way_before_this_model():
    evaluation = make(a=[4.0] * 6, b=[2.0] * 6, model=[1.0] * 6)
    assert evaluation.headline == "2.00 → 1.00 EUR (-50%)"
    assert make(a=[0.0] * 6, model=[1.0] * 6).headline == "0.00 → 1.00 EUR"


def test_the_validation_instances_of_a_fit_are_rows_too(fit_result):
    result = fit_result([4.0] * 6, [3.0] * 6)
    evaluation = Evaluation.of_fit(result)
    assert evaluation.headline == "4.00 → 3.00 EUR (-25%)"
    assert evaluation.percent("this model") is None
    assert "6 validation instances" in str(evaluation)


def test_the_record_is_plain_data():
    numbers = json.loads(json.dumps(asdict(make(plain=[1.0] * 6, model=[0.5] * 6))))
    assert numbers["regrets"]["model"] == [0.5] * 6


def test_a_model_that_is_the_plain_one_is_compared_with_another_only_if_that_is_clearly_better():
    ours = np.random.default_rng(0).exponential(size=50)
    rows = {PLAIN: ours, BASELINE: ours - 0.01 * np.random.default_rng(1).normal(size=50) - 0.001}
    level = Evaluation.of({**rows, "this model": ours}, np.ones(50))
    assert level.verdict.startswith("This model decides like the plain model: regret")
    rows[BASELINE] = ours / 2
    clear = Evaluation.of({**rows, "this model": ours}, np.ones(50))
    assert clear.verdict.startswith("Use squared error instead")
