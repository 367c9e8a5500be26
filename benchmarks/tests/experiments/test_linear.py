from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lodl_benchmarks.domains import linear_model
from lodl_benchmarks.experiments import (
    SETUPS,
    RunSize,
    linear_figure,
    linear_figure_experiments,
)
from lodl_benchmarks.quality import normalised_decision_quality
from lodl_benchmarks.runner import run

SMALL = replace(
    SETUPS["linear"],
    build=partial(linear_model, sizes=(6, 4, 30), n_items=4),
    training=replace(SETUPS["linear"].training, n_steps=60),
)


@pytest.fixture(scope="module")
def figure(tmp_path_factory):
    """The figure of a small run."""
    out = tmp_path_factory.mktemp("run")
    plan = linear_figure_experiments(RunSize(2, 2, 60), {"linear": SMALL})
    rows = run(plan, out, setups={"linear": SMALL}, progress=False)
    return linear_figure(plan, rows, setup=SMALL, out=out)


def test_every_method_has_a_line_per_seed_and_initialisation(figure):
    names = ["2-stage", "DFL", "DirectedQuadratic", "ConvexDirectedQuadratic"]
    assert [method.name for method in figure.methods] == names
    for method in figure.methods:
        assert np.shape(method.y_hat) == (4, len(figure.x))


def test_the_true_mapping_is_the_cubic_over_the_whole_range(figure):
    x = np.asarray(figure.x)
    assert (np.diff(x) > 0).all()
    assert x[0] < -0.9
    assert x[-1] > 0.9
    np.testing.assert_allclose(figure.y, 10 * x**3 - 6.5 * x, atol=2e-3)


def test_models_are_straight_lines(figure):
    for method in figure.methods:
        slopes = np.diff(method.y_hat, axis=1) / np.diff(figure.x)
        np.testing.assert_allclose(slopes - slopes[:, :1], 0, atol=5e-3)


def test_lines_and_qualities_are_of_the_same_models(figure):
    for method in figure.methods:
        for model, (y_hat, quality) in enumerate(zip(method.y_hat, method.quality, strict=True)):
            seed = model // 2  # two initialisations each
            direction = np.sign(y_hat[-1] - y_hat[0])
            assert quality == pytest.approx(quality_of_a_line(seed, direction), abs=1e-4)


def test_lines_that_rise_are_counted(figure):
    for method in figure.methods:
        slopes = [np.polyfit(figure.x, y_hat, deg=1)[0] for y_hat in method.y_hat]
        assert method.n_rising == sum(slope > 0 for slope in slopes)


def quality_of_a_line(seed, direction):
    """Returns the quality of any line that rises, or falls: only the order of items counts."""
    domain = SMALL.build(seed)
    test = domain.splits.test
    return normalised_decision_quality(
        domain.problem, direction * test.x[..., 0], test.y, random_state=seed
    )
