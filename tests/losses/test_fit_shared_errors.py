"""Held-out errors of shared losses, against a loss made without the held-out samples."""

import numpy as np
import pytest

from lodl import AllPerturbed, DecisionHinges, DecisionRanking, Problem
from lodl._arrays import rank_correlation
from lodl.domains import TopK
from lodl.errors import InvalidInputError
from lodl.evaluation import summarise
from lodl.losses import fit_shared
from lodl.oracle import Oracle

every_family = pytest.mark.parametrize("family", [DecisionHinges(), DecisionRanking()], ids=str)


def labels(n=25, dim=5):
    return np.random.default_rng(0).normal(size=(n, dim))


def samples_of(problem, y, n_samples=10, **options):
    oracle = Oracle(problem, progress=False, **options)
    return oracle.sample(y, AllPerturbed(1.0), n_samples, slopes=True)


def held_out_mask(n, n_samples, holdout=0.2):
    place = np.arange(n)[:, np.newaxis] + np.arange(n_samples)
    return np.floor((place + 1) * holdout) > np.floor(place * holdout)


@every_family
def test_parameters_do_not_depend_on_the_share_that_is_held_out(family):
    samples = samples_of(TopK(2), labels())
    phis = [fit_shared(samples, family, holdout=holdout).phi for holdout in (0.0, 0.2, 0.5)]
    for name in phis[0]:
        np.testing.assert_array_equal(phis[1][name], phis[0][name])
        np.testing.assert_array_equal(phis[2][name], phis[0][name])


@pytest.mark.parametrize("n_samples", [1, 3, 10])
def test_a_fifth_of_all_samples_is_held_out_however_few_an_instance_has(n_samples):
    errors = fit_shared(samples_of(TopK(2), labels(), n_samples), DecisionHinges()).errors
    assert errors.n_held_out.sum() == 25 * n_samples / 5
    assert (errors.n_fitted + errors.n_held_out == n_samples).all()


def test_decisions_are_met_if_a_label_or_a_fitted_sample_of_any_instance_led_to_them():
    samples = samples_of(TopK(3), labels(n=12, dim=9), n_samples=5)
    pool, held_out = samples.pool(), held_out_mask(12, 5)
    errors = fit_shared(samples, DecisionHinges()).errors
    known = {*pool.met[:, 0], *pool.met[:, 1:][~held_out]}
    for i in range(12):
        rows = held_out[i] & (pool.regret[i] > 0)
        share = [decision in known for decision in pool.met[i, 1:][rows]]
        np.testing.assert_equal(errors.met_held_out[i], np.mean(share) if share else np.nan)
    assert 0 < np.nanmean(errors.met_held_out) < 1


def test_ranks_are_those_of_a_loss_without_the_held_out_decisions():
    n, n_samples = 12, 20
    samples = samples_of(TopK(3), labels(n, dim=7), n_samples)
    pool, held_out = samples.pool(), held_out_mask(n, n_samples)
    known = np.unique(np.concatenate([pool.met[:, 0], pool.met[:, 1:][~held_out]]))
    assert len(known) < len(pool) <= 100
    errors = fit_shared(samples, DecisionHinges(min_weight=0.0)).errors
    for i, answers in enumerate(samples):
        regret = pool.regrets(np.tile(known, (n, 1)))[i]
        slope = pool.gradient[known] - pool.gradient[pool.met[i, 0]]
        d = answers.d[held_out[i]]
        value = np.maximum((regret - 2 * (regret + d @ slope.T)).max(axis=1), 0.0)
        expected = rank_correlation(value, answers.regret[held_out[i]])
        np.testing.assert_allclose(errors.rank_correlation_held_out[i], expected)


@every_family
def test_a_linear_objective_is_explained_and_has_no_absolute_errors(family):
    errors = fit_shared(samples_of(TopK(1), labels(n=40, dim=12)), family).errors
    assert np.nanmean(errors.rank_correlation_held_out) > 0.2
    assert (errors.explained_held_out[errors.n_held_out > 0] == 1).all()
    assert np.isnan(errors.mae_held_out).all()


class Nearest(Problem):
    """The decision is the prediction itself, so that no two samples lead to the same one."""

    sense = "min"

    def solve(self, y_hat, context):
        return y_hat / np.linalg.norm(y_hat)

    def objective(self, z, y, context):
        return float(-z @ y)


def test_decisions_that_are_never_repeated_are_not_met():
    errors = fit_shared(samples_of(Nearest(), labels()), DecisionHinges()).errors
    assert (errors.met_held_out == 0).all()
    assert (errors.explained_held_out == 1).all()  # the objective is linear in the label


class Square(Nearest):
    """An objective that is not affine in the label."""

    def solve(self, y_hat, context):
        return y_hat

    def objective(self, z, y, context):
        return float(np.square(z - y).sum())


def test_slopes_that_hold_near_the_label_only_do_not_explain_decisions():
    errors = fit_shared(samples_of(Square(), labels()), DecisionHinges()).errors
    assert np.nanmean(errors.explained_held_out) < 0.5


def test_the_summary_of_a_shared_loss_has_held_out_numbers():
    summary = summarise(fit_shared(samples_of(TopK(2), labels()), DecisionHinges()))
    assert summary.rank_correlation > 0.2
    assert summary.decisions_explained == 1
    assert summary.findings == ()
    assert summary.n_samples == 10


def test_failed_samples_are_neither_fitted_nor_held_out():
    class Moody(TopK):
        def solve_many(self, y_hats, context=None):
            if (y_hats[:, 0] > 1.5).any():
                raise ValueError("too large")
            return super().solve_many(y_hats, context)

        def solve(self, y_hat, context=None):
            return self.solve_many(y_hat[np.newaxis])[0]

    samples = samples_of(Moody(2), labels(), on_failure="skip", max_failure_rate=1.0)
    assert samples.n_failures > 0
    errors = fit_shared(samples, DecisionHinges()).errors
    counts = [len(samples[i].regret) for i in range(25)]
    assert (errors.n_fitted + errors.n_held_out).tolist() == counts


def test_nothing_is_held_out_on_request_and_a_bad_share_is_refused():
    samples = samples_of(TopK(2), labels())
    errors = fit_shared(samples, DecisionHinges(), holdout=0.0).errors
    assert not errors.n_held_out.any()
    assert np.isnan(errors.rank_correlation_held_out).all()
    with pytest.raises(
        InvalidInputError, match="`holdout` must be a number of at least 0 and below 1"
    ):
        fit_shared(samples, DecisionHinges(), holdout=1.0)
