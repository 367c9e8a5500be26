import pytest

from lodl_benchmarks.pages import fidelity_section, parse_row, read_rows, results_of, time_section
from lodl_benchmarks.paper import table2b
from lodl_benchmarks.paper._page import (
    _fidelity_section,
    _not_ablated,
    beside_the_paper,
    verdict,
)


@pytest.mark.parametrize(
    ("error", "title", "text"),
    [
        (0.000854, "at predictions, x 10⁻⁴", "8.54 ± 0.00"),
        (2.0, "at predictions", "2.00 ± 0.00"),
        (0.0, "at predictions", "0.00 ± 0.00"),
        (41_000, "at predictions, x 10⁴", "4.10 ± 0.00"),
    ],
)
def test_errors_have_a_power_of_ten_per_column(row, write_rows, error, title, text):
    folder = write_rows(row("mine", "NN", 0, [0.9], empirical_error=[error]))
    (block,) = fidelity_section(results_of(read_rows(folder / "rows.jsonl"))).blocks
    assert block.title == "mine"
    (table,) = block.tables
    assert table.columns[1] == title
    assert table.rows[0][1].text == text


def fidelity_blocks(folder):
    rows = read_rows(folder / "rows.jsonl")
    return _fidelity_section(rows, beside_the_paper(results_of(rows), rows)).blocks


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


@pytest.mark.parametrize(
    ("domain", "title"),
    [
        ("web", "Web Advertising, errors in expected clicks"),
        ("linear", "Linear Model, errors in the objective's unit"),
    ],
)
def test_errors_of_the_papers_domains_are_in_its_unit(row, write_rows, domain, title):
    own = {"domain": "mine", "method": "NN", "test": [0.9], "empirical_error": [0.5]}
    errors = {"empirical_error": [0.012, 0.034], "gaussian_error": 0.05}
    folder = write_rows(row(domain, "NN", 0, [0.9, 0.8], **errors), own)
    assert [block.title for block in fidelity_blocks(folder)] == [title, "mine"]


def test_a_domain_that_only_shares_the_name_keeps_its_own_unit(write_rows):
    own = {"domain": "web", "method": "NN", "test": [0.9], "empirical_error": [0.5]}
    (block,) = fidelity_blocks(write_rows(own))
    assert block.title == "web"
    assert texts(block.tables[0]) == [["NN", "0.50 ± 0.00", "", "0.90 ± 0.00"]]


@pytest.mark.parametrize("missing", ["sampler", "n_samples", "data", "versions"])
def test_only_rows_that_say_how_they_were_made_are_a_reproduction(row, write_rows, missing):
    whole = row("web", "NN", 0, [0.1])
    for values, titles in [(whole, {"web": "Web Advertising"}), (whole | {missing: None}, {})]:
        rows = read_rows(write_rows(values) / "rows.jsonl")
        assert beside_the_paper(results_of(rows), rows).titles == titles


def test_table_3_stands_beside_the_papers_with_its_straight_lines(row, write_rows):
    families = ("NN", "WeightedMSE", "Quadratic", "ConvexDirectedQuadratic", "Mine")
    rows = [
        row("web", name, 0, [0.9 - 0.1 * i], empirical_error=[0.01 * i], gaussian_error=0.02 * i)
        for i, name in enumerate(families)
    ]
    errors, trends = (block.tables[0] for block in fidelity_blocks(write_rows(*rows)))
    assert texts(errors)[2] == [
        *("Quadratic", "20.00 ± 0.00 (0.86 ± 0.52) *", "40.00 ± 0.00 (0.96 ± 0.00) *"),
        *("0.70 ± 0.00 (0.92 ± 0.05) *", "200,100"),
    ]
    assert texts(errors)[3][1:-1] == ["30.00 ± 0.00", "60.00 ± 0.00", "0.60 ± 0.00"]
    assert texts(trends)[:2] == [
        [
            "Web Advertising, means of losses",
            "-1.00 (-1.00 without NN)",
            "0.90 [0.90, 0.90]",
            "-1.00 (-1.00 without NN)",
        ],
        ["Web Advertising, all runs", "-1.00", "0.90", "-1.00"],
    ]
    assert len(texts(trends)) == 2  # the paper has three of these methods: too few for a line


def test_a_run_that_goes_on_is_not_shown_beside_its_ablation(row, write_rows):
    few, rate = {"n_samples": 50}, {"learning_rate": 0.1}
    rows = [
        *(row("web", name, 0, [0.9]) for name in ("Quadratic", "NN", "2-stage")),
        *(row("web", "Quadratic", seed, [0.5 + 0.1 * seed], **few) for seed in (0, 1)),
        row("web", "Quadratic", 0, [0.4], **few, **rate),
        row("web", "NN", 0, [0.3], **few),
    ]
    folder = write_rows(*rows)
    table = table2b([parse_row(rows[3])])  # before the second seed
    others = _not_ablated(results_of(read_rows(folder / "rows.jsonl")), [table])
    assert [(other.method, other.setting) for other in others] == [
        ("Quadratic", "50 samples, learning rate 0.1"),
        ("NN", "50 samples"),
    ]


def test_times_say_how_they_were_measured(row, write_rows):
    folder = write_rows(row("web", "NN", 0, [0.9]))
    section = time_section(results_of(read_rows(folder / "rows.jsonl")))
    assert "Sampling is timed by the clock" in section.text
    assert "fitting and training by the processor" in section.text


def test_the_verdict_counts_published_numbers_and_compares_with_squared_error(row):
    rows = [
        parse_row(row("linear", method, 0, test))
        for method, test in [
            ("2-stage", [-0.95, -0.95]),
            ("Quadratic", [0.9, 0.9]),
            ("Constant", [0.1]),
        ]
    ]
    lines = verdict(beside_the_paper(results_of(rows), rows))
    assert lines == [
        "1 of 2 published numbers lie within the spread of ours.",
        "Linear Model: -0.95 on squared error, 0.90 on Quadratic.",
    ]


def test_there_is_no_verdict_on_a_run_of_ones_own(row):
    rows = [parse_row(row("mine", "2-stage", 0, [0.5]))]
    assert verdict(beside_the_paper(results_of(rows), rows)) == []
