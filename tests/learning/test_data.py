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


def test_contexts_of_validation_instances_may_be_an_array():
    is_open = RNG.random((35, 4)) < 0.8
    given = (X[:5] + 1, Y[:5], is_open[30:])
    problem = lodl.problem(
        lambda y_hat, context: int(np.argmax(np.where(context, y_hat, -9))),
        lambda z, y: y[z],
        sense="max",
    )
    by_array = quick(problem).fit(X, Y, context=is_open[:30], validation=given)
    in_lists = (*given[:2], list(is_open[30:]))
    by_list = quick(problem).fit(X, Y, context=list(is_open[:30]), validation=in_lists)
    assert by_array.result_.regret_selected == by_list.result_.regret_selected


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


# Rows of items, and contexts as frames ---------------------------------------------------------


def long_frame():
    """Returns features of items, shape (30, 4, 2), and a frame with a row for each, shuffled."""
    items = RNG.normal(size=(30, 4, 2))
    rows = pd.MultiIndex.from_product([range(30), LABELS], names=["day", "market"])
    frame = pd.DataFrame(items.reshape(-1, 2), index=rows, columns=["wind", "sun"])
    return items, frame.sample(frac=1, random_state=0)


def test_the_error_of_a_row_for_each_item_has_the_code_that_mends_it():
    items, frame = long_frame()
    labels = pd.DataFrame(Y, columns=LABELS)
    with pytest.raises(InvalidInputError, match=r"pass an array \(n, items, p\)") as raised:
        quick().fit(frame, labels)
    code = str(raised.value).split("`")[-2]
    mended = eval(code, {"pandas": pd, "X": frame, "Y": labels})
    np.testing.assert_array_equal(mended, items)
    quick().fit(mended, labels)


def test_the_code_that_mends_rows_of_items_encodes_their_texts():
    _, frame = long_frame()
    frame["weather"] = np.where(frame["sun"] > 0, "fine", "rain")
    labels = pd.DataFrame(Y, columns=LABELS)
    with pytest.raises(InvalidInputError, match=r"reshape\(30, 4, -1\)") as raised:
        quick().fit(frame, labels)
    mended = eval(str(raised.value).split("`")[-2], {"pandas": pd, "X": frame, "Y": labels})
    assert mended.shape == (30, 4, 4)
    quick().fit(mended, labels)


def test_an_array_with_texts_is_refused_by_name():
    features = np.array([["1.5", "Monday"]] * 30, dtype=object)
    for array in (features, features.astype(str)):
        with pytest.raises(InvalidInputError, match=r"`X` must be an array of numbers: .*'Monday'"):
            quick().fit(array, Y)
    quick().fit(np.asarray(X, dtype=object), Y)


def test_a_row_for_each_item_is_recognised_before_its_texts_are_refused():
    _, frame = long_frame()
    with pytest.raises(InvalidInputError, match=r"pass an array \(n, items, p\).*reshape\(30, -1"):
        quick().fit(frame.reset_index(), Y)


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_a_context_in_every_function_that_takes_one(name):
    columns = [f"open {i}" for i in range(4)]
    is_open = np.array([row["open"] for row in CONTEXT])
    frame = FRAMES[name](is_open, columns=columns)

    def pick(y_hat, context):
        return int(np.argmax(np.where([context[column] for column in columns], y_hat, -9)))

    problem = lodl.problem(pick, lambda z, y: y[z], sense="max")
    oracle, y_hat = lodl.Oracle(problem), Y + RNG.normal(size=Y.shape)
    expected = lodl.Oracle(PICK_OPEN).regret(y_hat, Y, context=CONTEXT)
    assert "is ok" in str(lodl.testing.check_problem(problem, Y, context=frame))
    np.testing.assert_array_equal(
        lodl.evaluation.regret(problem, y_hat, Y, context=frame), expected
    )
    np.testing.assert_array_equal(oracle.regret(y_hat, Y, context=frame), expected)
    assert lodl.evaluation.decision_loss(problem, y_hat, Y, context=frame).shape == (30,)
    assert len(oracle.decide(y_hat, context=frame)) == 30
    assert oracle.is_affine(Y, context=frame)
    assert len(oracle.sample(Y, n_samples=2, context=frame)) == 30
    assert lodl.learn_loss(oracle, Y, context=frame, n_samples=2).y.shape == Y.shape
    model = quick(problem).fit(X, Y, context=frame)
    assert len(model.decide(X, frame)) == 30
    assert model.regret(X, Y, frame).shape == (30,)
    assert "30 test instances" in str(model.evaluate(X, Y, frame))
