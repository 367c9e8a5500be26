"""The units of a shared loss, and what it knows about a prediction, against brute force."""

import numpy as np
import pytest

from lodl import AllPerturbed, DecisionHinges, DecisionRanking, Problem
from lodl.domains import TopK
from lodl.errors import InvalidInputError
from lodl.losses import FitStatus, _fit_shared, fit_shared
from lodl.oracle import Oracle

HINGES = DecisionHinges(min_weight=0.0)
SQUARED = DecisionHinges(min_weight=0.0, squared_error=1.0)


def labels(n=30, dim=8):
    return np.random.default_rng(1).normal(size=(n, dim)) * np.linspace(1, 3, dim)


def samples_of(problem, y, n_samples=4, scale="auto", **options):
    oracle = Oracle(problem, progress=False, **options)
    return oracle.sample(y, AllPerturbed(scale), n_samples, slopes=True)


def squared_error(samples, d, **options):
    """Return what the squared error in a shared loss adds for errors `d`."""
    losses = [fit_shared(samples, family, **options) for family in (SQUARED, HINGES)]
    with_it, without = (loss.value(samples.y + d) for loss in losses)
    return with_it - without


def unit_of(problem, y):
    """Return 0.4 of the mean regret of one label's decision at the others."""
    zs = np.array([problem.solve(label, None) for label in y])
    cost = np.array([[-problem.objective(z, label, None) for z in zs] for label in y])
    return 0.4 * (cost - np.diag(cost)[:, np.newaxis]).mean()


def mean_regrets(samples):
    return np.array([np.maximum(answers.regret, 0.0).mean() for answers in samples])


@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("n_samples", [0, 4])
def test_a_prediction_as_wrong_as_is_typical_costs_one_unit(offset, n_samples):
    y = labels()
    y[:3] *= 0.001  # hardly anything is at stake
    unit = unit_of(TopK(3), y)
    y += offset
    samples = samples_of(TopK(3), y, n_samples)
    actual = squared_error(samples, np.tile(y.std(axis=0), (len(y), 1)))
    np.testing.assert_allclose(actual, unit, rtol=1e-6)


def test_a_typical_error_is_that_of_all_points_at_which_decisions_are_taken():
    y = labels()
    residual = np.random.default_rng(2).normal(size=y.shape)
    samples = samples_of(TopK(3), y)
    points = [np.broadcast_to(y.std(axis=0), y.shape), residual, 2 * residual]
    typical = np.sqrt(np.mean(np.square(points), axis=0))
    actual = squared_error(samples, typical, at=y + residual)
    np.testing.assert_allclose(actual, unit_of(TopK(3), y))


