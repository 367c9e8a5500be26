"""Masks that every learner refuses, and the registry of predictors."""

import numpy as np
import pytest

from lodl.errors import InvalidInputError, ModelFolderError
from lodl.losses import squared_error_loss
from lodl.training import Predictor, learner_for, load_predictor

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6.0).reshape(6, 1) ** 2


@pytest.mark.parametrize(
    ("masks", "match"),
    [
        (np.ones((1, 5), dtype=bool), r"booleans of shape \(n_models, 6\), got bool of shape"),
        (np.ones(6, dtype=bool), "booleans of shape"),
        (np.ones((1, 6)), "got float64"),
        (np.ones((0, 6), dtype=bool), "booleans of shape"),
        (np.zeros((1, 6), dtype=bool), "an instance to train on in every row"),
        (np.arange(12).reshape(2, 6) > 3, "in every row or in none"),
    ],
)
def test_masks_that_make_no_sense_are_refused(masks, match):
    with pytest.raises(InvalidInputError, match=match):
        learner_for(None).train(X, squared_error_loss(Y), masks)


def test_a_mask_of_everything_is_no_mask():
    masks = np.ones((2, 6), dtype=bool)
    (model,), both = (learner_for(None).train(X, squared_error_loss(Y), m) for m in (None, masks))
    for twin in both:
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))


class Constant(Predictor):
    n_steps, n_features, label_shape = 0, 2, (1,)

    def predict(self, x):
        return np.zeros((len(x), 1))


def test_a_predictor_without_a_file_format_says_so(tmp_path):
    with pytest.raises(ModelFolderError, match="Constant cannot be saved"):
        Constant().save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_kind_has_one_class():
    class First(Constant):
        kind = "constant of a test"

    with pytest.raises(TypeError, match="`kind` must be unique"):

        class Second(Constant):
            kind = "constant of a test"


def test_a_kind_whose_module_is_not_imported_is_named(tmp_path):
    class Unknown(Constant):
        kind = "soon forgotten"

    Unknown().write(tmp_path)
    with pytest.raises(ModelFolderError, match="Unknown does not override `load`"):
        load_predictor(tmp_path)
    text = (tmp_path / "predictor.json").read_text().replace("soon", "long")
    (tmp_path / "predictor.json").write_text(text)
    with pytest.raises(ModelFolderError, match=r"'long forgotten'.* Import the module"):
        load_predictor(tmp_path)
