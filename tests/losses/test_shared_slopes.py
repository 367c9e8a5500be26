"""Slopes that instances share, against the array of all slopes, in NumPy and torch."""

import numpy as np
import pytest

from lodl import DecisionHinges, DecisionRanking, LearnedLoss, load_loss
from lodl.domains import TopK
from lodl.errors import InvalidInputError, LossFileError
from lodl.losses import FitErrors, _shared_slopes, fit_shared
from lodl.losses._shared_slopes import SharedSlopes, are_apart, bounds
from lodl.oracle import Oracle

N, P, D = 7, 12, 4
FAMILIES = [DecisionHinges(), DecisionRanking()]


def slopes(*, few=True, seed=0):
    rng = np.random.default_rng(seed)
    own = rng.integers(0, P, size=(N, 1))
    if not few:
        return SharedSlopes(rng.normal(size=(P, D)), own)
    others = [rng.permutation(np.delete(np.arange(P), number))[:3] for number in own[:, 0]]
    padded = np.hstack([own, others, own])
    padded[0, 2:] = own[0]  # an instance that has one other decision
    return SharedSlopes(rng.normal(size=(P, D)), own, padded)


every_kind = pytest.mark.parametrize("few", [True, False])


@every_kind
@pytest.mark.parametrize("most_more", [1, 20])
@pytest.mark.parametrize("max_at_once", [40, 1000])
def test_products_are_those_of_the_array(monkeypatch, few, max_at_once, most_more):
    monkeypatch.setattr(_shared_slopes, "_MAX_AT_ONCE", max_at_once)
    monkeypatch.setattr(_shared_slopes, "_MOST_MORE", most_more)
    shared, rng = slopes(few=few), np.random.default_rng(1)
    array = np.asarray(shared)
    assert shared.shape == array.shape
    d, weights = rng.normal(size=(N, 3, D)), rng.normal(size=(N, 3, array.shape[1]))
    np.testing.assert_allclose(shared.gaps(d), d @ array.swapaxes(1, 2), atol=1e-12)
    np.testing.assert_allclose(shared.mixed(weights), weights @ array, atol=1e-12)
    np.testing.assert_allclose(bounds(shared), bounds(array), atol=1e-12)


@every_kind
def test_rows_are_those_of_the_array(few):
    shared, rows = slopes(few=few), [4, 1, 1]
    np.testing.assert_array_equal(np.asarray(shared[rows]), np.asarray(shared)[rows])
    assert shared[rows].gradient is shared.gradient


def learned(family, *, n_samples=3, **options):
    y = np.random.default_rng(0).normal(size=(20, 6))
    samples = Oracle(TopK(2), progress=False).sample(y, n_samples=n_samples, slopes=True)
    return fit_shared(samples, family, at=y + 0.5, **options)


def as_arrays(loss):
    phi = {name: np.asarray(rows) for name, rows in loss.phi.items()}
    return LearnedLoss(loss.family, loss.y, phi, loss.errors, {})


@pytest.mark.parametrize("n_all_taken", [0, 100])
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_a_shared_loss_is_the_loss_of_its_arrays(monkeypatch, family, n_all_taken):
    torch = pytest.importorskip("torch")
    from lodl.training.torch import LearnedLossModule

    monkeypatch.setattr("lodl.losses._fit_shared._N_ALL_TAKEN", n_all_taken)
    monkeypatch.setattr("lodl.losses._fit_shared._N_NEAREST", 4)
    loss = learned(family)
    arrays, index = as_arrays(loss), np.array([3, 11, 4])
    y_hat = loss.y + np.random.default_rng(2).normal(size=loss.y.shape)
    for method in ("value", "gradient", "curvature"):
        expected = getattr(arrays, method)(y_hat)
        np.testing.assert_allclose(getattr(loss, method)(y_hat), expected, atol=1e-9)
        part = getattr(loss, method)(y_hat[index], index)
        np.testing.assert_allclose(part, expected[index], atol=1e-9)
    module = LearnedLossModule(loss, "sum", dtype=torch.float64)
    predicted = torch.tensor(y_hat[index], requires_grad=True)
    module(predicted, index).backward()
    np.testing.assert_allclose(predicted.grad, arrays.gradient(y_hat)[index], atol=1e-9)
    for dtype in (torch.float32, torch.float64):
        phi = {name: rows[index] for name, rows in loss.phi.items()}
        d = torch.tensor((y_hat - loss.y)[index, np.newaxis], dtype=dtype)
        converted = {name: rows.astype(np.dtype(str(dtype)[6:])) for name, rows in phi.items()}
        gradient = family.gradient(tensors(converted), d)
        np.testing.assert_allclose(gradient[:, 0], arrays.gradient(y_hat)[index], atol=1e-4)
        assert gradient.dtype == dtype


