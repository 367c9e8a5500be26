from dataclasses import replace
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lodl._json import write_json
from lodl_benchmarks.pages import MeanStd, parse_row, read_json
from lodl_benchmarks.paper import Table3
from lodl_benchmarks.paper._table3 import _trend

EACH = tuple(map(itemgetter, range(3)))
NUMBERS = st.floats(0.01, 1).map(lambda x: round(x, 3))


def row(method, domain="linear", *, quality, empirical, gaussian):
    return parse_row(
        {
            "domain": domain,
            "method": method,
            "test": list(quality),
            "empirical_error": list(empirical),
            "gaussian_error": gaussian,
            "oracle_calls": 8400,
        }
    )


def linear(rows):
    return Table3.of(rows).domains["linear"]


def markdown(table):
    return "\n\n".join(one.markdown() for one in table.tables())


def line_by_moments(x, y):
    """Slope, intercept and correlation from covariances, by hand."""
    dx, dy = np.asarray(x) - np.mean(x), np.asarray(y) - np.mean(y)
    slope = (dx @ dy) / (dx @ dx)
    return slope, np.mean(y) - slope * np.mean(x), (dx @ dy) / np.sqrt((dx @ dx) * (dy @ dy))


@pytest.fixture
def rows():
    """Three families, two seeds of one of them; quality is 1 - error / 2 in every run."""
    return [
        row("NN", quality=[0.9, 0.7], empirical=[0.2, 0.6], gaussian=0.3),
        row("NN", quality=[0.8], empirical=[0.4], gaussian=0.6),
        row("Quadratic", quality=[0.5, 0.4], empirical=[1.0, 1.2], gaussian=0.1),
        row("WeightedMSE", quality=[0.0], empirical=[2.0], gaussian=0.3),
    ]


def test_the_means_of_a_method_are_over_all_runs_of_all_seeds(rows):
    method = linear(rows).methods["NN"]
    assert method.empirical.mean == pytest.approx(0.4)
    assert method.empirical.std == pytest.approx(np.std([0.2, 0.6, 0.4]))
    assert method.gaussian.mean == pytest.approx((0.3 + 0.3 + 0.6) / 3)
    assert method.quality.mean == pytest.approx(0.8)
    assert method.runs["gaussian"] == (0.3, 0.3, 0.6)
    assert method.paper is None


def test_losses_that_bound_the_regret_are_shown_and_have_no_part_in_the_lines(rows, tmp_path):
    bound = row("DecisionHinges", quality=[0.9, 0.8], empirical=[3.0, 5.0], gaussian=None)
    with_bound = Table3.of([*rows, bound])
    found = with_bound.domains["linear"]
    assert found.bounds["DecisionHinges"].empirical.mean == pytest.approx(4.0)
    assert (found.methods, found.trends) == (linear(rows).methods, linear(rows).trends)
    (line,) = (line for line in found.table().rows if line[0].text == "DecisionHinges")
    assert [cell.text for cell in line[1:]] == ["400.00 ± 100.00", "", "0.85 ± 0.05", "8,400"]
    assert read_json(write_json(tmp_path / "table3.json", with_bound), Table3) == with_bound
    assert not Table3.of([bound]).domains


def test_a_straight_line_is_found_with_its_value_at_no_error(rows):
    trends = linear(rows).trends["empirical"]
    for trend, n in [(trends.of_methods, 3), (trends.of_runs, 6)]:
        assert trend.slope == pytest.approx(-0.5)
        assert trend.intercept == pytest.approx(1)
        assert trend.correlation == pytest.approx(-1)
        assert trend.n == n
    assert trends.of_methods.intercept_95 == pytest.approx((1, 1), abs=1e-6)
    assert trends.of_runs.intercept_95 is None  # runs are not independent


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=3, max_size=6, unique_by=EACH))
def test_lines_are_those_of_the_textbook(points):
    rows = [
        row(f"family {i}", quality=[quality], empirical=[empirical], gaussian=gaussian)
        for i, (quality, empirical, gaussian) in enumerate(points)
    ]
    quality, empirical, gaussian = zip(*points, strict=True)
    trends = linear(rows).trends
    for errors, found in [(empirical, trends["empirical"]), (gaussian, trends["gaussian"])]:
        slope, intercept, correlation = line_by_moments(errors, quality)
        assert found.of_methods.slope == pytest.approx(slope, abs=1e-9)
        assert found.of_methods.intercept == pytest.approx(intercept, abs=1e-9)
        assert found.of_methods.correlation == pytest.approx(correlation, abs=1e-9)
        low, high = found.of_methods.intercept_95
        assert low <= intercept + 1e-9
        assert high >= intercept - 1e-9


