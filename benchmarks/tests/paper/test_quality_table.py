import numpy as np
import pytest

from lodl._json import write_json
from lodl_benchmarks.pages import MeanStd, parse_row, read_json
from lodl_benchmarks.paper import QualityTable, table1, table2a, table2b


def row(method="2-stage", domain="linear", **fields):
    values = {
        "method": method,
        "domain": domain,
        "sampler": "AllPerturbed(1.0)",
        "n_samples": 5000,
        "learning_rate": 0.1,
        "test": [0.0, 1.0],
        "validation": [0.5],
        "oracle_calls": 10,
        "seconds_sampling": 1.0,
        "seconds_fitting": 2.0,
        "seconds_training": 3.0,
    }
    return parse_row(values | fields)


def cell(table, method, column):
    (found,) = [one for one in table.cells if (one.method, one.column) == (method, column)]
    return found


def test_a_cell_pools_the_runs_of_all_seeds():
    found = cell(table1([row(test=[-1.0, -0.9]), row(test=[-0.95])]), "2-stage", "linear")
    assert found.n_runs == 3
    assert found.ours.mean == pytest.approx(-0.95)
    assert found.ours.std == pytest.approx(np.std([-1.0, -0.9, -0.95]))
    assert found.paper == MeanStd(-0.95, 0.0)
    assert found.seconds == {"sampling": 1.0, "fitting": 2.0, "training": 3.0}


def test_a_method_with_several_numbers_of_samples_has_a_line_for_each_the_fewest_first():
    rows = [row("DecisionHinges", n_samples=n, test=[n / 100]) for n in (50, 20)]
    table = table1([row(), *rows])
    assert cell(table, "DecisionHinges", "linear").ours.mean == 0.2
    assert cell(table, "DecisionHinges, 50 samples", "linear").ours.mean == 0.5
    assert [line[0].text for line in table.table().rows][1:] == [
        "DecisionHinges",
        "DecisionHinges, 50 samples",
    ]


def test_the_paper_has_a_number_for_its_methods_only():
    methods = ["Random", "2-stage", "NN", "ConvexDirectedQuadratic"]
    table = table1([row(method) for method in methods])
    assert [one.paper is None for one in table.cells] == [True, False, False, True]


def test_real_prices_are_compared_with_the_papers_portfolio():
    found = cell(table1([row(domain="portfolio-prices")]), "2-stage", "portfolio-prices")
    assert found.paper == MeanStd(0.32, 0.02)


@pytest.mark.parametrize(
    ("ours", "apart"),
    [(MeanStd(-0.95, 0.0), False), (MeanStd(-0.7, 0.3), False), (MeanStd(0.9, 0.1), True)],
)
def test_numbers_are_apart_where_their_intervals_do_not_meet(ours, apart):
    assert ours.is_apart_from(MeanStd(-0.95, 0.0)) is apart


def test_a_number_that_rounds_to_zero_has_no_sign():
    assert str(MeanStd(-0.001, 0.04)) == "0.00 ± 0.04"
    assert str(MeanStd(-0.95, 0.0)) == "-0.95 ± 0.00"


def test_the_table_shows_ours_beside_the_papers_and_marks_what_differs():
    table = table1([row(test=[-0.95, -0.95]), row("DFL", test=[-0.9, -0.9]), row("Random")])
    assert table.table().markdown().splitlines() == [
        "| loss | Linear Model |",
        "| --- | --- |",
        "| Random | 0.50 ± 0.50 |",
        "| 2-stage | -0.95 ± 0.00 (-0.95 ± 0.00) |",
        "| DFL | -0.90 ± 0.00 (0.83 ± 0.38) * |",
    ]
    assert "| Linear Model | DFL | 10 | 1.0 | 2.0 | 3.0 |" in table.costs().markdown()


def test_table_2a_shows_samplers_side_by_side_with_the_papers():
    rows = [row("Quadratic", sampler="TwoPerturbed(0.1)"), row("NN", sampler="OnePerturbed(0.1)")]
    table = table2a([*rows, row("ConvexDirectedQuadratic", test=[1.0])])
    assert cell(table, "Quadratic", "TwoPerturbed").paper == MeanStd(0.88, 0.10)
    assert table.table().markdown().splitlines() == [
        "| loss | 1-perturbed | 2-perturbed | all-perturbed |",
        "| --- | --- | --- | --- |",
        "| NN | 0.50 ± 0.50 (0.86 ± 0.12) |  |  |",
        "| Quadratic |  | 0.50 ± 0.50 (0.88 ± 0.10) |  |",
        "| ConvexDirectedQuadratic |  |  | 1.00 ± 0.00 |",
    ]


def test_table_2b_compares_with_the_paper_only_at_the_same_number_of_samples():
    table = table2b([row("Quadratic", n_samples=n, test=[0.5, 0.7]) for n in (2000, 50)])
    assert table.table().markdown().splitlines() == [
        "| loss | 50 samples | 2,000 samples |",
        "| --- | --- | --- |",
        "| Quadratic | 0.60 ± 0.10 (0.68 ± 0.17) | 0.60 ± 0.10 |",
    ]


def test_a_table_comes_back_from_its_file(tmp_path):
    table = table2b([row("Quadratic", n_samples=50), row("2-stage", n_samples=7)])
    assert read_json(write_json(tmp_path / "t.json", table), QualityTable) == table
