"""The whole step: samples of many instances in, a learned loss out."""

import logging
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
import scipy.stats

from lodl.errors import InvalidInputError
from lodl.losses import (
    DirectedQuadratic,
    DirectedWeightedMSE,
    FitStatus,
    NeuralLoss,
    Quadratic,
    WeightedMSE,
    fit,
)
from lodl.oracle import Answers

FAMILIES = [
    WeightedMSE(),
    DirectedWeightedMSE(),
    Quadratic(),
    DirectedQuadratic(),
    NeuralLoss(n_units=10),
]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)
every_label_shape = pytest.mark.parametrize("label_shape", [(1,), (4,), (2, 3), (2, 1, 2)], ids=str)


@pytest.fixture(autouse=True)
def _torch_for_the_network(request):
    family = getattr(request.node, "callspec", None) and request.node.callspec.params.get("family")
    if isinstance(family, NeuralLoss):
        pytest.importorskip("torch")


@pytest.fixture
def draw(make_samples):
    """Returns a maker of samples in which the best item is chosen."""

    def draw(n_instances=3, n_samples=50, label_shape=(4,), seed=0):
        rng = np.random.default_rng(seed)
        d = rng.standard_normal((n_instances, n_samples, *label_shape))
        flat = d.reshape(n_instances, n_samples, -1)
        worth = rng.random((n_instances, 1, flat.shape[-1]))
        chosen = (worth + flat).argmax(axis=-1)
        if flat.shape[-1] == 1:
            return make_samples(d, np.square(flat[..., 0]))
        got = np.take_along_axis(np.broadcast_to(worth, flat.shape), chosen[..., None], axis=-1)
        return make_samples(d, worth.max(axis=-1) - got[..., 0])

    return draw


def changed(make_samples, samples, instance, regret):
    """Returns samples with other regrets for one instance."""
    regrets = samples.regret.copy()
    regrets[instance] = regret
    return make_samples(samples.d, regrets)


@every_family
@every_label_shape
def test_any_label_shape_is_fitted(family, label_shape, draw):
    samples = draw(label_shape=label_shape)
    loss = fit(samples, family)
    assert loss.label_shape == label_shape
    assert (loss.errors.status == FitStatus.FITTED).all()
    np.testing.assert_array_equal(loss.y, samples.y)
    value = loss.value(samples.y + samples.d[:, 0])
    assert value.shape == (3,)
    assert np.isfinite(value).all()


@every_family
def test_each_instance_has_the_parameters_of_its_own_fitted_samples(family, draw):
    samples = draw()
    loss = fit(samples, family)
    fitted = np.arange(50) % 5 != 4
    y_hat = samples.y[1] + samples.d[1, fitted]
    expected = family.fit(Answers(samples.y[1], y_hat, samples.regret[1, fitted]))
    for name, value in expected.items():
        np.testing.assert_allclose(loss.phi[name][1], value, rtol=1e-4, atol=1e-6)


@every_family
def test_fit_errors_are_those_of_a_direct_computation(family, draw):
    samples = draw()
    loss = fit(samples, family)
    for i in range(3):
        values = np.array(
            [loss.value((samples.y[i] + d)[np.newaxis], [i])[0] for d in samples.d[i]]
        )
        held_out = np.arange(50) % 5 == 4
        gap, regret = np.abs(values - samples.regret[i]), samples.regret[i][held_out]
        ranks = scipy.stats.spearmanr(values[held_out], regret).statistic
        errors = loss.errors
        assert errors.mae_fitted[i] == pytest.approx(gap[~held_out].mean())
        assert errors.mae_held_out[i] == pytest.approx(gap[held_out].mean())
        assert errors.r2_held_out[i] == pytest.approx(
            1 - np.square(gap[held_out]).sum() / np.square(regret - regret.mean()).sum()
        )
        assert errors.rank_correlation_held_out[i] == pytest.approx(ranks)
        assert errors.mean_regret[i] == pytest.approx(samples.regret[i].mean())
        assert (errors.n_fitted[i], errors.n_held_out[i]) == (40, 10)


