import numpy as np
import pytest

from lodl._json import write_json
from lodl_benchmarks.experiments import losses_figure
from lodl_benchmarks.pages import read_json
from lodl_benchmarks.paper import LossesFigure, LossesSettings


@pytest.fixture(scope="module")
def figure():
    return losses_figure(LossesSettings(n_samples=300, n_grid=31))


@pytest.fixture(scope="module")
def losses(figure):
    return {loss.name: loss for loss in figure.losses}


def test_the_figure_comes_back_from_its_file(figure, tmp_path):
    assert read_json(write_json(tmp_path / "losses.json", figure), LossesFigure) == figure


def test_the_true_decision_loss_is_one_exactly_where_b_is_picked(figure, losses):
    a, b = np.meshgrid(figure.axis, figure.axis)
    np.testing.assert_array_equal(losses["decision loss"].surface, a > b)


def test_the_true_decision_loss_has_no_slope_and_all_others_lead_towards_the_label(losses):
    assert losses["decision loss"].descent == (0, 0)
    for name, loss in losses.items():
        if name != "decision loss":
            towards_a, towards_b = loss.descent
            assert towards_a < 0 < towards_b, name


def test_the_soft_choice_is_a_logistic_of_the_difference(figure, losses):
    a, b = np.meshgrid(figure.axis, figure.axis)
    expected = 1 / (1 + np.exp(-(a - b) / figure.settings.epsilon))
    np.testing.assert_allclose(losses["DFL"].surface, expected, atol=1e-4)


def test_the_linear_surrogate_and_squared_error_agree_at_the_label_and_where_agents_swap(
    figure, losses
):
    at = [figure.line.index(0.0), figure.line.index(1.0)]
    for name in ("linear", "2-stage"):
        assert [losses[name].on_line[i] for i in at] == [0, 1]


def test_every_learned_loss_is_there_and_zero_at_the_label(figure, losses):
    learned = [loss for loss in figure.losses if loss.kind == "learned"]
    assert len(learned) == 6
    at_label = (figure.axis.index(1.0), figure.axis.index(0.0))
    for loss in learned:
        assert np.asarray(loss.surface)[at_label] == pytest.approx(0, abs=1e-3), loss.name


def test_the_line_is_a_cut_through_the_surface(figure, losses):
    surface = np.asarray(losses["Quadratic"].surface)
    on_line = np.interp(figure.axis, figure.line, losses["Quadratic"].on_line)
    np.testing.assert_allclose(np.fliplr(surface).diagonal()[::-1], on_line, atol=1e-3)
