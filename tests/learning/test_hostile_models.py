"""Model folders that somebody has forged, checksums included, and folders that must not be used."""

import hashlib
import json
import signal
from dataclasses import dataclass

import numpy as np
import pytest

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.learning._model_folder import load_record
from lodl.training import Learner, Predictor, learner_for

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(24, 4))
PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
HOSTILE = (None, -1, 10**9, 0, 1e999, "x", True, [], {}, [[-1]], [10**12])


def quick(estimator=None, **arguments):
    settings = {"families": (), "n_rounds": 0, "n_samples": 2}
    return DecisionFocusedRegressor(PICK, estimator, **(settings | arguments))


@pytest.fixture(scope="module")
def model():
    return quick(shuffle=False).fit(X, Y)


@pytest.fixture
def folder(model, tmp_path):
    return model.save(tmp_path / "model")


@pytest.fixture(autouse=True)
def _never_hang():
    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def content_of(folder):
    return json.loads((folder / "model.json").read_text())


def forge(folder, **changes):
    """Change `model.json`, and make the checksums of all files anew."""
    content = content_of(folder)
    del content["sha256"]
    content |= changes
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "model.json"]
    content["files"] |= {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    text = json.dumps(content | {"sha256": digest}).replace("Infinity", "1e999")
    (folder / "model.json").write_text(text)


# Loading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["oracle", "verbose", "estimator", "families", "_record", "_used"])
def test_a_parameter_that_acts_outside_the_model_is_not_restored(folder, name):
    forge(folder, parameters={**content_of(folder)["parameters"], name: "/somewhere/else"})
    assert getattr(lodl.load_model(folder, PICK), name) != "/somewhere/else"


def test_the_settings_of_a_fit_are_restored(folder):
    loaded = lodl.load_model(folder, PICK)
    assert (loaded.n_samples, loaded.n_rounds, loaded.shuffle) == (2, 0, False)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"n_predictors": 10**9}, "`n_predictors` is 1000000000, the folder has 5"),
        ({"n_predictors": -1}, "`n_predictors` is -1"),
        ({"n_predictors": 0}, "`n_predictors` is 0"),
        ({"n_two_stage": 10**9}, "`n_two_stage` is 1000000000"),
        ({"label_shape": [-1]}, r"`label_shape` is \(-1,\)"),
        ({"label_shape": [2, 3]}, r"`label_shape` is \(2, 3\).*4 numbers"),
        ({"label_names": ["a"]}, "`label_names`"),
        ({"n_features": 0}, "`n_features`"),
        ({"feature_names": ["a"]}, "`feature_names`"),
        ({"held_out": []}, "`held_out`"),
        ({"held_out": [[0], [1.0, 2.0], [1.0]]}, "`held_out`"),
        ({"kept": 1e999}, "`kept`"),
    ],
    ids=str,
)
def test_numbers_that_do_not_fit_the_folder_are_named(model, folder, changes, match):
    if "n_predictors" in changes:
        match = match.replace("has 5", f"has {len(model.predictors_)}")
    forge(folder, **changes)
    with pytest.raises(ModelFolderError, match=match):
        lodl.load_model(folder, PICK)


def test_any_forged_value_is_refused_or_harmless(folder, model):
    honest = content_of(folder)
    del honest["sha256"]
    for name in honest.keys() - {"files", "lodl_model"}:
        for value in HOSTILE:
            forge(folder, **(honest | {name: value}))
            try:
                loaded = lodl.load_model(folder, PICK)
            except ModelFolderError:
                continue
            assert loaded.predict(X).shape == Y.shape, (name, value)
            if not loaded.has_context_:
                assert loaded.regret(X, Y).shape == (len(X),), (name, value)
            loaded.summary()
    for text in ("[" * 100_000, "[]", "7", '{"lodl_model": NaN}', "\xff"):
        (folder / "model.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(ModelFolderError, match="cannot be used"):
            lodl.load_model(folder, PICK)


def test_a_forged_record_is_refused(model, tmp_path):
    model.record()
    folder = model.save(tmp_path / "model")
    model._record = None
    honest = json.loads((folder / "record.json").read_text())
    for change in ({"instances": 7}, {"regret_selected": "x"}, {"trials": [[]]}, {"instances": []}):
        (folder / "record.json").write_text(json.dumps(honest | change))
        forge(folder)
        with pytest.raises(ModelFolderError, match="cannot be used"):
            load_record(folder)
    (folder / "record.json").write_text("[" * 100_000)
    forge(folder)
    with pytest.raises(ModelFolderError, match=r"record.json is damaged"):
        lodl.load_model(folder, PICK)


# Saving ----------------------------------------------------------------------------------------


def test_parameters_may_be_numpy_numbers_and_infinite(tmp_path):
    arguments = {
        "n_samples": np.int64(2),
        "n_rounds": np.int32(0),
        "n_per_round": np.int64(1),
        "ensemble": np.bool_(True),
        "max_calls": np.int64(10_000),
        "max_seconds": np.inf,
        "random_state": np.int64(3),
    }
    model = quick(**arguments).fit(X, Y)
    loaded = lodl.load_model(model.save(tmp_path / "model"), PICK)
    expected = arguments | {"max_seconds": None}  # which is no limit, too
    assert {name: getattr(loaded, name) for name in arguments} == expected
    assert type(loaded.random_state) is int
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("target", ["model", "empty", "nowhere"])
def test_a_link_is_neither_followed_nor_replaced(model, folder, tmp_path, target, overwrite):
    (tmp_path / "empty").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / target)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(
        InvalidInputError, match=r"`folder` must not be a symbolic link, got .*link"
    ):
        model.save(link, overwrite=overwrite)
    assert sorted(tmp_path.rglob("*")) == before
    assert link.is_symlink()
    lodl.load_model(folder, PICK)


@dataclass
class OwnPredictor(Predictor):
    inner: object
    n_steps: int = 1

    def predict(self, x):
        return self.inner.predict(x)


class OwnLearner(Learner):
    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        return [OwnPredictor(model) for model in learner_for(None).train(x, loss, masks)]


def test_a_predictor_that_could_not_be_loaded_is_not_saved(tmp_path):
    model = quick(OwnLearner()).fit(X, Y)
    told = r"A OwnPredictor cannot be saved: it does not override `save` and `load`"
    with pytest.raises(InvalidInputError, match=told):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
