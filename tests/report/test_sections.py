import json

import pytest

from lodl.report._ablation_section import ablations_section
from lodl.report._data_sections import fidelity_section
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
    assert block.table.columns == ("trained on", *titles)
    methods = [cells[0].text for cells in block.table.rows]
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
    folder = write_rows(row("web", "NN", 0, [0.9], empirical_error=[error]))
    results = results_info(read_rows(folder / "rows.jsonl"))
    (block,) = fidelity_section(folder, results).blocks
    assert block.table.columns[2] == title
    assert block.table.rows[0][2].text == text


def test_times_tell_how_they_were_measured(row, write_rows):
    folder = write_rows(row("web", "NN", 0, [0.9]))
    section = time_section(results_info(read_rows(folder / "rows.jsonl")))
    assert "Sampling is timed by the clock" in section.text
    assert "fitting and training by the processor" in section.text
