"""Losses made of the decisions of all instances, against brute force."""

import logging
from itertools import combinations

import numpy as np
import pytest

from lodl import AllPerturbed, DecisionHinges, DecisionRanking, Problem, WeightedMSE
from lodl.domains import Knapsack, ShortestPath, TopK
from lodl.errors import InvalidInputError
from lodl.losses import FitStatus, _fit_shared, fit, fit_shared
from lodl.oracle import Oracle, _pool


class Menu(Problem):
    """Order some of four dishes: each has a price to predict, and sending for it costs a fee."""

    sense = "min"
    menus = tuple(np.array(dishes) for n in (1, 2) for dishes in combinations(range(4), n))
    n_calls = 0

    def _costs(self, y):
        return [y[list(menu)].sum() + 0.3 * len(menu) ** 2 - 1.5 * len(menu) for menu in self.menus]

    def solve(self, y_hat, context):
        type(self).n_calls += 1
        return self.menus[int(np.argmin(self._costs(y_hat)))]

    def objective(self, z, y, context):
        return y[z].sum() + 0.3 * len(z) ** 2 - 1.5 * len(z)


PROBLEMS = {
    "path": (ShortestPath((3, 3)), 12),
    "knapsack": (Knapsack((10.0,), ((3.0, 4.0, 5.0, 6.0, 2.0),)), 5),
    "affine": (Menu(), 4),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


SKIPS = {"on_failure": "skip", "max_failure_rate": 1.0}


def labels(dim, n=30):
    return np.random.default_rng(1).uniform(0.5, 1.5, size=(n, dim))


def samples_of(problem, y, n_samples=4, **options):
    skips = {name: options.pop(name) for name in SKIPS if name in options}
    return Oracle(problem, progress=False, **skips).sample(
        y, **{"slopes": True, "n_samples": n_samples} | options
    )


@every_problem
def test_a_decision_of_one_instance_has_its_true_regret_at_every_other(name):
    problem, dim = PROBLEMS[name]
    y, sign = labels(dim), 1 if problem.sense == "min" else -1
    samples = samples_of(problem, y)
    pool = samples.pool()
    lender, borrower = 3, 17
    zs = [problem.solve(y_hat, None) for y_hat in samples[lender].y_hat]
    best = sign * problem.objective(problem.solve(y[borrower], None), y[borrower], None)
    truth = [sign * problem.objective(z, y[borrower], None) - best for z in zs]
    actual = pool.regrets(np.tile(pool.met[lender, 1:], (len(y), 1)))[borrower]
    np.testing.assert_allclose(actual, truth, atol=1e-9)


@every_problem
def test_own_regrets_are_those_of_the_answers(name):
    problem, dim = PROBLEMS[name]
    samples = samples_of(problem, labels(dim))
    pool = samples.pool()
    regrets = pool.regrets(pool.met[:, 1:])
    for i, answers in enumerate(samples):
        np.testing.assert_array_equal(pool.regret[i], answers.regret)
        np.testing.assert_allclose(regrets[i], answers.regret, atol=1e-9)


def test_equal_decisions_are_pooled_once():
    problem, dim = PROBLEMS["path"]
    pool = samples_of(problem, labels(dim), n_samples=20).pool()
    assert len(pool) == 6  # all paths of a grid of 3 x 3
    assert len(np.unique(pool.gradient, axis=0)) == 6


def test_the_cheapest_decisions_are_taken_and_the_best_one_is_not():
    problem, dim = PROBLEMS["affine"]
    y = labels(dim)
    samples = samples_of(problem, y)
    pool, y_hat = samples.pool(), y + 0.3
    chosen = pool.nearest(y_hat, 2)
    for i, padded in enumerate(chosen):
        decisions = padded[padded != pool.met[i, 0]]  # the label's own is padding
        assert len(set(decisions)) == len(decisions)
        for at in (y[i], y_hat[i], 2 * y_hat[i] - y[i]):
            cheapest = np.argsort(pool.constant + pool.gradient @ (at - pool.centre))[:2]
            assert set(cheapest) - {pool.met[i, 0]} <= set(decisions)
        assert set(pool.met[i]) - {pool.met[i, 0]} <= set(decisions)


def test_with_all_decisions_known_hinges_are_spo_plus():
    y = np.random.default_rng(0).normal(size=(40, 5))
    loss = fit_shared(samples_of(TopK(2), y), DecisionHinges(min_weight=0.0))
    y_hat = y + np.random.default_rng(2).normal(size=y.shape)
    zs = np.array([np.isin(np.arange(5), pair) for pair in combinations(range(5), 2)], dtype=float)
    best = zs[np.argmax(y @ zs.T, axis=1)]
    # SPO+ of a gain: max_z (2 y_hat - y) . z - (2 y_hat - y) . z*
    spo_plus = ((2 * y_hat - y) @ zs.T).max(axis=1) - ((2 * y_hat - y) * best).sum(axis=1)
    np.testing.assert_allclose(loss.value(y_hat), spo_plus, atol=1e-9)


@every_problem
def test_the_loss_bounds_that_of_own_decisions_and_is_zero_at_the_label(name):
    problem, dim = PROBLEMS[name]
    y, family = labels(dim), DecisionHinges(min_weight=0.0)
    samples = samples_of(problem, y)
    shared, own = fit_shared(samples, family), fit(samples, family, progress=False)
    y_hat = y + np.random.default_rng(3).normal(size=y.shape)
    fitted = own.errors.status == FitStatus.FITTED
    assert (shared.value(y_hat) >= own.value(y_hat) - 1e-9)[fitted].all()
    np.testing.assert_array_equal(shared.value(y), 0.0)


@pytest.mark.parametrize("family", [DecisionHinges(), DecisionRanking()])
def test_to_take_the_nearest_of_all_decisions_is_to_take_all(family, monkeypatch):
    y = labels(5)
    samples = samples_of(PROBLEMS["knapsack"][0], y)
    y_hat = y + np.random.default_rng(2).normal(size=y.shape)
    every = fit_shared(samples, family)
    monkeypatch.setattr(_fit_shared, "_N_ALL_TAKEN", 0)
    monkeypatch.setattr(_fit_shared, "_N_NEAREST", 1000)
    nearest = fit_shared(samples, family)
    np.testing.assert_allclose(nearest.value(y_hat), every.value(y_hat), atol=1e-12)


def test_the_mean_regret_is_that_of_the_instances_own_samples():
    samples = samples_of(Moody(), labels(4), **SKIPS)
    own = [np.maximum(answers.regret, 0.0) for answers in samples]
    assert len({len(regret) for regret in own}) > 1  # some calls failed
    found = fit_shared(samples, DecisionHinges()).errors.mean_regret
    np.testing.assert_allclose(found, [r.mean() if len(r) else 0.0 for r in own])


def test_no_call_is_made():
    samples = samples_of(Menu(), labels(4))
    before = Menu.n_calls
    fit_shared(samples, DecisionRanking(), at=labels(4) + 0.1)
    assert Menu.n_calls == before


def test_all_instances_have_one_temperature_whatever_the_samples_are():
    problem, y = Menu(), labels(4)
    zs = [problem.solve(label, None) for label in y]
    cost = np.array([[problem.objective(z, label, None) for z in zs] for label in y])
    unit = 0.4 * (cost - np.diag(cost)[:, np.newaxis]).mean()
    for n_samples in (1, 8):
        samples = samples_of(problem, y, n_samples)
        t = fit_shared(samples, DecisionRanking(temperature=0.5)).phi["t"]
        np.testing.assert_allclose(t, 0.5 * unit)


def test_an_instance_that_is_hard_to_predict_has_less_squared_error():
    y = labels(4)
    y_hat = y.copy()
    y_hat[7] += 5.0
    samples = samples_of(Menu(), y)
    w = fit_shared(samples, DecisionHinges(squared_error=1.0), at=y_hat).phi["w"]
    w_at_labels = fit_shared(samples, DecisionHinges(squared_error=1.0), at=y).phi["w"]
    assert (w[7] < 0.1 * w_at_labels[7]).all()


class Moody(Menu):
    """Has no answer for dear dishes."""

    def solve(self, y_hat, context):
        if y_hat[0] > 1.4:
            raise ValueError("closed")
        return super().solve(y_hat, context)


def test_a_label_without_an_answer_gets_a_squared_error(caplog):
    caplog.set_level(logging.DEBUG, "lodl")
    y = labels(4)
    y[5, 0] = 1.45
    loss = fit_shared(samples_of(Moody(), y, **SKIPS), DecisionHinges())
    assert loss.errors.status[5] == FitStatus.NO_SAMPLES
    n_missing = (loss.errors.status != FitStatus.FITTED).sum()
    assert f"{n_missing} of 30 instances have nothing to fit" in caplog.text
    assert loss.value(y + 0.1)[5] > 0
    assert (loss.errors.status == FitStatus.FITTED).sum() >= 20


def test_where_nothing_costs_anything_a_squared_error_stands_in():
    class Fixed(Menu):
        def objective(self, z, y, context):
            return 1.0

    y = labels(4)
    loss = fit_shared(samples_of(Fixed(), y), DecisionHinges())
    assert (loss.errors.status == FitStatus.NOTHING_TO_DECIDE).all()
    assert (loss.value(y + 0.1) > 0).all()


@pytest.mark.parametrize(
    ("options", "family", "message"),
    [
        ({"context": [None] * 30}, DecisionHinges(), "`context` do not share their decisions"),
        ({"slopes": False}, DecisionHinges(), "must have slopes"),
        ({}, WeightedMSE(), "`family` must be a decision family"),
    ],
)
def test_what_cannot_be_shared_is_an_error(options, family, message):
    samples = samples_of(Menu(), labels(4), **options)
    with pytest.raises(InvalidInputError, match=message):
        fit_shared(samples, family)


def test_a_shared_loss_is_saved_and_read(tmp_path):
    from lodl import load_loss

    y = labels(4)
    loss = fit_shared(samples_of(Menu(), y), DecisionRanking(), at=y + 0.1)
    loss.save(tmp_path / "loss.safetensors")
    np.testing.assert_array_equal(
        load_loss(tmp_path / "loss.safetensors").value(y + 0.2), loss.value(y + 0.2)
    )


@every_problem
def test_where_all_decisions_are_known_the_cheapest_is_the_solvers(name):
    problem, dim = PROBLEMS[name]
    y, rng = labels(dim, n=60), np.random.default_rng(4)
    pool = samples_of(problem, y, n_samples=40).pool()
    y_hat = y + 0.3 * rng.normal(size=y.shape)
    sign = 1 if problem.sense == "min" else -1
    truth = [
        sign * (problem.objective(problem.solve(guess, None), label, None))
        - sign * problem.objective(problem.solve(label, None), label, None)
        for guess, label in zip(y_hat, y, strict=True)
    ]
    np.testing.assert_allclose(pool.regrets_at(y_hat), truth, atol=1e-9)


class Stretch(Problem):
    """The cheapest path of a small grid, whose slopes come from differences of its cost."""

    sense = "min"

    def __init__(self, constant=0.0):
        self.path, self.constant = ShortestPath((3, 3)), constant

    def solve(self, y_hat, context):
        return self.path.solve(y_hat, None)

    def objective(self, z, y, context):
        return float(z @ y) + self.constant


@pytest.mark.parametrize(("offset", "constant"), [(0, 0), (100, 0), (1e4, 0), (0, 1e4), (0, 1e7)])
def test_rounding_of_differences_does_not_tell_decisions_apart(offset, constant):
    y = offset + np.random.default_rng(0).uniform(0.5, 1.5, size=(40, 12))
    pool = samples_of(Stretch(constant), y, n_samples=10).pool()
    assert len(pool) == 6


class Fee(Menu):
    """Two couriers for every menu: one is dearer, whatever the prices are."""

    constant = 1e9

    def solve(self, y_hat, context):
        menu = super().solve(y_hat, context)
        return menu, bool(y_hat[0] > 1.0)

    def objective(self, z, y, context):
        return super().objective(z[0], y, context) + 0.2 * z[1] + self.constant


def test_a_large_constant_does_not_merge_decisions():
    y = labels(4)
    samples = samples_of(Fee(), y)
    pool = samples.pool()
    regrets = pool.regrets(pool.met[:, 1:])
    for i, answers in enumerate(samples):
        np.testing.assert_allclose(regrets[i], answers.regret, atol=1e-3)


def test_without_any_answer_a_squared_error_stands_in():
    class Closed(Menu):
        def solve(self, y_hat, context):
            raise ValueError("closed")

    y = labels(4)
    loss = fit_shared(samples_of(Closed(), y, **SKIPS), DecisionRanking(), at=y + 0.1)
    assert (loss.errors.status == FitStatus.NO_SAMPLES).all()
    assert (loss.value(y + 0.1) > 0).all()


def test_of_very_many_decisions_those_met_most_often_are_compared(monkeypatch):
    monkeypatch.setattr(_pool, "_MAX_COMPARED", 3)
    pool = samples_of(Menu(), labels(4), n_samples=10).pool()
    counts = np.bincount(pool.met.ravel(), minlength=len(pool))
    assert set(counts[pool._compared]) >= set(np.sort(counts)[-3:])
    assert np.isfinite(pool.regrets_at(labels(4))).all()


def test_labels_that_are_all_the_same_have_no_huge_weights():
    y = np.full((10, 4), 1e6) + np.arange(4)
    loss = fit_shared(samples_of(Menu(), y, sampler=AllPerturbed(scale=1.0)), DecisionHinges())
    assert loss.phi["w"].max() < 1e3
