"""Losses made of decisions, for many instances: nothing is fitted, and nothing is held out."""

from dataclasses import dataclass

import numpy as np
import pytest

from lodl import domains
from lodl.evaluation import summarise
from lodl.losses import (
    DecisionHinges,
    DecisionRanking,
    FitStatus,
    WeightedMSE,
    fit,
    load_loss,
)
from lodl.oracle import Answers, Oracle
from lodl.samplers import AllPerturbed

FAMILIES = [DecisionHinges(), DecisionRanking()]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)


@pytest.fixture
def best_item():
    """Returns a maker of samples in which the cheapest item is chosen."""

    @dataclass(frozen=True)  # a local class, so that workers receive it by value
    class BestItem:
        y: np.ndarray
        d: np.ndarray

        @property
        def n_instances(self):
            return len(self.y)

        def select(self, indices):
            return BestItem(self.y[list(indices)], self.d[list(indices)])

        def __getitem__(self, index):
            y, y_hat, items = self.y[index], self.y[index] + self.d[index], np.eye(self.y.shape[1])
            chosen = y_hat.argmin(axis=1)
            return Answers(y, y_hat, y[chosen] - y.min(), chosen, items - items[y.argmin()])

        def provenance(self):
            return {}

    def make(n_instances=9, n_samples=20, dim=6, scale=1.0, seed=0):
        rng = np.random.default_rng(seed)
        y = rng.standard_normal((n_instances, dim))
        return BestItem(y, scale * rng.standard_normal((n_instances, n_samples, dim)))

    return make


@every_family
def test_all_decisions_are_in_the_loss_and_padding_ends_with_the_largest_number_of_them(
    family, best_item
):
    samples = best_item()
    loss = fit(samples, family)
    met = [
        np.unique(answers.decision[answers.regret > 0])
        for answers in (samples[k] for k in range(9))
    ]
    assert (
        loss.phi["slope"].any(axis=-1).sum(axis=1) == [len(decisions) for decisions in met]
    ).all()
    n_own = family.parameter_shapes(6)["slope"][0] - family.max_decisions  # the label's decision
    assert loss.phi["slope"].shape == (9, max(len(decisions) for decisions in met) + n_own, 6)
    for i, answers in enumerate(samples[k] for k in range(9)):
        alone = {name: rows[np.newaxis] for name, rows in family.fit(answers).items()}
        expected = family.value(alone, answers.d[np.newaxis])[0]
        actual = [loss.value(y_hat[np.newaxis], [i])[0] for y_hat in answers.y_hat]
        np.testing.assert_allclose(actual, expected, rtol=1e-9)


@every_family
def test_held_out_samples_judge_a_loss_made_of_the_others(family, best_item):
    samples = best_item(n_instances=40)
    errors = fit(samples, family, n_jobs=1).errors
    held_out = np.arange(20) % 5 == 4
    for i, answers in enumerate(samples[k] for k in range(40)):
        costly = answers.decision[held_out & (answers.regret > 0)]
        share = np.isin(costly, answers.decision[~held_out]).mean() if len(costly) else np.nan
        np.testing.assert_equal(errors.met_held_out[i], share)
    assert np.nanmedian(errors.rank_correlation_held_out) > 0.5
    assert (errors.explained_held_out == 1).all()  # the objective is affine in the label
    assert np.isnan(errors.mae_fitted).all()
    assert np.isnan(errors.r2_held_out).all()
    assert (errors.n_held_out == 4).all()


def test_the_summary_speaks_of_decisions_met_and_not_of_errors(best_item):
    summary = str(summarise(fit(best_item(), DecisionHinges())))
    assert "known decisions" in summary
    assert "R2" not in summary
    unknown = summarise(fit(best_item(), DecisionHinges(), holdout=0))
    assert np.isnan(unknown.rank_correlation)


@pytest.mark.parametrize("name", ["knapsack", "newsvendor"])
def test_slopes_explain_all_decisions_where_the_objective_is_affine_only(name):
    domain = getattr(domains, name)(seed=0, sizes=(30, 1, 1))
    part = domain.splits.train
    samples = Oracle(domain.problem, progress=False).sample(part.y, AllPerturbed(), 20, slopes=True)
    summary = summarise(fit(samples, DecisionHinges(), progress=False))
    is_local = not Oracle(domain.problem).is_affine(part.y)
    assert is_local == (name == "newsvendor")
    assert (summary.decisions_explained < 0.9) == is_local
    assert ("local slopes" in [finding.name for finding in summary.findings]) == is_local
    assert "more samples" not in str(summary)


@every_family
def test_the_bits_do_not_depend_on_the_number_of_workers(family, best_item):
    samples = best_item(n_instances=18)
    serial, parallel = (fit(samples, family, n_jobs=n_jobs) for n_jobs in (1, 2))
    for name in serial.phi:
        np.testing.assert_array_equal(serial.phi[name], parallel.phi[name])


@every_family
def test_an_instance_without_a_costly_decision_gets_a_weak_squared_error(family, best_item):
    samples = best_item()
    samples.d[4] = 0.0
    loss = fit(samples, family)
    assert loss.errors.status[4] == FitStatus.NOTHING_TO_DECIDE
    assert not loss.phi["slope"][4].any()
    assert (loss.gradient(samples.y + 1.0)[4] > 0).all()


@every_family
def test_a_loss_with_fewer_decisions_than_allowed_is_saved_and_loaded(family, best_item, tmp_path):
    loss = fit(best_item(scale=0.3, seed=1), family)
    assert loss.phi["slope"].shape[1] < family.max_decisions
    loss.save(tmp_path / "loss")
    y_hat = loss.y + np.random.default_rng(0).standard_normal(loss.y.shape)
    np.testing.assert_array_equal(load_loss(tmp_path / "loss").value(y_hat), loss.value(y_hat))


def test_a_family_of_regrets_needs_no_slopes_and_makes_no_use_of_them(best_item):
    loss = fit(best_item(), WeightedMSE())
    assert np.isnan(loss.errors.met_held_out).all()
    assert np.isfinite(loss.errors.mae_fitted).all()
