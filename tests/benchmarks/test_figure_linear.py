from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from lodl.benchmarks import (
    SETUPS,
    ScaleOfRun,
    figure_linear_experiments,
    figure_linear_info,
    run,
)
from lodl.domains import linear_model
from lodl.evaluation import normalised_decision_quality

SMALL = replace(
    SETUPS["linear"],
    build=partial(linear_model, sizes=(6, 4, 30), n_items=6),
    training=replace(SETUPS["linear"].training, n_steps=100),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Rows of a small run, and the figure made from them."""
    out = tmp_path_factory.mktemp("run")
    plan = figure_linear_experiments(ScaleOfRun(2, 2, 100), SMALL)
    rows = run(plan, out, setups={"linear": SMALL}, progress=False)
    return rows, figure_linear_info(plan, rows, setup=SMALL, out=out)


def test_every_method_has_a_line_per_seed_and_initialisation(made):
    _, info = made
    names = ["2-stage", "DFL", "DirectedQuadratic", "ConvexDirectedQuadratic"]
    assert [method["name"] for method in info["methods"]] == names
    for method in info["methods"]:
        assert np.shape(method["y_hat"]) == (4, len(info["x"]))


def test_the_true_mapping_is_the_cubic_over_the_whole_range(made):
    _, info = made
    x = np.asarray(info["x"])
    assert (np.diff(x) > 0).all()
    assert x[0] < -0.9
    assert x[-1] > 0.9
    np.testing.assert_allclose(info["y"], 10 * x**3 - 6.5 * x, atol=2e-3)


def test_models_are_straight_lines(made):
    _, info = made
    for method in info["methods"]:
        slopes = np.diff(method["y_hat"], axis=1) / np.diff(info["x"])
        np.testing.assert_allclose(slopes - slopes[:, :1], 0, atol=5e-3)


def test_lines_and_qualities_are_of_the_same_models(made):
    _, info = made
    for method in info["methods"]:
        for model, (y_hat, quality) in enumerate(
            zip(method["y_hat"], method["quality"], strict=True)
        ):
            seed = model // 2  # two initialisations each
            direction = np.sign(y_hat[-1] - y_hat[0])
            assert quality == pytest.approx(quality_of_a_line(seed, direction), abs=1e-4)


def test_lines_that_rise_are_counted(made):
    _, info = made
    for method in info["methods"]:
        slopes = [np.polyfit(info["x"], y_hat, deg=1)[0] for y_hat in method["y_hat"]]
        assert method["n_rising"] == sum(slope > 0 for slope in slopes)


def quality_of_a_line(seed, direction):
    """Returns the quality of any line that rises, or falls: only the order of items counts."""
    domain = SMALL.build(seed)
    test = domain.splits.test
    return normalised_decision_quality(
        domain.problem, direction * test.x[..., 0], test.y, seed=seed
    )