@pytest.mark.parametrize("holdout", [0.1, 0.2, 0.3, 0.5])
def test_more_samples_change_no_sample_from_fitted_to_held_out(holdout, draw, make_samples):
    samples = draw(n_samples=60)
    sizes = []
    for n_samples in range(10, 61, 10):
        prefix = make_samples(samples.d[:, :n_samples], samples.regret[:, :n_samples])
        errors = fit(prefix, WeightedMSE(), holdout=holdout).errors
        sizes.append((errors.n_fitted[0], errors.n_held_out[0]))
    growth = np.diff(sizes, axis=0)
    assert (growth >= 0).all()
    assert sizes[-1][1] == pytest.approx(60 * holdout, abs=1)


def test_without_held_out_samples_their_errors_are_not_defined(draw):
    errors = fit(draw(), WeightedMSE(), holdout=0).errors
    assert (errors.n_held_out == 0).all()
    for figure in (errors.mae_held_out, errors.r2_held_out, errors.rank_correlation_held_out):
        assert np.isnan(figure).all()
    assert np.isfinite(errors.mae_fitted).all()


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=pytest.mark.slow) if isinstance(family, NeuralLoss) else family
        for family in FAMILIES  # workers import torch for a network, which takes long
    ],
    ids=str,
)
def test_the_result_has_the_same_bits_for_any_number_of_workers(family, draw):
    n_samples = 20 if isinstance(family, NeuralLoss) else 200  # enough for a network to differ
    samples = draw(n_instances=18, n_samples=n_samples, label_shape=(3, 4))
    serial, parallel = (fit(samples, family, n_jobs=n_jobs) for n_jobs in (1, 2))
    for name in serial.phi:
        np.testing.assert_array_equal(serial.phi[name], parallel.phi[name])
    for name, figures in serial.errors.arrays().items():
        np.testing.assert_array_equal(figures, parallel.errors.arrays()[name])


def test_failed_samples_are_left_out(draw, make_samples):
    samples = draw(n_samples=60)
    failed = np.arange(60) % 3 == 0
    with_failures = changed(make_samples, samples, 1, np.where(failed, np.nan, samples.regret[1]))
    loss = fit(with_failures, WeightedMSE(min_weight=0), holdout=0)
    expected = WeightedMSE(min_weight=0).fit(samples[1].take(~failed))
    np.testing.assert_allclose(loss.phi["w"][1], expected["w"], atol=1e-12)
    assert loss.errors.n_fitted[1] == 40
    assert loss.errors.mean_regret[1] == pytest.approx(samples.regret[1, ~failed].mean())


@every_family
@pytest.mark.parametrize(
    ("regret", "status"),
    [
        (0.0, FitStatus.NOTHING_TO_DECIDE),
        (1e-17, FitStatus.NOTHING_TO_DECIDE),
        (np.nan, FitStatus.NO_SAMPLES),
    ],
)
def test_an_instance_with_nothing_to_fit_says_so(family, regret, status, draw, make_samples):
    samples = changed(make_samples, draw(), 1, regret)
    loss = fit(samples, family)
    assert loss.errors.status.tolist() == [FitStatus.FITTED, status, FitStatus.FITTED]
    assert np.isnan(loss.errors.mae_fitted[1])
    assert np.isfinite(loss.errors.mae_fitted[[0, 2]]).all()
    slope = loss.gradient(samples.y + 1.0)[1]
    assert (slope > 0).all()


@pytest.mark.parametrize(("min_weight", "share"), [(0.0, 1e-3), (0.05, 0.05)])
def test_the_stand_in_costs_a_small_share_of_the_typical_loss(
    min_weight, share, draw, make_samples
):
    samples = draw()
    regret = np.zeros((3, 50))
    regret[0] = 2.0 * np.square(samples.d[0]).sum(axis=-1)
    regret[2] = 4.0 * np.square(samples.d[2]).sum(axis=-1)
    loss = fit(make_samples(samples.d, regret), WeightedMSE(min_weight=min_weight), holdout=0)
    typical = (regret[0].mean() + regret[2].mean()) / 2
    stand_in = (loss.phi["w"][1] * np.square(samples.d[1])).sum(axis=-1).mean()
    assert stand_in == pytest.approx(share * typical, rel=0.1)


