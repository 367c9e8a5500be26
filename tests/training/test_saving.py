"""Trained models in folders, and back."""

import json

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


def network():
    return nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))


MODELS = {
    "linear": (lambda: learner_for(None), None),
    "linear module": (lambda: TorchLearner(settings=QUICK), None),
    "module": (lambda: TorchLearner(network(), settings=QUICK), network),
    "double": (lambda: TorchLearner(network().double(), settings=QUICK), network),
    "pipeline": (lambda: learner_for(make_pipeline(StandardScaler(), Ridge())), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_predicts_the_same(name, data, tmp_path):
    x, y = data
    learner, estimator = MODELS[name]
    model = learner().train(x, squared_error_loss(y))
    model.save(tmp_path / "model")
    again = load_predictor(tmp_path / "model", estimator and estimator())
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert again.n_steps == model.n_steps
    for file in (tmp_path / "model").iterdir():
        assert b"pickle" not in file.read_bytes()


def test_a_linear_model_of_items_is_rebuilt_from_its_shape(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3, 2)), rng.normal(size=(20, 3))
    model = TorchLearner(settings=QUICK).train(x, squared_error_loss(y))
    model.save(tmp_path)
    np.testing.assert_array_equal(load_predictor(tmp_path).predict(x), model.predict(x))


def test_a_module_is_handed_over_again(data, tmp_path):
    x, y = data
    TorchLearner(network(), settings=QUICK).train(x, squared_error_loss(y)).save(tmp_path)
    with pytest.raises(ModelFolderError, match="hand over the untrained module as `estimator`"):
        load_predictor(tmp_path)
    with pytest.raises(ModelFolderError, match="`estimator` is another architecture"):
        load_predictor(tmp_path, nn.Linear(2, 3))


def test_what_a_forged_file_could_misuse_is_loaded_only_if_trusted(data, tmp_path):
    x, y = data
    forest = RandomForestRegressor(2, random_state=0)
    model = learner_for(forest).train(x, squared_error_loss(y))
    model.save(tmp_path)
    with pytest.raises(ModelFolderError, match=r"trusted=\['sklearn.tree._tree.Tree'\]"):
        load_predictor(tmp_path)
    again = load_predictor(tmp_path, trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_what_cannot_be_found_again_is_not_saved(data, tmp_path):
    x, y = data
    pipeline = make_pipeline(FunctionTransformer(lambda x: x), Ridge())
    model = learner_for(pipeline).train(x, squared_error_loss(y))
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
        (lambda folder: save_file({}, folder / "model.safetensors"), "another architecture"),
    ],
)
def test_a_folder_that_cannot_be_used_says_why(damage, match, data, tmp_path):
    x, y = data
    TorchLearner(settings=QUICK).train(x, squared_error_loss(y)).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelFolderError, match=match):
        load_predictor(tmp_path)


def change(folder, **content):
    file = folder / "predictor.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **content}))