def test_the_interval_of_the_line_at_no_error_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        errors = rng.uniform(0.2, 1, size=6)
        quality = 1 - 0.5 * errors + rng.normal(0, 0.1, size=6)
        low, high = _trend(errors, quality).intercept_95
        hits += low <= 1 <= high
    assert hits / 200 == pytest.approx(0.95, abs=0.03)


def test_a_line_that_rests_on_one_method_says_so():
    near = [("Quadratic", 0.4, 0.1), ("WeightedMSE", 0.5, 0.2), ("DirectedQuadratic", 0.6, 0.3)]
    near.append(("DirectedWeightedMSE", 0.7, 0.4))
    rows = [row(m, quality=[q], empirical=[e], gaussian=0.1) for m, q, e in [*near, ("NN", -5, 9)]]
    trends = linear(rows).trends["empirical"]
    assert trends.of_methods.correlation < -0.99
    assert trends.without_one.method == "NN"
    assert trends.without_one.correlation == pytest.approx(1)
    assert "| -1.00 (1.00 without NN) |" in markdown(Table3.of(rows))


@pytest.mark.parametrize(
    "rows",
    [
        [row(m, quality=[q], empirical=[q], gaussian=1.0) for m, q in [("NN", 0.5), ("DFL", 0.6)]],
        [row(m, quality=[0.5, 0.6, 0.7], empirical=[1, 1, 1], gaussian=1.0) for m in ("NN", "X")],
        [row("NN", quality=[0.5] * 3, empirical=[1, 2, 3], gaussian=1.0)],
    ],
    ids=["two points", "one error", "one quality"],
)
def test_where_no_line_is_defined_there_is_none(rows, tmp_path):
    table = Table3.of(rows)
    assert linear(rows).trends["empirical"].of_methods is None
    assert linear(rows).trends["gaussian"].of_runs is None
    assert read_json(write_json(tmp_path / "t.json", table), Table3) == table
    assert markdown(table)


def test_rows_without_errors_are_left_out(rows):
    others = [
        row("2-stage", quality=[0.5], empirical=[], gaussian=None),
        parse_row({"domain": "web", "method": "DFL", "test": [0.9]}),
    ]
    assert Table3.of([*rows, *others]) == Table3.of(rows)


def test_web_advertising_is_counted_in_clicks_beside_the_paper(rows):
    web = [replace(each, domain="web") for each in rows]
    domain = Table3.of(web).domains["web"]
    assert domain.unit == "expected clicks"
    assert domain.methods["NN"].empirical.mean == pytest.approx(4)
    assert domain.methods["NN"].paper["empirical"] == MeanStd(2.22e-2, 1.73e-2)


def test_the_papers_own_means_lie_on_a_line_that_reaches_one():
    families = ("NN", "WeightedMSE", "DirectedWeightedMSE", "Quadratic", "DirectedQuadratic")
    rows = [row(m, "web", quality=[0.5], empirical=[0.1], gaussian=0.1) for m in families]
    trends = Table3.of(rows).domains["web"].trends
    x, y = [2.22, 4.48, 5.58, 0.86, 1.91], [0.80, 0.58, 0.50, 0.92, 0.85]
    slope, intercept = np.polyfit(x, y, deg=1)
    assert trends["empirical"].of_paper.slope == pytest.approx(100 * slope)
    assert trends["empirical"].of_paper.intercept == pytest.approx(intercept)
    assert intercept == pytest.approx(1, abs=0.01)
    assert trends["gaussian"].of_paper.correlation == pytest.approx(
        np.corrcoef([0.94, 1.04, 0.92, 0.96, 1.06], y)[0, 1]
    )


def test_the_table_shows_errors_in_hundredths_and_every_line(rows):
    web = [replace(each, domain="web") for each in rows]
    text = markdown(Table3.of([*rows, *web])).splitlines()
    assert "| Quadratic | 110.00 ± 10.00 | 10.00 ± 0.00 | 0.45 ± 0.05 | 8,400 |" in text
    assert (
        "| Quadratic | 1100.00 ± 100.00 (0.86 ± 0.52) * | 100.00 ± 0.00 (0.96 ± 0.00) * "
        "| 0.45 ± 0.05 (0.92 ± 0.05) * | 8,400 |"
    ) in text
    lines = [line for line in text if line.startswith("| Linear Model, ")]
    assert len(lines) == 1  # a line through three means is not shown, one through six runs is
    assert lines[0].startswith("| Linear Model, all runs | -1.00 | 1.00 |")
    assert any(line.startswith("| Web Advertising, all runs | -") for line in text)


def test_a_quality_that_cannot_be_is_not_shown():
    rows = [
        row(f"family {i}", quality=[1 - 0.8 * e], empirical=[0.5 + 0.1 * i], gaussian=0.1)
        for i, e in enumerate([0.1, 0.4, 0.6, 1.0, 1.4])
    ]
    text = markdown(Table3.of(rows))
    assert "above 1 [" in text
    assert ", 1.00] |" in text
