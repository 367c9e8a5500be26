from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lodl.errors import InvalidInputError
from lodl.report import Comparison, PairedDifference


def shifted(record, by, **changes):
    regrets = tuple(np.asarray(record.regret_kept) + by)
    return replace(record, regret_kept=regrets, **changes)


def test_paired_difference_agrees_with_a_paired_t_test(fit_record):
    one = fit_record()
    other = shifted(one, np.random.default_rng(1).normal(-0.5, 1.0, size=40))
    found = PairedDifference.of(one, other)
    test = stats.ttest_rel(one.regret_kept, other.regret_kept)
    assert found.is_paired
    assert (found.low + found.high) / 2 == pytest.approx(found.mean)
    error = (found.high - found.low) / (2 * 1.96)
    assert found.mean / error == pytest.approx(test.statistic)


def test_a_constant_shift_is_a_sure_difference(fit_record):
    one = fit_record()
    comparison = Comparison({"A": one, "B": shifted(one, -0.25)})
    (difference,) = comparison.differences().values()
    assert difference.mean == pytest.approx(0.25)
    (sentence,) = comparison.sentences()
    assert sentence.startswith("B decides better than A, by 0.250 EUR per instance")


def test_runs_on_other_instances_are_compared_unpaired_and_say_so(fit_record):
    one = fit_record()
    comparison = Comparison({"A": one, "B": shifted(one, -0.25, data="other")})
    difference = comparison.differences()["B"]
    assert not difference.is_paired
    assert difference.low < 0 < difference.high
    assert any("judged on different instances" in sentence for sentence in comparison.sentences())


def test_page_shows_every_run(tmp_path, fit_record):
    one = fit_record()
    path = Comparison({"A": one, "B": shifted(one, 1.0), "C": one}).write(tmp_path / "compare.html")
    page = path.read_text(encoding="utf-8")
    assert all(f">{name}</th>" in page for name in "ABC")
    assert "A decides better than B, by " in page


def test_one_run_is_no_comparison(fit_record):
    with pytest.raises(InvalidInputError, match="at least two runs"):
        Comparison({"A": fit_record()})
