import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lodl.domains import linear_model
from lodl.experiments import (
    SETUPS,
    CostSettings,
    figure_cost_info,
    figure_cost_markdown,
    measured_cores,
)
from lodl.experiments._figure_cost import cost_of_domain
from lodl.experiments._measure_cost import LODL, PartCosts, UnitCosts

COUNTS = {"N": 10, "B": 4, "K": 100, "T": 50}
UNITS = UnitCosts(surrogate_forward=0.02, surrogate_backward=0.03, learned_loss=0.005)


def costs(dfl=12.0, units=UNITS):
    one = PartCosts(1, 30.0, 10.0, {"2-stage": 2.0, "DFL": dfl, LODL: 4.0})
    two = PartCosts(2, 16.0, 6.0, {"2-stage": 2.0, "DFL": dfl, LODL: 4.0})
    return cost_of_domain([one, two], units, COUNTS)


def test_work_before_training_is_divided_by_the_cores_and_training_is_not():
    seconds = costs()["by_cores"]["seconds"]
    cores = np.arange(1, 65)
    np.testing.assert_allclose(seconds[LODL], 40 / cores + 4)
    assert set(seconds["2-stage"]) == {2.0}
    assert set(seconds["DFL"]) == {12.0}


def test_time_per_model_falls_towards_that_of_training():
    by_models = costs()["by_models"]
    assert by_models["models"] == list(range(1, 51))
    per_model = np.asarray(by_models["seconds"][LODL])
    assert (np.diff(per_model) < 0).all()
    assert per_model[0] == 44
    assert per_model[-1] == pytest.approx(4 + 40 / 50)


def test_at_the_break_even_the_two_cost_the_same():
    cost = costs()
    assert cost["break_even"] == 5
    assert cost["by_cores"]["seconds"][LODL][4] == cost["by_cores"]["seconds"]["DFL"][4]
    assert costs(dfl=3.0)["break_even"] is None


def test_what_was_measured_stays_as_measured():
    measured = costs()["measured"]
    assert [part["seconds"][LODL] for part in measured] == [44, 26]
    assert [part["seconds"]["DFL"] for part in measured] == [12, 12]


def test_the_papers_formula_with_unit_costs_gives_the_seconds_they_came_from():
    cost = costs()
    units = cost["units"]
    assert units["T_M"] == 2 / (50 * 4)
    assert units["T_O"] == 30 / (10 * 100)
    assert units["T_fit"] == 10 / (10 * 100)
    assert cost["formula"]["2-stage"] == pytest.approx(2)
    assert cost["formula"]["DFL"] == pytest.approx(2 + 200 * (0.02 + 0.03))
    assert cost["formula"][LODL] == pytest.approx(40 + 2 + 200 * 0.005)


@pytest.mark.parametrize(
    ("dfl", "words"),
    [(12.0, "from 5.0 cores"), (3.0, "never"), (100.0, "on one core, for a single model")],
)
def test_the_markdown_says_where_learned_losses_pay(dfl, words):
    text = figure_cost_markdown({"domains": [{"title": "Small", **costs(dfl)}]})
    assert words in text
    assert "| T_M | model, forward and backward | 10,000.0 µs |" in text
    assert "| Small | 2-stage | T B T_M | 2.0 | 2.0 | 2.0 |" in text


def test_cores_are_doubled_up_to_what_there_is():
    assert measured_cores(1) == (1,)
    assert measured_cores(2) == (1, 2)
    assert measured_cores(6) == (1, 2, 4)


def test_a_domain_is_measured_as_json_values():
    small = replace(
        SETUPS["linear"], build=partial(linear_model, sizes=(6, 4, 5), n_items=5), title="Small"
    )
    settings = CostSettings(n_samples=60, n_steps=3, cores=(1,), domains=("small",))
    info = json.loads(json.dumps(figure_cost_info(settings, {"small": small})))
    (domain,) = info["domains"]
    assert domain["counts"] == {"N": 10, "B": 6, "K": 60, "T": 3}
    assert all(value > 0 for value in domain["units"].values())
    (measured,) = domain["measured"]
    assert measured["sampling"] > 0
    assert measured["fitting"] > 0
    assert info["settings"] == {
        "n_samples": 60,
        "n_steps": 3,
        "cores": [1],
        "domains": ["small"],
    }
