"""Model folders that somebody has forged, checksums included, and folders that must not be used."""

import hashlib
import json
import shutil
import signal
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.training import Learner, Predictor, learner_for

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(24, 4))
PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
HOSTILE: tuple[Any, ...] = (None, -1, 10**9, 0, 1e999, "x", True, [], {}, [[-1]], [10**12])


def quick(estimator=None, **arguments):
    settings = {"families": (), "n_rounds": 0, "n_samples": 2}
    return DecisionFocusedRegressor(PICK, estimator, **(settings | arguments))


@pytest.fixture(scope="module")
def model():
    return quick(random_state=3).fit(X, Y)


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
    return json.loads((folder / "result.json").read_text())


def forge(folder, **changes):
    """Change `result.json`, and make the checksums of all files anew."""
    text = json.dumps(content_of(folder) | changes).replace("Infinity", "1e999")
    (folder / "result.json").write_text(text)
    renew(folder)


def renew(folder):
    """Make the checksums of all files anew."""
    checksums = folder / "checksums.json"
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path != checksums
    }
    checksums.write_text(json.dumps({"lodl_model": 3, "files": files}))


# Loading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["oracle", "verbose", "estimator", "families", "_used"])
def test_a_parameter_that_acts_outside_the_model_is_not_restored(folder, name):
    forge(folder, settings={**content_of(folder)["settings"], name: "/somewhere/else"})
    assert getattr(lodl.load_model(folder, PICK), name) != "/somewhere/else"


def test_the_settings_of_a_fit_are_restored(folder):
    loaded = lodl.load_model(folder, PICK)
    assert (loaded.n_samples, loaded.n_rounds, loaded.random_state) == (2, 0, 3)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"label_shape": [-1]}, "`label_shape` must be positive"),
        ({"label_shape": [2, 3]}, r"`mean_label` must have the shape \(2, 3\)"),
        ({"label_names": ["a"]}, "`label_names`"),
        ({"n_features": 0}, "`n_features`"),
        ({"n_features": 5}, "a model in it has 3 features .* says 5"),
        ({"feature_names": ["a"]}, "`feature_names`"),
        ({"regret_selected": []}, "`regret_selected`"),
        ({"shrinkage": 1e999}, "`shrinkage`"),
        ({"settings": {"n_samples": "many"}}, "`n_samples` has an unsuitable value"),
        ({"settings": {}}, "`ensemble` has an unsuitable value"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_the_folder_are_named(folder, changes, match):
    forge(folder, **changes)
    with pytest.raises(ModelFolderError, match=match):
        lodl.load_model(folder, PICK)


def test_a_model_that_is_missing_or_wrongly_numbered_is_named(folder):
    (folder / "baseline" / "0").rename(folder / "baseline" / "7")
    renew(folder)
    with pytest.raises(ModelFolderError, match=r"baseline must be numbered from 0, got \['7'\]"):
        lodl.load_model(folder, PICK)
    shutil.rmtree(folder / "baseline")
    renew(folder)
    with pytest.raises(ModelFolderError, match="baseline must be numbered from 0, got"):
        lodl.load_model(folder, PICK)


@pytest.mark.slow
def test_any_forged_value_is_refused_or_harmless(folder):
    honest = content_of(folder)
    for name in honest.keys() - {"lodl_result"}:
        for value in HOSTILE:
            forge(folder, **(honest | {name: value}))
            try:
                loaded = lodl.load_model(folder, PICK)
            except ModelFolderError:
                continue
            assert loaded.predict(X).shape == Y.shape, (name, value)
            if not loaded.result_.has_context:
                assert loaded.regret(X, Y).shape == (len(X),), (name, value)
            loaded.summary()


@pytest.mark.parametrize("file", ["result.json", "checksums.json"])
def test_files_that_are_no_records_are_refused(folder, file):
    for text in ("[" * 100_000, "[]", "7", '{"lodl_model": NaN}', "\xff", '{"lodl_model": 3}'):
        (folder / file).write_bytes(text.encode("latin-1"))
        if file == "result.json":
            renew(folder)
        with pytest.raises(ModelFolderError, match="cannot be used"):
            lodl.load_model(folder, PICK)


# Saving ----------------------------------------------------------------------------------------


def test_parameters_may_be_numpy_numbers_and_infinite(tmp_path):
    arguments = {
        "n_samples": np.int64(2),
        "n_rounds": np.int32(0),
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
    inner: Any
    n_steps: int = 1

    def predict(self, x):
        return self.inner.predict(x)


class OwnLearner(Learner):
    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        return [OwnPredictor(model) for model in learner_for(None).train(x, loss, masks)]


def test_a_predictor_that_could_not_be_loaded_is_not_saved(tmp_path):
    model = quick(OwnLearner()).fit(X, Y)
    with pytest.raises(ModelFolderError, match="OwnPredictor cannot be saved to"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
