"""Whose answers a store holds: parameters are compared, and a few answers are computed again."""

import logging
import sqlite3
from functools import partial

import numpy as np
import pytest

import lodl
from lodl.errors import StoreError
from lodl.oracle import Oracle
from lodl.oracle._first_look import N_VERIFIED, N_VERIFIED_IF_CHEAP
from lodl.problems import Problem, problem
from lodl.samplers import AllPerturbed

ARGUMENTS = {"sampler": AllPerturbed(), "n_samples": 8}
Y = np.random.default_rng(3).normal(size=(200, 5))


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


class Capped(Problem):
    """Follows the prediction up to a cap that no sample reaches."""

    sense = "min"

    def __init__(self, cap=100.0, weights=(1.0, 1.0)):
        self.cap = cap
        self._weights = np.array(weights)

    def solve(self, y_hat, context):
        return np.minimum(y_hat, self.cap)

    def objective(self, z, y, context):
        return float(((z - y) ** 2).sum() + self._weights.sum())


class AlsoCapped(Capped):
    pass


@pytest.mark.parametrize(
    ("other", "match"),
    [
        (Capped(90.0), "its cap is 100, this one's is 90. Choose another store"),
        (Capped(weights=(0.5, 1.5)), r"its weights is \w{32}, this one's is \w{32}"),
        (AlsoCapped(), "its class is Capped, this one's is AlsoCapped"),
        (AlsoCapped(9), "its cap is 100, this one's is 9; its class is Capped, this one's is Also"),
    ],
    ids=["number", "array", "class", "both"],
)
def test_a_problem_with_other_parameters_is_refused_even_if_its_answers_are_the_same(
    other, match, store
):
    Oracle(Capped(), store=store).sample(Y[:6], **ARGUMENTS)
    with pytest.raises(StoreError, match=f"holds answers of another problem: {match}"):
        Oracle(other, store=store).sample(Y[:6], **ARGUMENTS)
    with pytest.raises(StoreError, match=match):
        lodl.learn_loss(Oracle(other, store=store), Y[:6], n_samples=8)


def test_an_equal_problem_finds_its_answers(store):
    Oracle(Capped(), store=store).sample(Y[:6], **ARGUMENTS)
    Oracle(Capped(cap=100), store=store).sample(Y[:6], **ARGUMENTS)
    Oracle(Capped(100.0, [1.0, 1.0]), store=store).sample(Y[:6], **ARGUMENTS)


def test_arguments_bound_to_a_function_are_parameters(store):
    def shop(price):
        return problem(np.argmax, partial(_revenue, price=price), sense="max")

    Oracle(shop(1), store=store).sample(Y[:6], **ARGUMENTS)
    with pytest.raises(StoreError, match="another problem: its objective is"):
        Oracle(shop(2), store=store).sample(Y[:6], **ARGUMENTS)


def _revenue(z, y, price):
    return price * float(y[z])


def test_a_store_without_parameters_is_verified_by_its_answers(store):
    Oracle(Capped(), store=store).sample(Y[:6], **ARGUMENTS)
    connection = sqlite3.connect(store)
    with connection:
        connection.execute("UPDATE header SET value = '{}' WHERE key = 'problem'")
    connection.close()
    Oracle(Capped(90.0), store=store).sample(Y[:6], **ARGUMENTS)
    with pytest.raises(StoreError, match="4 of 4 stored answers come out different"):
        Oracle(Capped(-1.0), store=store).sample(Y[:6], **ARGUMENTS)


def test_a_change_that_only_matters_where_decisions_nearly_tie_is_noticed(store):
    """A small handicap of one item changes the choice in about one of thirty instances."""
    handicap = {"by": 0.0}
    pick = problem(
        lambda v: int((v - handicap["by"] * np.eye(5)[0]).argmax()),
        lambda z, y: float(y[z]),
        sense="max",
    )
    Oracle(pick, store=store).sample(Y, **ARGUMENTS)
    handicap["by"] = 0.1
    with pytest.raises(StoreError, match=r"answers of another problem: \d of 16 stored answers"):
        Oracle(pick, store=store).sample(Y, **ARGUMENTS)


@pytest.mark.parametrize(
    ("seconds", "n_instances"), [(0.0, N_VERIFIED_IF_CHEAP), (0.2, N_VERIFIED)]
)
def test_few_answers_are_computed_again_and_fewer_if_a_call_takes_long(
    loop, store, calls_file, caplog, seconds, n_instances, monkeypatch
):
    solver = loop(calls_file)
    Oracle(solver, store=store).sample(Y, **ARGUMENTS)
    before = solver.n_calls()
    caplog.set_level(logging.INFO, "lodl")
    monkeypatch.setattr("lodl.oracle._store.Progress.seconds_per_call", seconds)
    Oracle(solver, store=store).sample(Y, **ARGUMENTS)
    assert solver.n_calls() - before == 2 * n_instances
    assert f"Computed {2 * n_instances} stored answers of {n_instances} instances" in caplog.text
