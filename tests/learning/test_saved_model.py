import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor
from torch import nn

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError, ModelFolderError
from lodl.learning import load_result
from lodl.training import Predictor
from lodl.training.torch import TorchLearner, TrainingSettings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(24, 4))
FRAME = pd.DataFrame(X, columns=["wind", "sun", "rain"])
LABELS = pd.DataFrame(Y, columns=["north", "east", "south", "west"])
PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
MODULE = nn.Linear(3, 4)


def quick(estimator, **arguments):
    settings = {"families": (), "n_rounds": 0, "n_samples": 2}
    return DecisionFocusedRegressor(PICK, estimator, **(settings | arguments))


@pytest.fixture(scope="module")
def model():
    return quick(Ridge(), random_state=3).fit(FRAME, LABELS)


@pytest.fixture
def folder(model, tmp_path):
    return model.save(tmp_path / "model")


def test_a_loaded_model_predicts_and_decides_with_the_same_bits(model, folder):
    loaded = lodl.load_model(folder, PICK)
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(loaded.baseline_.predict(FRAME), model.baseline_.predict(FRAME))
    assert loaded.decide(FRAME) == model.decide(FRAME)
    assert loaded.score(FRAME, LABELS) == model.score(FRAME, LABELS)
    assert loaded.summary() == model.summary()
    assert loaded.result_ == model.result_ == load_result(folder)
    assert loaded.random_state == 3
    with pytest.raises(InvalidInputError, match="`X` must have the columns it had in `fit`"):
        loaded.predict(FRAME.rename(columns={"sun": "moon"}))
    turned = FRAME[FRAME.columns[::-1]]
    np.testing.assert_array_equal(loaded.predict(turned), model.predict(FRAME))
    np.testing.assert_array_equal(loaded.baseline_.predict(turned), loaded.baseline_.predict(FRAME))


def test_another_problem_is_taken_with_a_warning(folder, caplog):
    lodl.load_model(folder, PICK)
    assert not caplog.text
    lodl.load_model(folder, lodl.domains.TopK(3))
    assert "and will decide by TopK(budget=3)" in caplog.text


class Shop(lodl.LinearProblem):
    """A plain class whose parameters its text does not show."""

    sense = "max"

    def __init__(self, budget, prices=(1, 2)):
        self.budget, self._prices, self.n_calls = budget, prices, 0

    def solve(self, y_hat, context):
        self.n_calls += 1
        return (y_hat >= np.sort(y_hat)[-self.budget]).astype(float)


def test_a_plain_class_with_other_parameters_is_taken_with_a_warning_that_names_them(
    tmp_path, caplog
):
    model = quick(Ridge()).set_params(oracle=Shop(2)).fit(X, Y)
    folder = model.save(tmp_path / "model")
    caplog.clear()
    lodl.load_model(folder, Shop(2))
    lodl.load_model(folder, Shop(2.0, prices=[1, 2]))
    assert not caplog.text
    lodl.load_model(folder, Shop(3))
    assert "fitted for Shop with budget=2 and will decide by Shop with budget=3." in caplog.text
    caplog.clear()
    lodl.load_model(folder, Shop(3, prices=object()))
    assert (
        "fitted for Shop with budget=2, prices=[1, 2] and will decide by Shop with budget=3, "
        "other prices."
    ) in caplog.text


@pytest.mark.slow
def test_a_module_is_handed_over_again(tmp_path):
    learner = TorchLearner(MODULE, n_initialisations=2, settings=TrainingSettings(n_steps=5))
    model = quick(learner, families=(lodl.DecisionHinges(),)).fit(X, Y)
    loaded = lodl.load_model(model.save(tmp_path / "model"), PICK, MODULE)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_types_that_might_do_harm_must_be_trusted(tmp_path):
    model = quick(DecisionTreeRegressor(max_depth=2, random_state=0)).fit(X, Y)
    folder = model.save(tmp_path / "model")
    with pytest.raises(ModelFolderError, match=r"load it with `trusted=\['sklearn.tree"):
        lodl.load_model(folder, PICK)
    loaded = lodl.load_model(folder, PICK, trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.slow
def test_a_loaded_model_can_report(model, tmp_path):
    page = model.report(tmp_path / "one.html").read_text()
    loaded = lodl.load_model(model.save(tmp_path / "model"), PICK)
    assert loaded.report(tmp_path / "two.html").read_text() == page


def test_nothing_is_overwritten_in_silence(model, folder, tmp_path):
    with pytest.raises(InvalidInputError, match="`folder` must not exist yet"):
        model.save(folder)
    (folder / "predictors" / "extra").mkdir()
    model.save(folder, overwrite=True)
    assert not (folder / "predictors" / "extra").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    np.testing.assert_array_equal(
        lodl.load_model(folder, PICK).predict(FRAME), model.predict(FRAME)
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(InvalidInputError, match="`folder` must be one of a model to be replaced"):
        model.save(tmp_path / "mine", overwrite=True)


def test_a_changed_byte_in_any_file_is_noticed(folder):
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        for place in np.random.default_rng(0).integers(len(content), size=8).tolist():
            changed = bytes([content[place] ^ 1])
            path.write_bytes(content[:place] + changed + content[place + 1 :])
            with pytest.raises(ModelFolderError, match="cannot be used"):
                lodl.load_model(folder, PICK)
        path.write_bytes(content)
    lodl.load_model(folder, PICK)


def test_files_that_are_missing_or_new_are_named(folder):
    (folder / "predictors" / "new.txt").write_text("hello")
    with pytest.raises(ModelFolderError, match=r"predictors/new.txt is damaged, or was not saved"):
        lodl.load_model(folder, PICK)
    (folder / "predictors" / "new.txt").unlink()
    next(path for path in folder.rglob("predictors/0/*")).unlink()
    with pytest.raises(ModelFolderError, match=r"predictors/0/.* is missing"):
        lodl.load_model(folder, PICK)


def test_other_folders_and_versions_say_what_they_are(folder, tmp_path):
    with pytest.raises(ModelFolderError, match=r"there is no checksums.json in it"):
        lodl.load_model(tmp_path, PICK)
    content = json.loads((folder / "checksums.json").read_text())
    (folder / "checksums.json").write_text(json.dumps(content | {"lodl_model": 99}))
    with pytest.raises(ModelFolderError, match="its format is 99, this package reads 3"):
        lodl.load_model(folder, PICK)


def test_what_cannot_be_saved_says_so(model, tmp_path):
    class Stub(Predictor):
        def predict(self, x):
            return x

    broken = quick(Ridge()).fit(X, Y)
    broken.predictors_ = [Stub()]
    with pytest.raises(ModelFolderError, match="Stub cannot be saved"):
        broken.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
