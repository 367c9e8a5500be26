"""What a user may hand over: frames, contexts, groups, validation instances."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, TimeSeriesSplit

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError
from lodl.training import Learner, Predictor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(30, 4))
CONTEXT = [{"open": is_open} for is_open in RNG.random((30, 4)) < 0.8]
FEATURES, LABELS = ["wind", "sun", "rain"], ["north", "east", "south", "west"]
FRAMES = {"pandas": pd.DataFrame, "polars": lambda x, columns: pl.DataFrame(x, schema=columns)}


def pick_open(y_hat, context):
    return int(np.argmax(np.where(context["open"], y_hat, -9)))


PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
PICK_OPEN = lodl.problem(pick_open, lambda z, y: y[z], sense="max")


def quick(problem=PICK, estimator=None, **arguments):
    settings = {"families": (), "n_rounds": 0, "n_samples": 2}
    return DecisionFocusedRegressor(problem, estimator or Ridge(), **(settings | arguments))


class FrameLearner(Learner):
    """Learns nothing, and sees what it is given."""

    takes_frames = True

    def __init__(self):
        self.seen = []

    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        self.seen.append(x)
        masks = np.ones((1, loss.n_instances), dtype=bool) if masks is None else masks
        return [Constant(loss.y[mask].mean(axis=0)) for mask in masks]


class Constant(Predictor):
    n_steps = 0

    def __init__(self, mean):
        self.label = mean

    def predict(self, x):
        return np.tile(self.label, (len(x), 1))


class NumbersLearner(FrameLearner):
    takes_frames = False


@pytest.fixture(scope="module")
def plain():
    return quick().fit(X, Y)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_give_the_model_of_their_numbers_and_keep_their_names(frame, plain):
    x, y = frame(X, columns=FEATURES), frame(Y, columns=LABELS)
    model = quick().fit(x, y)
    np.testing.assert_allclose(model.predict(x), plain.predict(X), rtol=1e-9)
    np.testing.assert_array_equal(model.regret(x, y), plain.regret(X, Y))
    assert model.score(x, y) == plain.score(X, Y)
    assert list(model.feature_names_in_) == FEATURES
    assert model.result_.label_names == tuple(LABELS)
    assert "Predicts north, east, south, west." in model.summary()
    assert plain.result_.label_names is None
    assert not hasattr(plain, "feature_names_in_")


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_must_be_those_of_fit(frame):
    model = quick().fit(frame(X, columns=FEATURES), Y)
    with pytest.raises(InvalidInputError, match="missing are 'sun'; not known are 'fog'"):
        model.predict(frame(X, columns=["wind", "fog", "rain"]))
    with pytest.raises(InvalidInputError, match="must be a frame with the columns of `fit`: wind"):
        model.predict(X)
    by_position = quick(estimator=NumbersLearner()).fit(frame(X, columns=FEATURES), Y)
    assert by_position.predict(X).shape == Y.shape
    with pytest.raises(
        InvalidInputError, match=r"X has 2 features, but .* is expecting 3 features"
    ):
        by_position.predict(X[:, :2])


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_that_are_no_numbers_are_named(frame):
    x = frame(X, columns=FEATURES)
    texts = [str(value) + "?" for value in X[:, 0]]
    x = x.assign(town=texts) if hasattr(x, "assign") else x.with_columns(town=pl.Series(texts))
    with pytest.raises(InvalidInputError, match=r"`X` must have numbers only, .* in 'town'"):
        quick(estimator=NumbersLearner()).fit(x, Y)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_learner_that_takes_frames_gets_them_as_they_came(frame):
    towns = np.where(X[:, 0] > 0, "Ulm", "Bern")
    x = frame({"town": towns, "sun": X[:, 1]}, columns=["town", "sun"])
    learner = FrameLearner()
    model = quick(estimator=learner).fit(x, Y, validation=(x[:5], Y[:5]))
    assert model.predict(x).shape == Y.shape
    assert {type(one) for one in learner.seen} == {type(x)}
    assert [len(one) for one in learner.seen] == [35, 30]  # all folds at once, and the plain model
    with pytest.raises(InvalidInputError, match=r"`validation\[0\]` must have the columns it"):
        model.fit(x, Y, validation=(x[["town"]], Y))


def test_contexts_may_be_a_list_or_a_frame_of_rows():
    towns = pd.DataFrame({"open": [context["open"] for context in CONTEXT]}, index=range(5, 35))
    expected = quick(PICK_OPEN).fit(X, Y, context=CONTEXT)
    for context in (towns, pl.from_pandas(towns)):
        model = quick(PICK_OPEN).fit(X, Y, context=context)
        assert model.result_.gain == expected.result_.gain
        assert model.decide(X, context) == expected.decide(X, CONTEXT)


def test_a_context_of_fit_is_asked_for_ever_after():
    model = quick(PICK_OPEN).fit(X, Y, context=CONTEXT)
    told = "`context` must be given: the model was fitted with one, got None."
    with pytest.raises(InvalidInputError, match=f"{told} .*enable_metadata_routing=True"):
        model.score(X, Y)
    for use in (lambda: model.regret(X, Y), lambda: model.decide(X)):
        with pytest.raises(InvalidInputError, match=f"{told}$"):
            use()


@pytest.mark.parametrize("validation", [None, 2, 0.3])
def test_groups_are_held_out_as_a_whole(validation):
    groups = np.array(["b", "a", "c", "e", "d"])[np.arange(30) // 6]
    model = quick(random_state=1).fit(X, Y, validation=validation, groups=groups)
    validated = set(groups[[int(name.split()[1]) for name in model.result_.instances]])
    n_groups = {None: 5, 2: 5, 0.3: 2}[validation]
    assert len(validated) == n_groups
    assert len(model.result_.instances) == 6 * n_groups


def test_the_last_fifth_validates_data_in_time_order():
    last = PredefinedSplit(np.where(np.arange(30) < 24, -1, 0))
    model = quick().fit(X, Y, validation=last)
    assert model.result_.instances == tuple(f"instance {i}" for i in range(24, 30))
    assert model.result_.validation == "6 instances, held out once"


def test_later_instances_validate_models_of_a_time_series():
    model = quick().fit(X, Y, validation=TimeSeriesSplit(4))
    assert model.result_.instances == tuple(f"instance {i}" for i in range(6, 30))
    assert model.result_.validation == "24 instances, 4 folds"


def test_groups_that_cannot_be_held_out_are_refused():
    with pytest.raises(InvalidInputError, match="`groups` must name at least 2 groups"):
        quick().fit(X, Y, groups=np.zeros(30))
    with pytest.raises(InvalidInputError, match="`groups` must be None if `validation` gives"):
        quick().fit(X, Y, groups=np.arange(30), validation=(X, Y))
