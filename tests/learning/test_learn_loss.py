import os
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import lodl
from lodl.errors import InvalidInputError, OracleError
from lodl.losses import FitStatus, fit
from lodl.oracle import Oracle

Y = np.random.default_rng(0).random((5, 4))


class CountingPick(lodl.Problem):
    sense = "max"

    def __init__(self):
        self.calls = []

    def __getstate__(self):
        return {}

    def solve(self, y_hat, context):
        self.calls.append(1)
        return int(np.argmax(y_hat))

    def objective(self, z, y, context):
        return y[z]


def test_it_is_sampling_followed_by_fitting():
    problem = CountingPick()
    arguments = {"sampler": lodl.TwoPerturbed(0.5), "n_samples": 120, "random_state": 4}
    loss = lodl.learn_loss(problem, Y, family=lodl.WeightedMSE(), **arguments)
    by_steps = fit(Oracle(problem).sample(Y, **arguments), lodl.WeightedMSE())
    assert np.array_equal(loss.phi["w"], by_steps.phi["w"])
    assert loss.provenance["seed"] == 4
    assert loss.provenance["n_samples"] == 120


def test_the_loss_is_zero_at_the_labels_and_tells_bad_predictions_from_good_ones():
    loss = lodl.learn_loss(CountingPick(), Y, n_samples=300)
    assert (loss.value(Y) == 0).all()
    best, worst = Y.argmax(axis=1), Y.argmin(axis=1)
    swapped = Y.copy()  # the worst item looks best
    swapped[np.arange(5), best], swapped[np.arange(5), worst] = Y.min(axis=1), Y.max(axis=1)
    stretched = Y.copy()  # the best item looks better still: the decision stays
    stretched[np.arange(5), best] += Y.max(axis=1) - Y.min(axis=1)
    assert (loss.value(stretched) < 0.5 * loss.value(swapped)).all()


@pytest.mark.parametrize("family", [lodl.DecisionHinges(), lodl.DecisionRanking()], ids=repr)
def test_a_family_made_of_decisions_is_learned_from_few_samples_with_slopes(family):
    problem = CountingPick()
    loss = lodl.learn_loss(problem, Y, family=family)
    assert loss.provenance["n_samples"] == 10
    # Three calls are repeated; slopes are differences of the objective, not calls.
    assert len(problem.calls) == 5 * 11 + 3
    assert set(np.asarray(loss.phi["slope"]).sum(axis=-1).round(6).flat) == {
        0.0
    }  # one item for another


def test_hinges_learned_from_a_solver_bound_the_regret():
    y = np.random.default_rng(0).random((30, 4))
    loss = lodl.learn_loss(CountingPick(), y, family=lodl.DecisionHinges())
    y_hat = y + np.random.default_rng(1).normal(0, 0.3, y.shape)
    rows, chosen = np.arange(30), y_hat.argmax(axis=1)
    was_met = (np.asarray(loss.phi["slope"])[rows, :, chosen] < -0.5).any(axis=1)
    assert was_met.sum() > 5
    regret = y.max(axis=1) - y[rows, chosen]
    assert (loss.value(y_hat)[was_met] >= regret[was_met] - 1e-6).all()


class SquaredPick(CountingPick):
    def objective(self, z, y, context):
        return y[z] * abs(y[z])


@pytest.mark.parametrize(
    ("problem", "n_samples", "family"),
    [
        (CountingPick, None, lodl.DecisionHinges(margin=1.0, squared_error=1.0)),
        (CountingPick, 5, lodl.DecisionHinges(margin=1.0, squared_error=1.0)),
        (SquaredPick, None, lodl.DirectedWeightedMAE(squares=True)),
        (SquaredPick, 3, lodl.DirectedWeightedMAE(squares=True)),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_the_family_fits_the_problem_and_the_samples(problem, n_samples, family, caplog):
    loss = lodl.learn_loss(problem(), Y, n_samples=n_samples)
    learned: Any = loss.family
    assert replace(learned, **({"max_decisions": 50} if family.uses_slopes else {})) == family
    assert loss.provenance["n_samples"] == (n_samples or 10)
    assert "are few for them" not in caplog.text


@pytest.mark.parametrize(
    ("family", "n_samples", "warns"),
    [
        (lodl.Quadratic(), 59, True),  # 4 x 4 and 4 parameters
        (lodl.Quadratic(), 60, False),
        (lodl.DirectedWeightedMSE(), 24, False),
        (lodl.DecisionHinges(), 5, False),
    ],
    ids=repr,
)
def test_more_parameters_than_samples_can_tell_are_warned_of(family, n_samples, warns, caplog):
    lodl.learn_loss(CountingPick(), Y, family=family, n_samples=n_samples)
    assert ("20 parameters per instance" in caplog.text) == warns
    assert ("at least 60 samples" in caplog.text) == warns


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("WeightedMSE", "`family` must be a loss family such as .*, got 'WeightedMSE'"),
        (lodl.WeightedMSE, r"got the class WeightedMSE\. Call it: `WeightedMSE\(\.\.\.\)`"),
        ([lodl.WeightedMSE()], r"`family` must be a loss family such as .*, got \[WeightedMSE"),
    ],
)
def test_a_family_that_is_none_is_an_error_before_any_oracle_call(family, message):
    problem = CountingPick()
    with pytest.raises(InvalidInputError, match=message):
        lodl.learn_loss(problem, Y, family=family)
    assert not problem.calls


