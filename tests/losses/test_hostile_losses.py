"""Loss files that somebody has forged, checksums included."""

import json
import os
import signal
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from lodl import losses
from lodl.errors import LossFileError
from lodl.losses import _loss_file

HOSTILE: tuple[Any, ...] = (None, -1, 0, 10**9, 10**30, 1e999, "x", True, [], {}, [1])
FAMILIES = [
    losses.WeightedMSE(),
    losses.Quadratic(rank=2),
    losses.DirectedQuadratic(rank=1),
    losses.DecisionHinges(max_decisions=3),
    losses.DecisionRanking(max_decisions=3),
    losses.NeuralLoss(n_layers=2, n_units=3),
]


@pytest.fixture(autouse=True)
def _never_hang():
    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def saved(make_loss, tmp_path):
    """Saves a loss; returns its path, metadata and arrays."""

    def save(family):
        path = tmp_path / "loss.safetensors"
        make_loss(family).save(path)
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return path, file.metadata(), arrays

    return save


def forge(path, metadata, arrays):
    del metadata["sha256"]
    metadata["sha256"] = _loss_file._digest(arrays, metadata)
    path.unlink()
    save_file(arrays, path, metadata)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_any_forged_setting_is_refused_or_harmless(saved, family):
    path, metadata, arrays = saved(family)
    names = [*asdict(family), "unknown"]
    for name in names:
        for value in HOSTILE:
            settings = json.dumps(asdict(family) | {name: value})
            forge(path, metadata | {"settings": settings}, arrays)
            try:
                loss = losses.load_loss(path)
            except LossFileError:
                continue
            assert np.isfinite(loss.value(loss.y)).all(), (name, value)


@pytest.mark.parametrize("key", ["settings", "provenance", "family", "version", "module"])
@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "null", "", "\x00", '{"a": ' * 50_000])
def test_forged_metadata_are_refused_or_harmless(saved, key, text):
    path, metadata, arrays = saved(losses.WeightedMSE())
    forge(path, metadata | {key: text}, arrays)
    if key == "module":
        losses.load_loss(path)
    else:
        with pytest.raises(LossFileError, match="cannot be used"):
            losses.load_loss(path)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_arrays_that_do_not_fit_are_refused(saved, family):
    path, metadata, arrays = saved(family)
    for name, array in arrays.items():
        for other in (array[:0], array[:1], array[np.newaxis], array.reshape(-1)[:1].reshape(())):
            forge(path, dict(metadata), arrays | {name: np.ascontiguousarray(other)})
            with pytest.raises(LossFileError, match="cannot be used"):
                losses.load_loss(path)


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "loss")
    with pytest.raises(LossFileError, match="it is not a regular file"):
        losses.load_loss(tmp_path / "loss")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        losses.load_loss(tmp_path / "nowhere")
