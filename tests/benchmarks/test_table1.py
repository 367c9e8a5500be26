import numpy as np
import pytest

from lodl.benchmarks import (
    METHODS,
    SCALES,
    SETUPS,
    choose,
    costs_markdown,
    table1_experiments,
    table1_info,
    table1_markdown,
    tuning_experiments,
)
from lodl.paper import MeanStd


def row(method="2-stage", domain="linear", **fields):
    return {
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
    } | fields


def test_a_cell_pools_the_runs_of_all_seeds():
    cell = table1_info([row(test=[-1.0, -0.9]), row(test=[-0.95])])["2-stage", "linear"]
    assert cell.n_runs == 3
    assert cell.ours.mean == pytest.approx(-0.95)
    assert cell.ours.std == pytest.approx(np.std([-1.0, -0.9, -0.95]))
    assert cell.paper == MeanStd(-0.95, 0.0)
    assert dict(cell.seconds) == {"sampling": 1.0, "fitting": 2.0, "training": 3.0}


def test_the_paper_has_a_figure_for_its_rows_only():
    cells = table1_info([row(method) for method in METHODS])
    without = [method for (method, _), cell in cells.items() if cell.paper is None]
    assert without == ["Random", "Optimal", "Constant", "ConvexDirectedQuadratic"]


def test_real_prices_are_compared_with_the_papers_portfolio():
    cell = table1_info([row(domain="portfolio-prices")])["2-stage", "portfolio-prices"]
    assert cell.paper == MeanStd(0.32, 0.02)


@pytest.mark.parametrize(
    ("ours", "apart"),
    [(MeanStd(-0.95, 0.0), False), (MeanStd(-0.7, 0.3), False), (MeanStd(0.9, 0.1), True)],
)
def test_figures_are_apart_where_their_intervals_do_not_meet(ours, apart):
    assert ours.is_apart_from(MeanStd(-0.95, 0.0)) is apart


def test_a_figure_that_rounds_to_zero_has_no_sign():
    assert str(MeanStd(-0.001, 0.04)) == "0.00 ± 0.04"
    assert str(MeanStd(-0.95, 0.0)) == "-0.95 ± 0.00"


def test_the_table_shows_ours_beside_the_papers_and_marks_what_differs():
    cells = table1_info([row(test=[-0.95, -0.95]), row("DFL", test=[-0.9, -0.9]), row("Random")])
    lines = table1_markdown(cells).splitlines()
    assert lines[0] == "| loss | Linear Model |"
    assert "| Random | 0.50 ± 0.50 |" in lines
    assert "| 2-stage | -0.95 ± 0.00 (-0.95 ± 0.00) |" in lines
    assert "| DFL | -0.90 ± 0.00 (0.83 ± 0.38) * |" in lines
    assert "| Linear Model | DFL | 10 | 1.0 | 2.0 | 3.0 |" in costs_markdown(cells)


def test_the_paper_scale_has_a_hundred_runs_of_every_cell():
    plan = table1_experiments(SCALES["paper"])
    assert len(plan) == 10 * len(METHODS) * len(SETUPS)
    assert all(e.n_initialisations == 10 and e.n_samples == 5000 for e in plan)
    assert len({(e.domain, e.method, e.seed) for e in plan}) == len(plan)


def test_tuning_tries_the_same_for_every_method_and_never_a_seed_of_the_table():
    plan = tuning_experiments(SETUPS, ["web"], 100)
    assert not {e.seed for e in plan} & {e.seed for e in table1_experiments(SCALES["paper"])}
    rates = {
        method: {e.learning_rate for e in plan if e.method == method}
        for method in {e.method for e in plan}
    }
    assert set(map(frozenset, rates.values())) == {frozenset(SETUPS["web"].learning_rates)}
    assert {e.sampler_name for e in plan if e.method == "Quadratic"} == {
        f"AllPerturbed({sampler.scale})" for sampler in SETUPS["web"].samplers
    }


def test_settings_are_chosen_by_validation_not_by_test():
    rows = [
        row("Quadratic", learning_rate=0.1, validation=[0.2, 0.4], test=[1.0]),
        row("Quadratic", learning_rate=0.01, validation=[0.5, 0.5], test=[0.0]),
        row("Quadratic", learning_rate=0.1, validation=[0.4], test=[1.0], sampler="other"),
        row("DFL", surrogate="soft", learning_rate=0.1, validation=[0.1], test=[1.0]),
        row("DFL", surrogate="hard", learning_rate=0.01, validation=[0.3], test=[0.0]),
        row("2-stage", learning_rate=0.1, validation=[-0.3], test=[0.0]),
        row("2-stage", learning_rate=0.01, validation=[-0.4], test=[1.0]),
    ]
    assert choose(rows) == {
        "linear": {
            "sampler": "AllPerturbed(1.0)",
            "surrogate": "hard",
            "learning_rates": {"Quadratic": 0.01, "DFL": 0.01, "2-stage": 0.1},
        }
    }


def test_one_sampler_is_chosen_for_all_learned_losses_by_their_mean():
    rows = [
        row("Quadratic", sampler="near", validation=[0.9]),
        row("Quadratic", sampler="far", validation=[0.5]),
        row("WeightedMSE", sampler="near", validation=[0.1]),
        row("WeightedMSE", sampler="far", validation=[0.6]),
    ]
    assert choose(rows)["linear"]["sampler"] == "far"