def test_failed_samples_are_accepted_up_to_the_given_rate(tmp_path):
    class FailingByHalf(CountingPick):
        def solve(self, y_hat, context):
            if y_hat[0] > 1:  # never at a label
                raise RuntimeError("no optimum")
            return super().solve(y_hat, context)

    arguments = {"sampler": lodl.AllPerturbed(2.0), "n_samples": 200}
    with pytest.raises(OracleError, match=r"max_failure_rate=0\.1"):
        lodl.learn_loss(Oracle(FailingByHalf(), on_failure="skip"), Y, **arguments)
    store = tmp_path / "samples"
    loss = lodl.learn_loss(
        Oracle(FailingByHalf(), store=store, on_failure="skip", max_failure_rate=0.9),
        Y,
        **arguments,
    )
    assert (loss.value(Y) == 0).all()
    assert store.exists()


def test_a_family_that_cannot_be_fitted_is_an_error_before_any_oracle_call():
    problem = CountingPick()
    with pytest.raises(InvalidInputError, match=r"`rank` must be at most .* \(4\)"):
        lodl.learn_loss(problem, Y, family=lodl.Quadratic(rank=9))
    assert not problem.calls


def test_an_instance_whose_label_fails_gets_a_stand_in():
    class Fails(lodl.Problem):
        sense = "max"

        def solve(self, y_hat, context):
            if context:
                raise ValueError("no solution")
            return int(np.argmax(y_hat))

        def objective(self, z, y, context):
            return y[z]

    y = np.random.default_rng(0).random((20, 4))
    context = np.arange(20) == 3
    loss = lodl.learn_loss(Oracle(Fails(), on_failure="skip"), y, context=context, n_samples=40)
    assert loss.errors.status[3] == FitStatus.NO_SAMPLES
    assert (loss.gradient(y + 1.0)[3] > 0).all()


def test_units_of_the_labels_do_not_change_what_is_learned():
    class Pick(lodl.Problem):
        sense = "max"

        def __init__(self, units):
            self.units = units

        def solve(self, y_hat, context):
            return int(np.argmax(y_hat / self.units))

        def objective(self, z, y, context):
            return y[z] / self.units[z]

    y, units = np.random.default_rng(0).random((20, 4)), np.array([1.0, 1e3, 1e-2, 7.0])
    arguments = {"family": lodl.WeightedMSE(), "n_samples": 100}
    plain, in_units = (
        lodl.learn_loss(oracle, oracle.instances(y * units, keys=range(20)), **arguments)
        for oracle, units in [(Oracle(Pick(u)), u) for u in (np.ones(4), units)]
    )
    np.testing.assert_allclose(in_units.phi["w"] * units**2, plain.phi["w"], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "message"),
    [(partial(os._exit, 3), "ended its worker process"), (partial(time.sleep, 60), "took longer")],
    ids=["crashes", "hangs"],
)
def test_a_solver_that_crashes_or_hangs_is_named_while_no_family_is_chosen(
    act, message, monkeypatch
):
    class Faulty(lodl.LinearProblem):
        sense = "max"

        def solve(self, y_hat, context):
            act()

    with pytest.raises(OracleError, match=f"instance 0, the label itself: the call {message}"):
        lodl.learn_loss(Oracle(Faulty(), timeout=0.3), Y[:1], n_samples=1)


def test_instances_share_their_decisions_where_they_can():
    problem, y = CountingPick(), np.random.default_rng(0).random((20, 4))
    shared = lodl.learn_loss(problem, y, n_samples=3)
    assert shared.family == lodl.DecisionHinges(margin=1.0, squared_error=1.0, max_decisions=4)
    assert (shared.phi["regret"] > 0).sum(axis=1).min() == 3  # every item that is not the best
    n_shared = len(problem.calls)
    own = lodl.learn_loss(problem, y, context=[None] * 20, n_samples=3)
    assert "shared" not in own.provenance
    assert len(problem.calls) == 2 * n_shared  # sharing takes no further call


@pytest.mark.parametrize(
    ("problem", "family"),
    [(SquaredPick, lodl.DecisionHinges()), (CountingPick, lodl.WeightedMSE())],
)
def test_what_cannot_be_shared_is_not(problem, family):
    assert "shared" not in lodl.learn_loss(problem(), Y, family=family, n_samples=9).provenance


def test_a_context_may_be_a_frame():
    pandas = pytest.importorskip("pandas")

    class Room(CountingPick):
        def solve(self, y_hat, context):
            assert context["room"] in (1, 2)
            return super().solve(y_hat, context)

    frame = pandas.DataFrame({"room": [1, 2, 1, 2, 1]}, index=list("abcde"))
    assert lodl.learn_loss(Room(), Y, context=frame, n_samples=3).n_instances == 5