def tensors(phi):
    import torch

    split = _shared_slopes.split_slopes(phi)
    return _shared_slopes.join_slopes({name: torch.tensor(rows) for name, rows in split.items()})


def test_the_number_of_decisions_does_not_fall_with_the_number_of_instances():
    y = np.random.default_rng(0).normal(size=(3000, 7))
    samples = Oracle(TopK(3), progress=False).sample(y, n_samples=0, slopes=True)
    slope = fit_shared(samples, DecisionHinges(), holdout=0.0).phi["slope"]
    assert slope.shape == (3000, 35, 7)
    assert slope.gradient.shape == (35, 7)


def test_a_file_holds_each_decision_once(tmp_path):
    loss = learned(DecisionHinges(), n_samples=20)
    loss.save(tmp_path / "loss.safetensors")
    read = load_loss(tmp_path / "loss.safetensors").phi["slope"]
    assert read.gradient.shape == (15, 6)
    np.testing.assert_array_equal(np.asarray(read), np.asarray(loss.phi["slope"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"own": np.full((N, 1), P)}, r"`phi\['slope'\].own` must be from 0 to 11, got 12 to 12"),
        ({"decision": np.full((N, 5), -1)}, "decision` must be from 0 to 11, got -1 to -1"),
        ({"own": np.zeros((N, 1))}, "own` must be whole numbers of shape"),
        ({"decision": np.zeros((N - 1, 5), int)}, "decision` must be whole numbers of shape"),
        ({"gradient": np.full((P, D), np.nan)}, "must be finite"),
        ({"gradient": np.zeros((P, D - 1))}, r"must have shape \(7, 5, 4\), got \(7, 5, 3\)"),
    ],
)
def test_slopes_that_do_not_fit_are_an_error(changes, message):
    family = DecisionHinges()
    y, shared = np.zeros((N, D)), SharedSlopes(**{**slopes().parts(), **changes})
    phi = {"regret": np.ones((N, 5)), "slope": shared, "w": np.ones((N, D))}
    with pytest.raises(InvalidInputError, match=message):
        LearnedLoss(family, y, phi, FitErrors.empty(N), {})


def test_a_file_without_a_part_of_its_slopes_is_an_error(tmp_path):
    from lodl.losses._loss_file import read_loss, write_loss

    loss, path = learned(DecisionHinges()), tmp_path / "loss.safetensors"
    loss.save(path)
    family, arrays, _ = read_loss(path)
    del arrays["phi.slope.gradient"]
    write_loss(path, family, arrays, {})
    with pytest.raises(LossFileError, match="must have the arrays `gradient`, `own`"):
        load_loss(path)


def test_instances_are_apart_on_a_smooth_set_only():
    rng, own = np.random.default_rng(0), np.arange(100)[:, np.newaxis]
    smooth = rng.normal(size=(100, 12))
    assert are_apart(smooth, own)
    assert not are_apart(smooth, own // 2)  # two instances share a decision
    assert not are_apart(smooth[:40], own[:40])  # too few to tell
    assert not are_apart((smooth > 0).astype(float), own)  # sets of items, all different
