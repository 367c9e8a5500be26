"""Instances are known by what they are: what was asked once is never asked again."""

import hashlib
from typing import Any

import numpy as np
import pytest
import torch

from lodl.errors import InvalidInputError
from lodl.oracle import Oracle, _first_look
from lodl.samplers import AllPerturbed, AtPredictions, OnePerturbed, TwoPerturbed

K = 20
VERIFICATION = 2 * _first_look.N_VERIFIED  # calls of an opening that finds answers
SCALED = AllPerturbed(0.5)


def bits(samples):
    return [answers.regret.tobytes() for answers in samples]


@pytest.fixture(autouse=True)
def _few_verified(monkeypatch):
    """Cheap or not, so that the verification makes as many calls in every test."""
    monkeypatch.setattr(_first_look, "N_VERIFIED_IF_CHEAP", _first_look.N_VERIFIED)


@pytest.fixture
def asked(loop, calls_file, tmp_path):
    """Asks about labels, always with the same store; returns the samples and the calls made."""
    solver = loop(calls_file)

    def ask(y, context=None, keys=None, **kwargs):
        before = solver.n_calls()
        kwargs = {"sampler": SCALED, "n_samples": K} | kwargs
        calling = Oracle(solver, store=tmp_path / "store")
        samples = calling.sample(calling.instances(y, context, keys), **kwargs)
        return samples, solver.n_calls() - before

    return ask


def contexts(prices):
    return [{"price": float(price), "rest": np.arange(3)} for price in prices]


def test_a_part_or_another_order_of_the_data_finds_its_answers(asked, y):
    everything, n_calls = asked(y)
    assert n_calls == 6 * (K + 1)
    for rows in ([4, 1], [5, 4, 3, 2, 1, 0], [2]):
        part, n_calls = asked(y[rows])
        assert n_calls <= VERIFICATION
        assert bits(part) == [bits(everything)[row] for row in rows]


def test_a_longer_data_set_asks_only_for_what_is_new(asked, y, loop):
    asked(y[:4])
    longer, n_calls = asked(y)
    assert n_calls == 2 * (K + 1) + VERIFICATION
    assert bits(longer) == bits(Oracle(loop()).sample(y, SCALED, K))


def test_more_samples_ask_only_for_what_is_new(asked, y):
    asked(y)
    assert asked(y, n_samples=K + 7)[1] == 6 * 7 + VERIFICATION
    assert asked(y, n_samples=5)[1] == VERIFICATION


def test_equal_instances_are_asked_once(asked, y):
    samples, n_calls = asked(y[[0, 1, 0, 0]])
    assert n_calls == samples.n_calls == 2 * (K + 1)
    assert bits(samples)[0] == bits(samples)[2] == bits(samples)[3] != bits(samples)[1]


def test_cross_validation_costs_what_one_fit_on_all_data_costs(asked):
    """With "auto", whose scale is that of the labels the store was made with."""
    y = np.random.default_rng(0).normal(size=(20, 5))
    folds = np.arange(20) % 5
    total = sum(asked(y[folds != fold], sampler=AllPerturbed())[1] for fold in range(5))
    total += sum(asked(y[folds == fold], sampler=AllPerturbed())[1] for fold in range(5))
    assert 20 * (K + 1) <= total <= 20 * (K + 1) + 9 * VERIFICATION


def test_one_label_alone_finds_answers_of_an_automatic_scale(asked):
    y = np.array([[1.0], [2.0], [4.0]])
    asked(y, sampler=AllPerturbed())
    assert asked(y[:1], sampler=AllPerturbed())[1] <= VERIFICATION


def test_another_context_is_another_instance(asked, y):
    first, _ = asked(y, context=contexts(range(1, 7)))
    assert asked(y[::-1], context=contexts(range(6, 0, -1)))[1] == VERIFICATION
    second, n_calls = asked(y, context=contexts([1, 2, 3, 4, 5, 7]))
    assert n_calls == K + 1 + VERIFICATION
    assert bits(first)[:5] == bits(second)[:5]
    np.testing.assert_allclose(second.select([5]).optimum, 0.3)