def test_the_stand_in_of_a_set_with_nothing_to_decide_costs_a_share_of_one(
    draw, make_samples, caplog
):
    samples = draw()
    with caplog.at_level(logging.INFO, logger="lodl.losses"):
        loss = fit(make_samples(samples.d, 0 * samples.regret), Quadratic(min_weight=0.01))
    costs = (loss.phi["floor"][:, np.newaxis] * np.square(samples.d)).sum(axis=-1).mean(axis=1)
    np.testing.assert_allclose(costs, 0.01, rtol=0.5)
    assert "3 of 3 instances have nothing to fit" in caplog.text
    assert len(caplog.records) == 1


@every_family
def test_candidates_that_never_leave_the_label_teach_nothing(family, draw, make_samples):
    samples = draw()
    d = samples.d.copy()
    d[1] = 0.0
    status = fit(make_samples(d, samples.regret), family).errors.status
    assert status.tolist() == [FitStatus.FITTED, FitStatus.NOTHING_TO_DECIDE, FitStatus.FITTED]


def test_regrets_that_are_never_positive_teach_nothing(draw, make_samples):
    samples = draw()
    loss = fit(changed(make_samples, samples, 1, -samples.regret[1]), DirectedWeightedMSE())
    assert loss.errors.status[1] == FitStatus.NOTHING_TO_DECIDE
    assert (loss.phi["w_plus"][1] > 0).all()


def test_provenance_is_that_of_the_samples_and_of_the_fit(draw):
    assert dict(fit(draw(), WeightedMSE(), holdout=0.1).provenance) == {
        "sampler": "by hand",
        "holdout": 0.1,
        "lodl": version("lodl"),
    }


def test_a_family_of_ones_own_is_fitted_in_workers_too(draw):
    class Constant(WeightedMSE):
        def fit(self, answers):
            return {"w": np.full(answers.y.size, 7.0)}

    loss = fit(draw(n_instances=9), Constant(), n_jobs=2)
    assert (loss.phi["w"] == 7.0).all()


@pytest.mark.slow  # new processes import everything
def test_a_family_of_a_script_is_fitted_in_workers_saved_and_loaded(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert run.stdout == "Sevens() 7.0\n", run.stderr


SCRIPT = """
from dataclasses import dataclass
import numpy as np
import lodl
from lodl.domains import TopK

@dataclass(frozen=True)
class Sevens(lodl.losses.Family):
    is_convex = True
    non_negative = ("w",)

    def parameter_shapes(self, dim):
        return {"w": (dim,)}

    def value(self, phi, d):
        return (phi["w"][:, None] * d * d).sum(-1)

    def gradient(self, phi, d):
        return 2 * phi["w"][:, None] * d

    def curvature(self, phi, d):
        return 2 * phi["w"][:, None] + 0 * d

    def fit(self, answers):
        return {"w": np.full(answers.y.size, 7.0)}

    def fallback(self, *, cost, scale):
        return {"w": cost / (len(scale) * scale**2)}

if __name__ == "__main__":
    y = np.random.default_rng(0).random((20, 3))
    samples = lodl.Oracle(TopK(1)).sample(y, n_samples=9)
    lodl.losses.fit(samples, Sevens(), n_jobs=2).save("loss")
    loss = lodl.load_loss("loss", y)
    print(loss.family, loss.phi["w"][7, 0])
"""


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (WeightedMSE, r"got the class WeightedMSE\. Call it: `WeightedMSE\(\.\.\.\)`"),
        ("quadratic", r"must be a loss family such as .*got 'quadratic'"),
        (Quadratic(rank=9), r"`rank` must be at most"),
    ],
)
def test_what_cannot_be_fitted_is_refused_at_once(family, message, draw):
    with pytest.raises(InvalidInputError, match=message):
        fit(draw(), family)


@pytest.mark.parametrize(
    "phi", [{"w": 7.0}, {"v": np.ones(4)}, {"w": np.ones(3)}], ids=["number", "name", "shape"]
)
def test_parameters_of_ones_own_fit_are_checked(phi, draw):
    class Wrong(WeightedMSE):
        def fit(self, answers):
            return phi

    with pytest.raises(InvalidInputError, match=r"The fit of .*Wrong.* must return parameters"):
        fit(draw(), Wrong())


@pytest.mark.parametrize("holdout", [-0.1, 1.0, float("nan")])
def test_a_holdout_that_is_no_share_is_refused(holdout, draw):
    with pytest.raises(
        InvalidInputError, match="`holdout` must be a number of at least 0 and below 1"
    ):
        fit(draw(), WeightedMSE(), holdout=holdout)
