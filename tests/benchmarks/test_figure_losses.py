import json
from importlib.metadata import version

import numpy as np
import pytest

from lodl.benchmarks import LossesSettings, figure_losses_info


@pytest.fixture(scope="module")
def info():
    return figure_losses_info(LossesSettings(n_samples=300, n_grid=31))


@pytest.fixture(scope="module")
def losses(info):
    return {loss["name"]: loss for loss in info["losses"]}


def test_the_figure_is_json_values(info):
    assert json.loads(json.dumps(info)) == info


def test_the_true_decision_loss_is_one_exactly_where_b_is_picked(info, losses):
    a, b = np.meshgrid(info["axis"], info["axis"])
    np.testing.assert_array_equal(losses["decision loss"]["surface"], a > b)


def test_the_true_decision_loss_has_no_slope_and_all_others_lead_towards_the_label(losses):
    assert losses["decision loss"]["descent"] == [0, 0]
    for name, loss in losses.items():
        if name != "decision loss":
            towards_a, towards_b = loss["descent"]
            assert towards_a < 0 < towards_b, name


def test_the_soft_choice_is_a_logistic_of_the_difference(info, losses):
    a, b = np.meshgrid(info["axis"], info["axis"])
    expected = 1 / (1 + np.exp(-(a - b) / info["settings"]["epsilon"]))
    np.testing.assert_allclose(losses["DFL"]["surface"], expected, atol=1e-4)


def test_the_linear_surrogate_and_squared_error_agree_at_the_label_and_where_agents_swap(
    info, losses
):
    at = [info["line"].index(0.0), info["line"].index(1.0)]
    for name in ("linear", "2-stage"):
        assert [losses[name]["on_line"][i] for i in at] == [0, 1]


def test_every_learned_loss_is_there_and_zero_at_the_label(info, losses):
    learned = [loss for loss in info["losses"] if loss["kind"] == "learned"]
    assert len(learned) == 6
    at_label = (info["axis"].index(1.0), info["axis"].index(0.0))
    for loss in learned:
        assert np.asarray(loss["surface"])[at_label] == pytest.approx(0, abs=1e-3), loss["name"]


def test_the_line_is_a_cut_through_the_surface(info, losses):
    surface = np.asarray(losses["Quadratic"]["surface"])
    on_line = np.interp(info["axis"], info["line"], losses["Quadratic"]["on_line"])
    np.testing.assert_allclose(np.fliplr(surface).diagonal()[::-1], on_line, atol=1e-3)


def test_the_data_tell_what_they_were_made_with(info):
    assert info["settings"]["versions"]["lodl"] == version("lodl")