def test_contexts_of_tensors_are_told_apart(asked, y, loop: Any, calls_file):
    class ReadsTensor(loop):
        def objective(self, z, y, context):
            return super().objective(z, y, {"price": float(context[0])})

    solver = ReadsTensor(calls_file)
    kwargs = {"sampler": SCALED, "n_samples": K}
    ones, twos = (Oracle(solver).sample(y, context=n * torch.ones(6, 1), **kwargs) for n in (1, 2))
    assert not set(ones.instances.ids) & set(twos.instances.ids)


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 1},
        {"sampler": AllPerturbed(0.6)},
        {"sampler": OnePerturbed(0.5)},
        {"keys": [f"day {i}" for i in range(6)]},
    ],
    ids=["seed", "scale", "sampler", "keys"],
)
def test_other_points_are_other_answers_in_the_same_store(asked, y, change):
    asked(y)
    n_labels = 0 if "keys" not in change else 6
    _, n_calls = asked(y, **change)
    assert 6 * K + n_labels <= n_calls <= 6 * K + n_labels + VERIFICATION
    assert asked(y, **change)[1] == asked(y)[1] == VERIFICATION


def test_keys_name_instances_whatever_their_place(asked, y):
    keys = [f"day {i}" for i in range(6)]
    first, _ = asked(y, keys=keys)
    second, n_calls = asked(y[::-1], keys=keys[::-1])
    assert n_calls == VERIFICATION
    assert bits(second) == bits(first)[::-1]


def test_one_key_and_label_with_two_contexts_are_two_instances(asked, y):
    named = {"keys": [1, 2, 1], "sampler": SCALED}
    same, n_asked = asked(y[[0, 1, 0]], context=contexts([3, 4, 3]), **named)
    assert bits(same)[0] == bits(same)[2]
    assert n_asked == 2 * (K + 1)
    _, n_asked = asked(y[[0, 1, 0]], context=contexts([3, 4, 5]), **named)
    assert n_asked == K + 1 + 2 * 2  # the new one, and those that verify the store


PINNED: dict[str, Any] = {  # of the points before instances were known by content
    "82dcc5ed0b3ab046": AllPerturbed(0.7),
    "725bffa7df65600c": OnePerturbed(0.5),
    "b0541b847dab343f": TwoPerturbed(np.linspace(0.1, 1, 5)),
    "63ee92c941fe9bb1": lambda y: AtPredictions(y[::-1], 0.3, n_exact=0),
}


@pytest.mark.parametrize("pinned", PINNED)
def test_whole_numbers_as_keys_give_the_points_of_published_results(pinned, loop, y):
    sampler = PINNED[pinned](y) if callable(PINNED[pinned]) else PINNED[pinned]
    solver = loop()
    solver.project = lambda y_hats: y_hats
    instances = Oracle(solver).instances(y, keys=range(6))
    samples = Oracle(solver).sample(instances, sampler, 1000, random_state=5)
    total = hashlib.sha256(b"".join(answers.y_hat.tobytes() for answers in samples))
    assert total.hexdigest()[:16] == pinned
    rows = np.array([2, 3])
    part = Oracle(solver).instances(y[rows], keys=rows)
    few = Oracle(solver).sample(part, sampler.take(rows), 7, random_state=5)
    assert np.array_equal(few[1].y_hat, samples[3].y_hat[:7])


# Rounds ---------------------------------------------------------------------------------------


def test_rounds_add_to_the_same_instances(asked, y):
    first, _ = asked(y, slopes=True)
    around, n_calls = asked(
        y, sampler=AtPredictions(y + 0.1, 0.2, n_exact=0), n_samples=5, slopes=True
    )
    assert n_calls == 6 * 5 + VERIFICATION // 2  # the labels are known
    both = first.union(around)
    assert (both.n_samples, both.has_slopes, len(both.draws)) == (K + 5, True, 2)
    for joined, a, b in zip(both, first, around, strict=True):
        assert np.array_equal(joined.regret, np.concatenate([a.regret, b.regret]))
        assert np.array_equal(joined.y_hat, np.concatenate([a.y_hat, b.y_hat]))
        slopes = [part.slope[part.decision] for part in (a, b)]
        assert np.array_equal(joined.slope[joined.decision], np.concatenate(slopes))
    assert both.n_calls == 6 * (1 + K + 5)
    assert bits(both.select([3])) == bits(both)[3:4]


def test_centres_are_part_of_an_answer(asked, y):
    first, _ = asked(y, sampler=AtPredictions(y + 0.1, 0.2, n_exact=0))
    moved = y + 0.1
    moved[2:] += 0.2  # about two instances the model says the same as before
    second, n_calls = asked(y, sampler=AtPredictions(moved, 0.2, n_exact=0))
    assert 4 * K <= n_calls <= 4 * K + VERIFICATION
    assert first.union(second).n_samples == 2 * K
    assert first.union(first).n_samples == K


