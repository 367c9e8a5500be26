"""Objective kinds: affine, smooth or kinked in the label."""

import numpy as np
import pytest

from lodl.domains import Knapsack, TopK, newsvendor
from lodl.oracle import ObjectiveKind, Oracle
from lodl.oracle._first_look import kind_of
from lodl.problems import problem
from lodl.samplers import AllPerturbed, OnePerturbed

RNG = np.random.default_rng(0)
Y = RNG.uniform(0.5, 1.5, size=(30, 4))
AFFINE, SMOOTH, KINKED = ObjectiveKind


def aim(cost):
    """Return a problem that orders the prediction, and pays for what it is off."""
    return problem(lambda y_hat: y_hat, lambda z, y: 10 + cost(z - y).sum(), sense="min")


def pinball(error):
    return np.maximum(3 * error, -error)


def kinked_elsewhere(error):
    """Costs nothing up to an error of 0.3, and 2 a unit beyond."""
    return np.maximum(2 * (np.abs(error) - 0.3), 0)


MEMBERS = {
    "top": (TopK(2), AFFINE),
    "knapsack": (Knapsack((3.0,), ((1.0, 2.0, 1.5, 1.0),)), AFFINE),
    "squares": (aim(np.square), SMOOTH),
    "huber-like": (aim(lambda error: np.sqrt(1 + error**2)), SMOOTH),
    "kinked elsewhere": (aim(kinked_elsewhere), SMOOTH),
    "pinball": (aim(pinball), KINKED),
    "squares and a kink": (aim(lambda error: error**2 + pinball(error) / 10), KINKED),
    "one kink of four": (aim(lambda error: np.append(error[1:] ** 2, abs(error[0]))), KINKED),
}


@pytest.mark.parametrize("sampler", [None, OnePerturbed()], ids=["all", "one"])
@pytest.mark.parametrize(("member", "kind"), MEMBERS.values(), ids=MEMBERS)
def test_the_kind_of_an_objective_is_found_in_few_calls(member, kind, sampler):
    oracle = Oracle(member)
    assert oracle.objective_kind(Y, sampler) is kind
    assert oracle.is_affine(Y) == (kind is AFFINE)
    assert 0 < oracle.n_calls < 20
    assert oracle.check(Y).objective_kind is kind


def test_the_kind_of_the_newsvendor_is_kinked():
    domain = newsvendor(sizes=(30, 1, 1))
    assert Oracle(domain.problem).objective_kind(domain.splits.train.y) is KINKED


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize(("member", "kind"), MEMBERS.values(), ids=MEMBERS)
def test_the_kind_does_not_depend_on_the_unit_of_the_objective(member, kind, factor):
    scaled = problem(
        member.solve, lambda z, y, c: factor * member.objective(z, y, c), sense=member.sense
    )
    assert Oracle(scaled).objective_kind(Y, context=[None] * len(Y)) is kind


def test_the_kind_is_remembered_in_the_store(tmp_path):
    shop = aim(pinball)
    assert Oracle(shop, store=tmp_path / "store").objective_kind(Y) is KINKED
    again = Oracle(shop, store=tmp_path / "store")
    assert again.objective_kind(Y) is KINKED
    assert again.n_calls == 0


def test_the_calls_are_among_those_that_sampling_needs():
    oracle = Oracle(aim(np.square))
    oracle.objective_kind(Y, AllPerturbed(), random_state=3)
    n_calls = oracle.n_calls
    oracle.sample(Y, AllPerturbed(), 6, random_state=3)
    assert n_calls == 3 * 6
    assert oracle.n_calls == 30 * 7 + 3


def test_a_kink_at_half_of_the_instances_is_one():
    assert kind_of([AFFINE, AFFINE]) is AFFINE
    assert kind_of([AFFINE, SMOOTH, KINKED]) is SMOOTH
    assert kind_of([KINKED, SMOOTH, KINKED]) is KINKED
    assert kind_of([AFFINE, KINKED]) is KINKED
    assert kind_of([]) is SMOOTH


def test_an_objective_that_cannot_be_computed_elsewhere_is_not_affine():
    def objective(z, y):
        if not (y > 0.4).all():
            raise ValueError("outside")
        return float(np.log(y - 0.4) @ z)

    logs = problem(lambda y_hat: (y_hat == y_hat.max()) * 1.0, objective, sense="max")
    assert Oracle(logs).objective_kind(Y, AllPerturbed(0.01)) is SMOOTH
