"""Trained models in folders, and back."""

import json
import os
import signal
import zipfile
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from torch import nn

from lodl.errors import ModelFolderError
from lodl.losses import squared_error_loss
from lodl.training import learner_for, load_predictor
from lodl.training.torch import TorchLearner, TrainingSettings

QUICK = TrainingSettings(learning_rate=0.05, n_steps=10)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    return x, 7 + x @ rng.normal(size=(2, 3)) + rng.normal(size=(30, 3))


def linear():
    return nn.Linear(2, 3)


def network():
    return nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))


MODELS = {
    "linear": (lambda: learner_for(None), None),
    "module": (lambda: TorchLearner(network(), settings=QUICK), network),
    "double": (lambda: TorchLearner(network().double(), settings=QUICK), network),
    "pipeline": (lambda: learner_for(make_pipeline(StandardScaler(), Ridge())), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_predicts_the_same(name, data, tmp_path):
    x, y = data
    learner, estimator = MODELS[name]
    model = learner().train(x, squared_error_loss(y))[0]
    model.save(tmp_path / "model")
    again = load_predictor(tmp_path / "model", estimator and estimator())
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert again.n_steps == model.n_steps
    for file in (tmp_path / "model").iterdir():
        assert b"pickle" not in file.read_bytes()


def test_a_module_is_handed_over_again(data, tmp_path):
    x, y = data
    TorchLearner(network(), settings=QUICK).train(x, squared_error_loss(y))[0].save(tmp_path)
    with pytest.raises(ModelFolderError, match="hand over the untrained module as `estimator`"):
        load_predictor(tmp_path)
    with pytest.raises(ModelFolderError, match="`estimator` is another architecture"):
        load_predictor(tmp_path, nn.Linear(2, 3))


def test_what_a_forged_file_could_misuse_is_loaded_only_if_trusted(data, tmp_path):
    x, y = data
    forest = RandomForestRegressor(2, random_state=0)
    model = learner_for(forest).train(x, squared_error_loss(y))[0]
    model.save(tmp_path)
    with pytest.raises(ModelFolderError, match=r"trusted=\['sklearn.tree._tree.Tree'\]"):
        load_predictor(tmp_path)
    again = load_predictor(tmp_path, trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_what_cannot_be_found_again_is_not_saved(data, tmp_path):
    x, y = data
    pipeline = make_pipeline(FunctionTransformer(lambda x: x), Ridge())
    model = learner_for(pipeline).train(x, squared_error_loss(y))[0]
    with pytest.raises(ModelFolderError, match="The estimator cannot be saved"):
        model.save(tmp_path)


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda folder: (folder / "predictor.json").unlink(), "there is no predictor.json"),
        (lambda folder: (folder / "predictor.json").write_text("{"), "is damaged"),
        (lambda folder: change(folder, version=99), "of kind 'torch' and version 99"),
        (lambda folder: change(folder, kind="os"), "of kind 'os'"),
        (lambda folder: change(folder, n_modules="many"), "missing or damaged"),
        (lambda folder: (folder / "model.safetensors").unlink(), "missing or damaged"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "is damaged"),
        (lambda folder: save_file({}, folder / "model.safetensors"), "for 0 tensors"),
    ],
)
def test_a_folder_that_cannot_be_used_says_why(damage, match, data, tmp_path):
    x, y = data
    TorchLearner(linear(), settings=QUICK).train(x, squared_error_loss(y))[0].save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelFolderError, match=match):
        load_predictor(tmp_path, linear())


def change(folder, **content):
    file = folder / "predictor.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **content}))


# Forged folders --------------------------------------------------------------------------------

HOSTILE: tuple[Any, ...] = (None, -1, 0, 10**9, 1e999, "x", True, [], {}, [-1], [[10**9]])


def boosted(package, name, **parameters):
    def make():
        return learner_for(getattr(pytest.importorskip(package), name)(**parameters))

    return make


FORGED = {
    "linear": lambda: learner_for(None),
    "module": lambda: TorchLearner(linear(), settings=QUICK),
    "pipeline": lambda: learner_for(make_pipeline(StandardScaler(), Ridge())),
    "lightgbm": boosted("lightgbm", "LGBMRegressor", n_estimators=3, num_leaves=4),
    "xgboost": boosted("xgboost", "XGBRegressor", n_estimators=3, max_depth=2),
    "catboost": boosted("catboost", "CatBoostRegressor", iterations=3, verbose=False),
}


def places(content, at=()):
    """Return where in a JSON value something can be replaced."""
    yield at
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))
        else:
            yield (*at, key)


def replaced(content, at, value):
    if not at:
        return value
    copy = content.copy()
    copy[at[0]] = replaced(content[at[0]], at[1:], value)
    return copy


@pytest.fixture
def _never_hang():
    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_never_hang")
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_description_is_refused_or_predicts(name, data, tmp_path):
    x, y = data
    FORGED[name]().train(x, squared_error_loss(y))[0].save(tmp_path)
    file = tmp_path / "predictor.json"
    honest = json.loads(file.read_text())
    for at in places(honest):
        for value in HOSTILE:
            file.write_text(json.dumps(replaced(honest, at, value)))
            try:
                model = load_predictor(tmp_path, linear() if name == "module" else None)
            except ModelFolderError:
                continue
            with suppress(ValueError):  # the features contradict the shape of the label
                assert model.predict(x).shape == (len(x), *model.label_shape), (at, value)
    file.write_text("[" * 100_000)
    with pytest.raises(ModelFolderError, match=r"its predictor.json is damaged"):
        load_predictor(tmp_path)


@pytest.mark.usefixtures("_never_hang")
@pytest.mark.parametrize("name", FORGED)
def test_a_pipe_in_place_of_a_file_is_refused(name, data, tmp_path):
    x, y = data
    FORGED[name]().train(x, squared_error_loss(y))[0].save(tmp_path)
    for file in sorted(tmp_path.iterdir()):
        content = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        with pytest.raises(ModelFolderError, match="cannot be used"):
            load_predictor(tmp_path)
        file.unlink()
        file.write_bytes(content)
    again = load_predictor(tmp_path, linear() if name == "module" else None)
    np.testing.assert_array_equal(again.predict(x).shape, y.shape)


def test_a_small_file_of_many_zeros_is_not_unpacked(data, tmp_path):
    x, y = data
    FORGED["pipeline"]().train(x, squared_error_loss(y))[0].save(tmp_path)
    (file,) = tmp_path.glob("*.skops")
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(2**24))
    with pytest.raises(ModelFolderError, match="bytes when unpacked"):
        load_predictor(tmp_path)