@pytest.mark.parametrize(("n_constant", "unit"), [(1, 1.0), (8, 1.0), (8, 1e6)])
def test_a_label_that_never_changes_has_the_typical_error_of_the_others_or_one(n_constant, unit):
    y = labels()
    y[:, :n_constant] = unit * np.geomspace(1e-6, 1, n_constant)
    y[::2, :n_constant] = np.nextafter(y[::2, :n_constant], np.inf)  # but for its last digit
    samples = samples_of(TopK(3), y, scale=unit)
    typical = y.std(axis=0)
    typical[:n_constant] = np.median(typical[1:]) if n_constant == 1 else 1.0
    actual = squared_error(samples, np.tile(typical, (30, 1)))
    # Labels that are all the same have no regret at each other; that of samples is the unit then.
    expected = unit_of(TopK(3), y) if n_constant == 1 else mean_regrets(samples).mean()
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_where_a_model_predicts_the_loss_is_as_large_as_with_all_decisions(monkeypatch):
    """The hinge most violated at a prediction is that of the decision for 2 y_hat - y."""
    y = labels()
    y_hat = y + 3 * np.random.default_rng(2).normal(size=y.shape)
    samples = samples_of(TopK(3), y, n_samples=3)
    pool = samples.pool()
    assert len(pool) > 30
    monkeypatch.setattr(_fit_shared, "_N_ALL_TAKEN", 0)
    monkeypatch.setattr(_fit_shared, "_N_NEAREST", 2)
    loss = fit_shared(samples, HINGES, at=y_hat)
    assert loss.phi["slope"].shape[1] < 12  # most decisions are left out
    beyond, best = 2 * y_hat - y, pool.gradient[pool.met[:, 0]]
    spo_plus = (beyond * best).sum(axis=1) - (beyond @ pool.gradient.T).min(axis=1)
    np.testing.assert_allclose(loss.value(y_hat), spo_plus, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("gap", [0.0, 1e-4])
def test_a_tie_costs_nothing_and_a_small_regret_is_no_tie(gap, unit):
    y = labels(dim=4)
    y[:, 1] = y[:, 0] + gap
    y_hat = y + np.random.default_rng(2).normal(size=y.shape)
    zs = np.eye(4)
    best = zs[np.argmax(y @ zs.T, axis=1)]
    spo_plus = ((2 * y_hat - y) @ zs.T).max(axis=1) - ((2 * y_hat - y) * best).sum(axis=1)
    loss = fit_shared(samples_of(TopK(1), unit * y, n_samples=20), HINGES)
    np.testing.assert_allclose(loss.value(unit * y_hat) / unit, spo_plus, atol=1e-9)


def test_regrets_of_rounding_are_ties():
    y = labels(dim=4)
    y[:, 1] = y[:, 0] * (1 + 1e-13)
    loss = fit_shared(samples_of(TopK(1), y, n_samples=20), HINGES)
    regret = loss.phi["regret"]
    assert (regret[regret > 0] > 1e-9 * loss.errors.mean_regret.mean()).all()


def test_all_decisions_are_taken_if_they_are_few_else_the_nearest(monkeypatch):
    y = labels()
    y_hat = y + np.random.default_rng(2).normal(size=y.shape)
    samples = samples_of(TopK(3), y, n_samples=20)
    pool = samples.pool()
    monkeypatch.setattr(_fit_shared, "_N_ALL_TAKEN", len(pool))
    slope = fit_shared(samples, HINGES, at=y_hat).phi["slope"]
    assert slope.shape == (len(y), len(pool), 8)
    assert slope.decision is None
    monkeypatch.setattr(_fit_shared, "_N_ALL_TAKEN", len(pool) - 1)
    monkeypatch.setattr(_fit_shared, "_N_NEAREST", 5)
    slope = fit_shared(samples, HINGES, at=y_hat).phi["slope"]
    np.testing.assert_array_equal(slope.decision, pool.nearest(y_hat, 5))


def test_one_answer_an_instance_is_enough():
    y = labels()
    samples = samples_of(TopK(3), y, n_samples=1)
    loss = fit_shared(samples, DecisionRanking(temperature=0.5))
    np.testing.assert_allclose(loss.errors.mean_regret, [answers.regret[0] for answers in samples])
    np.testing.assert_allclose(loss.phi["t"], 0.5 * unit_of(TopK(3), y))
    assert (loss.errors.n_fitted + loss.errors.n_held_out == 1).all()


class Closed(TopK):
    """Has no answer for small first items."""

    def solve_many(self, y_hats, context):
        if (y_hats[:, 0] < -3).any():
            raise ValueError("closed")
        return super().solve_many(y_hats, context)


def test_instances_without_an_answer_do_not_count_in_the_temperature():
    y = labels()
    y[5, 0] = -3.5
    options = {"on_failure": "skip", "max_failure_rate": 1.0}
    loss = fit_shared(samples_of(Closed(3), y, **options), DecisionRanking(temperature=0.5))
    is_known = loss.errors.status == FitStatus.FITTED
    assert not is_known[5]
    assert is_known.sum() > 20
    expected = 0.5 * unit_of(TopK(3), y[np.arange(30) != 5])
    np.testing.assert_allclose(loss.phi["t"][is_known], expected)


class Greedy(Problem):
    """Takes the first item that is good enough, so that predictions may do better than labels."""

    sense = "max"

    def solve(self, y_hat, context):
        return int(np.argmax(y_hat > 0))

    def objective(self, z, y, context):
        return y[z]


def test_regrets_below_zero_of_a_heuristic_do_not_make_up_for_others():
    samples = samples_of(Greedy(), labels(), n_samples=10)
    assert any((answers.regret < 0).any() for answers in samples)
    loss = fit_shared(samples, DecisionHinges())
    np.testing.assert_allclose(loss.errors.mean_regret, mean_regrets(samples))


def test_predictions_of_another_shape_are_refused_by_name():
    with pytest.raises(InvalidInputError, match=r"`at` must have the labels' shape \(30, 8\)"):
        fit_shared(samples_of(TopK(3), labels()), HINGES, at=np.zeros((29, 8)))


def test_a_shared_loss_says_that_it_is_shared():
    assert fit_shared(samples_of(TopK(3), labels()), HINGES).provenance["shared"] is True