def test_a_union_in_memory(loop, y):
    oracle = Oracle(loop())
    a, b = (oracle.sample(y, sampler, K) for sampler in (SCALED, OnePerturbed(0.5)))
    for joined, one, two in zip(a.union(b), a, b, strict=True):
        both = np.concatenate([one.regret, two.regret])
        np.testing.assert_allclose(joined.regret, both, atol=1e-8)  # tiny ones count as rounding
    assert a.union(b).seconds == pytest.approx(oracle.stored.seconds, rel=0.1)
    with pytest.raises(InvalidInputError, match="same instances in the same order"):
        a.union(b.select([1, 0, 2, 3, 4, 5]))


def test_a_union_of_samples_of_two_oracles_is_refused(loop, y):
    a, b = (Oracle(loop()).sample(y, SCALED, K) for _ in range(2))
    with pytest.raises(InvalidInputError, match="must hold samples of the same oracle or store"):
        a.union(b)


def test_a_union_says_where_each_part_came_from(loop, y):
    oracle = Oracle(loop())
    a, b = (oracle.sample(y, one, 3) for one in (SCALED, OnePerturbed(0.2)))
    assert "draws" not in a.provenance()
    told = a.union(b).provenance()
    assert [(one["sampler"], one["scale"]) for one in told["draws"]] == [
        ("AllPerturbed", 0.5),
        ("OnePerturbed", 0.2),
    ]
    assert (told["sampler"], told["n_samples"]) == ("AllPerturbed", 6)
    assert repr(a.union(b)) == (
        "Samples(n_instances=6, n_samples=6, label_shape=(5,), "
        "samplers=[AllPerturbed, OnePerturbed], has_slopes=False)"
    )


def test_a_union_with_more_samples_of_the_same_sampler_keeps_all(loop, y):
    oracle = Oracle(loop())
    few, many = (oracle.sample(y, SCALED, n) for n in (5, 9))
    assert bits(few.union(many)) == bits(many.union(few)) == bits(many)


def test_regrets_and_losses_take_instances_with_their_contexts(loop, y):
    oracle, context = Oracle(loop()), contexts(range(1, 7))
    instances = oracle.instances(y, context)
    for measure in (oracle.regret, oracle.decision_loss):
        expected = measure(y[::-1], y, context=context)
        assert np.array_equal(measure(y[::-1], instances), expected)
    assert oracle.n_calls == 12  # each call once


# Slopes ---------------------------------------------------------------------------------------


def test_slopes_are_added_to_a_store_without_them_and_cost_nothing_once_there(asked, y, loop):
    plain, _ = asked(y[:3])
    assert not plain.has_slopes
    assert plain[0].slope is None
    with_slopes, n_calls = asked(y, slopes=True)
    assert n_calls == 6 * (K + 1) + VERIFICATION - 2  # three instances are stored
    fresh = Oracle(loop()).sample(y, SCALED, K, slopes=True)
    for a, b in zip(with_slopes, fresh, strict=True):
        assert np.array_equal(a.regret, b.regret)
        np.testing.assert_allclose(a.slope[a.decision], b.slope[b.decision], rtol=1e-6)
    assert asked(y, slopes=True)[1] == asked(y)[1] == VERIFICATION


def test_a_slope_that_fails_is_a_failed_sample_and_is_not_asked_for_again(y, loop: Any, tmp_path):
    class NoSlope(loop):
        n_slopes = 0

        def slope(self, z, y, context):
            self.n_slopes += 1
            if z[0] > np.sinh(y[0]):
                raise ArithmeticError("no slope here")
            return 2 * (np.sinh(y) - z) * np.cosh(y)

    options = {"on_failure": "skip", "max_failure_rate": 1.0}
    kwargs = {"sampler": SCALED, "n_samples": K}
    fresh = Oracle(NoSlope(), **options).sample(y, slopes=True, **kwargs)
    assert 0 < fresh.n_failures < 6 * K
    options["store"] = tmp_path / "store"
    assert Oracle(NoSlope(), **options).sample(y, **kwargs).n_failures == 0
    first, oracle = Oracle(NoSlope(), **options).sample(y, slopes=True, **kwargs), NoSlope()
    again = Oracle(oracle, **options).sample(y, slopes=True, **kwargs)
    assert oracle.n_slopes == 0
    for samples in (first, again, again.select(np.arange(6))):
        assert samples.n_failures == fresh.n_failures
        for a, b in zip(samples, fresh, strict=True):
            assert np.array_equal(a.y_hat, b.y_hat)
            assert np.array_equal(a.slope[a.decision], b.slope[b.decision])
    assert Oracle(NoSlope(), **options).sample(y, **kwargs).n_failures == 0
