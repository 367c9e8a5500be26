"""Batches of a vectorised problem with predictions of several instances."""

from typing import Any

import numpy as np
import pytest

import lodl
from lodl import AllPerturbed, AtPredictions, Oracle
from lodl.domains import ShortestPath
from lodl.errors import OracleError
from lodl.oracle._failures import Options
from lodl.oracle._instances import Draws
from lodl.oracle._task import Task, answer
from lodl.problems import VectorisedProblem

Y = np.random.default_rng(0).uniform(1, 2, size=(60, 12))


class Sizes(ShortestPath):
    """Notes the sizes of its batches."""

    def solve_many(self, y_hats, context=None):
        self.__dict__.setdefault("sizes", []).append(len(y_hats))
        return super().solve_many(y_hats, context)


class Apart(Sizes):
    mixes_instances = False


class Nearest(VectorisedProblem):
    """Round a prediction; its objective depends on the label by a square."""

    sense = "min"

    def solve_many(self, y_hats, context):
        return np.round(y_hats * 2) / 2

    def objective_many(self, zs, y, context):
        return ((zs - y) ** 2).sum(axis=1) + (0.0 if context is None else context["price"])


class OneByOne(Nearest):
    mixes_instances = False


def same(a: Any, b: Any) -> None:
    for one, other in zip(a, b, strict=True):
        for name in ("y_hat", "regret", "decision", "slope"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("n_samples", [0, 1, 20, 40])
@pytest.mark.parametrize("kinds", [(Sizes, Apart), (Nearest, OneByOne)])
def test_answers_do_not_depend_on_whether_batches_mix_instances(kinds, n_samples):
    problems = [kind((3, 3)) if issubclass(kind, Sizes) else kind() for kind in kinds]
    mixed, apart = (
        Oracle(each).sample(Y, AllPerturbed(), n_samples, slopes=True) for each in problems
    )
    same(mixed, apart)
    assert np.array_equal(mixed.optimum, apart.optimum)
    assert mixed.provenance()["mixes_instances"] is True
    assert apart.provenance()["mixes_instances"] is False


def test_a_round_is_a_handful_of_batches_and_counts_every_call():
    problem = Sizes((3, 3))
    oracle = Oracle(problem)
    oracle.sample(Y, AtPredictions(Y + 0.1, scale=1.0, n_exact=1), 1)
    assert oracle.n_calls == sum(problem.__dict__["sizes"]) == 2 * len(Y)
    assert len(problem.__dict__["sizes"]) <= 5
    apart = Apart((3, 3))
    Oracle(apart).sample(Y, AtPredictions(Y + 0.1, scale=1.0, n_exact=1), 1)
    assert set(apart.__dict__["sizes"]) == {2}


@pytest.mark.parametrize("kind", ["equal", "different"])
def test_instances_share_a_batch_only_if_their_contexts_are_equal(kind):
    seen: list[tuple[int, Any]] = []

    class Priced(Nearest):
        def solve_many(self, y_hats, context):
            seen.append((len(y_hats), context["price"]))
            return super().solve_many(y_hats, context)

    prices = [2.0] * len(Y) if kind == "equal" else [float(i) for i in range(len(Y))]
    contexts = [{"price": price} for price in prices]
    samples = Oracle(Priced()).sample(Y, AllPerturbed(), 3, context=contexts)
    same(samples, Oracle(OneByOne()).sample(Y, AllPerturbed(), 3, context=contexts))
    assert {price for _, price in seen} == set(prices)
    assert (max(size for size, _ in seen) > 4) == (kind == "equal")


def test_a_batch_that_fails_is_called_again_by_instance_and_the_culprit_is_named():
    class Picky(Nearest):
        def solve_many(self, y_hats, context):
            if (y_hats == Y[37]).all(axis=1).any():
                raise ValueError("not this one")
            return super().solve_many(y_hats, context)

    with pytest.raises(OracleError, match="instance 37, the label itself: ValueError: not this"):
        Oracle(Picky()).sample(Y, AllPerturbed(), 2)
    skipping = Oracle(Picky(), on_failure="skip")
    samples = skipping.sample(Y, AllPerturbed(), 2)
    expected = Oracle(Nearest()).sample(Y, AllPerturbed(), 2)
    assert np.isnan(samples.optimum[37])
    assert len(samples[37].regret) == 0
    same([samples[i] for i in range(60) if i != 37], [expected[i] for i in range(60) if i != 37])


def test_a_label_without_a_decision_in_a_batch_has_no_regrets():
    class Holes(Nearest):
        def objective_many(self, zs, y, context):
            values = super().objective_many(zs, y, context)
            return np.full(len(zs), np.nan) if np.array_equal(y, Y[5]) else values

    samples = Oracle(Holes(), on_failure="skip").sample(Y, AllPerturbed(), 2)
    assert len(samples[5].regret) == 0
    assert all(len(samples[i].regret) == 2 for i in range(60) if i != 5)


@pytest.mark.parametrize(("timeout", "n_batches"), [(None, 1), (30.0, 3)])
def test_a_time_limit_is_that_of_one_call_so_batches_are_those_of_an_instance(timeout, n_batches):
    instances = Oracle(Sizes((3, 3))).instances(Y[:3])
    draws = Draws.of(AllPerturbed(), instances, 2, 0, np.ones(12))
    options = Options(timeout, "raise", 0.1)
    task = Task(instances, draws, 0, 3, None, 1.0, options, is_scored=True, returns_decisions=False)
    problem = Sizes((3, 3))
    assert answer(problem, task).n_done == 9
    assert len(problem.__dict__["sizes"]) == n_batches


def test_a_store_of_mixed_batches_serves_a_part_in_another_order(tmp_path):
    place = tmp_path / "answers.db"
    first = Oracle(Nearest(), store=place).sample(Y, AllPerturbed(), 3, slopes=True)
    order = np.random.default_rng(1).permutation(len(Y))[:20]
    oracle = lodl.Oracle(Nearest(), store=place)
    part = oracle.sample(Y[order], AllPerturbed(), 3, slopes=True)
    same(part, [first[int(i)] for i in order])
    assert oracle.n_calls <= 32


def test_equal_labels_with_different_predictions_are_answered_in_one_batch():
    y, y_hat = np.repeat(Y[:1], 6, axis=0), Y[:6]
    oracle = Oracle(Sizes((3, 3)))
    samples = oracle.sample(y, AtPredictions(y_hat, scale=1.0), 1, slopes=True)
    again = oracle.sample(y, AtPredictions(y_hat, scale=1.0), 1, slopes=True)
    same(samples, again)
    for row in range(6):
        alone = Oracle(Sizes((3, 3))).sample(y[row : row + 1], given(y_hat, row), 1, slopes=True)
        same([samples[row]], alone)
    assert samples.n_calls == 1 + 6


def given(y_hat, row):
    return AtPredictions(y_hat[row : row + 1], scale=1.0)


def test_equal_contexts_share_a_batch_wherever_they_are():
    class Noted(Nearest):
        def solve_many(self, y_hats, context):
            sizes.append(len(y_hats))
            return super().solve_many(y_hats, context)

    sizes = list[int]()
    context = [{"price": float(row % 3)} for row in range(len(Y))]
    samples = Oracle(Noted()).sample(Y, AllPerturbed(), 4, context=context)
    assert max(sizes) == 5 * len(Y) / 3
    same(samples, Oracle(OneByOne()).sample(Y, AllPerturbed(), 4, context=context))
