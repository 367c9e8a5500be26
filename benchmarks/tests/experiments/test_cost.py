from dataclasses import replace
from functools import partial

import pytest

from lodl._json import write_json
from lodl_benchmarks.domains import linear_model
from lodl_benchmarks.experiments import SETUPS, cost_figure, cost_settings
from lodl_benchmarks.pages import read_json
from lodl_benchmarks.paper import CostFigure


@pytest.mark.parametrize(("n_jobs", "cores"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4))])
def test_cores_are_doubled_up_to_what_there_is(n_jobs, cores):
    assert cost_settings((60, 3), n_jobs).cores == cores


def test_a_domain_is_measured_and_comes_back_from_its_file(tmp_path):
    small = replace(
        SETUPS["linear"],
        build=partial(linear_model, sizes=(6, 4, 5), n_items=5),
        training=replace(SETUPS["linear"].training, batch_size=3),
        title="Small",
    )
    settings = replace(cost_settings((60, 3), 1), domains=("small",))
    figure = cost_figure(settings, {"small": small})
    assert figure.settings == settings
    (domain,) = figure.domains
    assert domain.counts == {"N": 10, "B": 3, "K": 60, "T": 3}
    assert min(*domain.units.values(), *domain.training.values()) > 0
    assert min(domain.measured[0].sampling, domain.measured[0].fitting) > 0
    assert read_json(write_json(tmp_path / "cost.json", figure), CostFigure) == figure


def test_other_versions_are_other_settings(monkeypatch):
    before = cost_settings((60, 3), 1)
    assert before == cost_settings((60, 3), 1)
    monkeypatch.setattr(
        "lodl_benchmarks.runner._complete_rows.version", lambda name: f"{name} of tomorrow"
    )
    assert before != cost_settings((60, 3), 1)
