import json

import pytest

from lodl.benchmarks import quality_json, table2b_info, table3_info
from lodl.report._ablation_section import ablations_section, without_ablations
from lodl.report._fidelity_section import fidelity_section
from lodl.report._result_sections import time_section
from lodl.report._results import results_info
from lodl.report._rows import read_rows


@pytest.mark.parametrize(
    ("name", "columns", "titles"),
    [
        (
            "table2a",
            ["AllPerturbed", "OnePerturbed", "TwoPerturbed"],
            ["1-perturbed", "2-perturbed", "all-perturbed"],
        ),
        ("table2b", [5000, 50, 500], ["50 samples", "500 samples", "5,000 samples"]),
    ],
)
def test_an_ablation_stands_in_the_papers_order(tmp_path, name, columns, titles):
    cells = [
        {"method": method, "column": column, "ours": {"mean": 0.5, "std": 0.1}, "paper": None}
        for method in ("Quadratic", "ConvexDirectedQuadratic", "NN")
        for column in columns
    ]
    (tmp_path / f"{name}.json").write_text(json.dumps({"cells": cells}))
    (block,) = ablations_section(tmp_path).blocks
    (table,) = block.tables
    assert table.columns == ("trained on", *titles)
    methods = [cells[0].text for cells in table.rows]
    assert methods == ["NN", "Quadratic", "ConvexDirectedQuadratic"]


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
    block = fidelity_block(folder)
    assert block.title == "mine, errors in the objective's unit"
    (table,) = block.tables
    assert table.columns[1] == title
    assert table.rows[0][1].text == text


def fidelity_block(folder):
    results = results_info(read_rows(folder / "rows.jsonl"))
    (block,) = fidelity_section(folder, results).blocks
    return block


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


@pytest.mark.parametrize("domain", ["web", "linear"])
def test_errors_are_in_the_same_unit_from_rows_and_from_table_3(row, write_rows, domain):
    rows = [row(domain, "ConvexDirectedQuadratic", 0, [0.9, 0.8], empirical_error=[0.012, 0.034])]
    folder = write_rows(*rows)
    of_rows = fidelity_block(folder)
    (folder / "table3.json").write_text(json.dumps(table3_info(rows)))
    of_table = fidelity_block(folder)
    assert of_rows.title == of_table.title
    (table,) = of_rows.tables
    assert table.columns == of_table.tables[0].columns
    assert texts(table) == texts(of_table.tables[0])
    assert of_rows.title.endswith("expected clicks" if domain == "web" else "objective's unit")


def test_a_domain_that_only_shares_the_name_keeps_its_own_unit(write_rows):
    own = {"domain": "web", "method": "NN", "test": [0.9], "empirical_error": [0.5]}
    block = fidelity_block(write_rows(own))
    assert block.title == "web, errors in the objective's unit"
    assert texts(block.tables[0]) == [["NN", "0.50 ± 0.00", "", "0.90 ± 0.00"]]


def test_table_3_stands_beside_the_papers_with_its_straight_lines(row, write_rows):
    families = ("NN", "WeightedMSE", "Quadratic", "ConvexDirectedQuadratic")
    rows = [
        row("web", name, 0, [0.9 - 0.1 * i], empirical_error=[0.01 * i], gaussian_error=0.02 * i)
        for i, name in enumerate(families)
    ]
    folder = write_rows(*rows)
    (folder / "table3.json").write_text(json.dumps(table3_info(rows)))
    errors, trends = fidelity_block(folder).tables
    assert errors.columns == ("learned loss", "at predictions", "around labels", "quality")
    assert texts(errors)[2] == [
        *("Quadratic", "0.20 ± 0.00 (0.01 ± 0.01)", "0.40 ± 0.00 (0.01 ± 0.00)"),
        "0.70 ± 0.00 (0.92 ± 0.05)",
    ]
    assert texts(errors)[3][1:] == ["0.30 ± 0.00", "0.60 ± 0.00", "0.60 ± 0.00"]
    assert texts(trends)[:2] == [
        ["means of losses", "-1.00", "0.90 [0.90, 0.90]", "-1.00"],
        ["all runs", "-1.00", "0.90", "-1.00"],
    ]
    assert texts(trends)[2][0] == "the paper's means"


def test_a_run_that_goes_on_is_not_shown_beside_its_ablation(row, write_rows):
    few, rate = {"n_samples": 50}, {"learning_rate": 0.1}
    rows = [
        *(row("web", name, 0, [0.9]) for name in ("Quadratic", "NN", "2-stage")),
        *(row("web", "Quadratic", seed, [0.5 + 0.1 * seed], **few) for seed in (0, 1)),
        row("web", "Quadratic", 0, [0.4], **few, **rate),
        row("web", "NN", 0, [0.3], **few),
    ]
    folder = write_rows(*rows)
    cells = table2b_info(rows[3:4])  # before the second seed
    (folder / "table2b.json").write_text(json.dumps(quality_json(cells)))
    others = without_ablations(results_info(read_rows(folder / "rows.jsonl")), folder)
    assert [(other.method, other.setting) for other in others] == [
        ("Quadratic", "50 samples, learning rate 0.1"),
        ("NN", "50 samples"),
    ]


def test_times_tell_how_they_were_measured(row, write_rows):
    folder = write_rows(row("web", "NN", 0, [0.9]))
    section = time_section(results_info(read_rows(folder / "rows.jsonl")))
    assert "Sampling is timed by the clock" in section.text
    assert "fitting and training by the processor" in section.text
