"""Frames are matched by the names of their columns and rows, arrays by position."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lodl
from lodl import DecisionFocusedRegressor
from lodl.errors import InvalidInputError
from lodl.evaluation import decision_loss, regret, regret_scorer
from lodl.learning import Schedule, learn_in_rounds
from lodl.oracle import Oracle
from lodl.testing import check_problem
from lodl.training import Learner, Predictor

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)) * [1.0, 5.0, 25.0]
Y = X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(N, 4)) + [0.0, 10.0, 20.0, 30.0]
OPEN = RNG.random((N, 4)) < 0.8
LABELS = ["north", "east", "south", "west"]
NOISE = lodl.AllPerturbed(scale=1.0)
DAYS = [f"day {number}" for number in range(N)]
FRAMES = {"pandas": pd.DataFrame, "polars": lambda x, columns: pl.DataFrame(x, schema=columns)}
COLUMNS = {
    "texts": ["wind", "sun", "rain"],
    "years": [2019, 2021, 2020],
    "positions": [0, 1, 2],
    "mixed": ["wind", 7, "rain"],
    "levels": pd.MultiIndex.from_tuples([("sky", "sun"), ("sky", "wind"), ("soil", "rain")]),
}


def pick_open(y_hat, context):
    is_open = True if context is None else np.array([context[f"open {i}"] for i in range(4)])
    return int(np.argmax(np.where(is_open, y_hat, -999.0)))


PICK = lodl.problem(np.argmax, lambda z, y: y[z], sense="max")
PICK_OPEN = lodl.problem(pick_open, lambda z, y: y[z], sense="max")
CONTEXT = pd.DataFrame(OPEN, columns=[f"open {i}" for i in range(4)])


class Named(lodl.LinearProblem):
    sense = "max"
    label_names = LABELS

    def solve(self, y_hat, context=None):
        return np.eye(4)[np.argmax(y_hat)]


class NumbersLearner(Learner):
    """A linear model of arrays; frames are turned into numbers before it sees them."""

    def train(self, x, loss, masks=None, *, prepared=None, n_steps=None):
        masks = np.ones((1, len(x)), dtype=bool) if masks is None else masks
        rows = np.c_[x, np.ones(len(x))]
        return [Linear(np.linalg.lstsq(rows[mask], loss.y[mask], rcond=None)[0]) for mask in masks]


class FrameLearner(NumbersLearner):
    takes_frames = True


class Linear(Predictor):
    n_steps = 0

    def __init__(self, weights):
        self.weights = weights

    def predict(self, x):
        return np.c_[x, np.ones(len(x))] @ self.weights


def quick(problem=PICK, estimator=None, **arguments):
    settings = {"families": (), "n_rounds": 0, "n_samples": 2}
    return DecisionFocusedRegressor(
        problem, estimator or NumbersLearner(), **(settings | arguments)
    )


def train_nothing(loss):
    return None, loss.y + 0.0


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("learner", [NumbersLearner, FrameLearner])
def test_features_in_another_column_order_give_the_same_predictions(columns, learner):
    estimator = learner()
    x = pd.DataFrame(X, columns=columns)
    turned = x.iloc[:, ::-1]
    model = quick(estimator=estimator).fit(x, Y)
    np.testing.assert_array_equal(model.predict(turned), model.predict(x))
    baseline = model.baseline_
    np.testing.assert_array_equal(baseline.predict(turned), baseline.predict(x))


@pytest.mark.parametrize("learner", [NumbersLearner, FrameLearner])
def test_validation_features_in_another_column_order_give_the_same_gain(learner):
    x = pd.DataFrame(X, columns=COLUMNS["levels"])
    new = x[:9] + 1
    gains = [
        quick(estimator=learner()).fit(x, Y, validation=(table, Y[:9])).result_.gain
        for table in (new, new.iloc[:, ::-1])
    ]
    assert gains[0] == gains[1]


def test_features_of_polars_in_another_column_order_give_the_same_predictions():
    x = pl.DataFrame(X, schema=["wind", "sun", "rain"])
    model = quick().fit(x, Y)
    np.testing.assert_array_equal(model.predict(x[:, ::-1]), model.predict(x))


def test_columns_without_names_are_matched_by_position():
    named = pd.DataFrame(X, columns=COLUMNS["texts"])
    model = quick().fit(named, Y)
    np.testing.assert_array_equal(model.predict(X), model.predict(named))
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X)), model.predict(named))
    assert not hasattr(quick().fit(pd.DataFrame(X), Y), "feature_names_in_")


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_labels_in_another_column_order_are_scored_by_name(frame):
    y, turned = frame(Y, columns=LABELS), frame(Y[:, ::-1], columns=LABELS[::-1])
    model = quick().fit(X, y)
    np.testing.assert_array_equal(model.regret(X, turned), model.regret(X, Y))
    assert model.score(X, turned) == model.score(X, Y)
    assert regret_scorer()(model, X, turned) == regret_scorer()(model, X, Y)
    validated = quick().fit(X, y, validation=(X[:9] + 1, turned[:9]))
    assert validated.result_.gain == quick().fit(X, Y, validation=(X[:9] + 1, Y[:9])).result_.gain


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_labels_with_other_columns_are_refused(frame):
    model = quick().fit(X, frame(Y, columns=LABELS))
    others = frame(Y, columns=["north", "east", "south", "up"])
    told = "must have the columns it had in `fit`: missing are 'west'; not known are 'up'"
    for use in (model.regret, model.score, lambda x, y: regret_scorer()(model, x, y)):
        with pytest.raises(InvalidInputError, match=f"`Y` {told}"):
            use(X, others)
    with pytest.raises(InvalidInputError, match=r"`validation\[1\]` must have the columns it had"):
        quick().fit(X, frame(Y, columns=LABELS), validation=(X, others))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_label_columns_follow_the_names_of_the_problem(frame):
    turned = frame(Y[:, ::-1], columns=LABELS[::-1])
    model = quick(Named()).fit(X, turned)
    assert model.result_.label_names == tuple(LABELS)
    np.testing.assert_array_equal(model.predict(X), quick(Named()).fit(X, Y).predict(X))
    np.testing.assert_array_equal(regret(Named(), Y[::-1], turned), regret(Named(), Y[::-1], Y))
    loss = lodl.learn_loss(Named(), turned, n_samples=2)
    np.testing.assert_array_equal(loss.y, Y)
    others = frame(Y, columns=["a", "b", "c", "d"])
    told = r"must have the columns in `problem.label_names`: missing are 'north', .* known are 'a'"
    for use in (
        lambda: quick(Named()).fit(X, others),
        lambda: regret(Named(), Y, others),
        lambda: lodl.learn_loss(Named(), others),
        lambda: learn_in_rounds(Named(), others, train_nothing),
        lambda: check_problem(Named(), others),
        lambda: Oracle(Named()).is_affine(others),
        lambda: Oracle(Named()).sample(others, NOISE, 2),
        lambda: decision_loss(Named(), Y, others),
    ):
        with pytest.raises(InvalidInputError, match=told):
            use()


@pytest.mark.parametrize("measure", [decision_loss, regret])
def test_predictions_are_measured_against_the_labels_of_their_names(measure):
    y, y_hat = (pd.DataFrame(one, columns=LABELS, index=DAYS) for one in (Y, Y + 5 * X[:, :1]))
    y_hat["west"] -= 40
    expected = measure(PICK, y_hat.to_numpy(), Y)
    np.testing.assert_array_equal(measure(PICK, y_hat[LABELS[::-1]], y), expected)
    with pytest.raises(InvalidInputError, match="The rows of `y` and `y_hat` must be in the same"):
        measure(PICK, y_hat[::-1], y)
    with pytest.raises(InvalidInputError, match="`y_hat` must have the columns of `y`: missing"):
        measure(PICK, y_hat.rename(columns={"west": "up"}), y)


@pytest.mark.parametrize("what", ["X", "Y", "context"])
def test_columns_of_the_same_name_are_refused(what):
    tables = {"X": pd.DataFrame(X), "Y": pd.DataFrame(Y), "context": CONTEXT.copy()}
    tables[what].columns = ["twice", "twice", "third", "fourth"][: tables[what].shape[1]]
    told = f"`{what}` must have distinct column names, got 'twice' more than once"
    with pytest.raises(InvalidInputError, match=told):
        quick(PICK_OPEN).fit(**tables)


NAMED_ROWS = {
    "texts": DAYS,
    "dates": pd.date_range("2024-01-01", periods=N),
    "integers": np.random.default_rng(1).permutation(N),
}


@pytest.mark.parametrize("rows", NAMED_ROWS.values(), ids=NAMED_ROWS)
def test_rows_in_another_order_are_refused_wherever_frames_meet(rows):
    x, y, context = (pd.DataFrame(one, index=rows) for one in (X, Y, CONTEXT.to_numpy()))
    context.columns = CONTEXT.columns
    groups = pd.Series(np.arange(N) // 3, index=rows)
    model = quick(PICK_OPEN).fit(x, y, context=context, groups=groups)
    for use, meet in [
        (lambda: quick().fit(x, y[::-1]), "`X` and `Y`"),
        (lambda: quick().fit(x, y[::-1][0]), "`X` and `Y`"),
        (lambda: quick(PICK_OPEN).fit(x, Y, context=context[::-1]), "`X` and `context`"),
        (lambda: quick(PICK_OPEN).fit(X, y, context=context[::-1]), "`Y` and `context`"),
        (lambda: quick().fit(x, y, groups=groups[::-1]), "`X` and `groups`"),
        (lambda: quick().fit(x, y, validation=(x, y[::-1])), r"`validation\[0\]` and `valid"),
        (lambda: model.regret(x, y[::-1], context), "`X` and `Y`"),
        (lambda: model.score(x, y[::-1], context), "`X` and `Y`"),
        (lambda: model.decide(x, context[::-1]), "`X` and `context`"),
        (lambda: model.regret(x, Y, context[::-1]), "`X` and `context`"),
        (lambda: regret_scorer()(model, x, y[::-1], context), "`X` and `Y`"),
        (lambda: regret(PICK_OPEN, Y, y, context=context[::-1]), "`y` and `context`"),
        (lambda: check_problem(PICK_OPEN, y, context=context[::-1]), "`y` and `context`"),
        (lambda: lodl.learn_loss(PICK_OPEN, y, context=context[::-1]), "`y` and `context`"),
        (
            lambda: learn_in_rounds(PICK_OPEN, y, train_nothing, context=context[::-1]),
            "`y` and `context`",
        ),
    ]:
        with pytest.raises(
            InvalidInputError, match=rf"The rows of {meet}.* must be in the same order, got .*\.loc"
        ):
            use()


def test_a_default_index_beside_the_same_integers_in_another_order_is_refused():
    x = pd.DataFrame(X).sample(frac=1, random_state=0)
    with pytest.raises(InvalidInputError, match=r"rows of `X` and `Y` must be in the same order"):
        quick().fit(x, pd.DataFrame(Y))
    quick().fit(x, Y)  # an array has no names
    quick().fit(x, pd.DataFrame(Y).loc[x.index])


@pytest.mark.parametrize(
    "rows", [range(N, 2 * N), range(5, 5 + N), [f"label {number}" for number in range(N)]]
)
def test_rows_with_other_names_are_refused(rows):
    names = DAYS if isinstance(rows, list) else range(N)
    x, y = pd.DataFrame(X, index=names), pd.DataFrame(Y, index=rows)
    told = (
        r"`Y` must have the row names of `X`, got '.*' instead of '.*' at position 0\. .*to_numpy"
    )
    with pytest.raises(InvalidInputError, match=told):
        quick().fit(x, y)
    with pytest.raises(InvalidInputError, match=told):
        quick().fit(x, Y).regret(x, y)


def test_rows_that_are_only_counted_are_matched_by_position():
    x, y = pd.DataFrame(X, index=DAYS), pd.DataFrame(Y)
    assert quick().fit(x, y).result_.gain == quick().fit(X, Y).result_.gain
    twice = ["same day"] * N  # names that repeat, in the same order
    quick().fit(x.set_axis(twice), y.set_axis(twice))


FRAME_CONTEXTS = {"pandas": CONTEXT.set_axis(DAYS), "polars": pl.from_pandas(CONTEXT)}


@pytest.mark.parametrize("context", FRAME_CONTEXTS.values(), ids=FRAME_CONTEXTS)
def test_a_context_frame_is_taken_everywhere(context):
    plain = CONTEXT.to_dict("records")
    y_hat = Y[::-1]
    model = quick(PICK_OPEN).fit(X, Y, context=context)
    assert model.decide(X, context) == model.decide(X, plain)
    assert model.score(X, Y, context) == model.score(X, Y, plain)
    np.testing.assert_array_equal(
        regret(PICK_OPEN, y_hat, Y, context=context), regret(PICK_OPEN, y_hat, Y, context=plain)
    )
    assert check_problem(PICK_OPEN, Y, context=context).n_instances == 3
    assert Oracle(PICK_OPEN).sample(Y, NOISE, 2, context=context).n_calls == 3 * N
    schedule = Schedule(n_samples=2, n_rounds=0)
    rounds = learn_in_rounds(PICK_OPEN, Y, train_nothing, context=context, schedule=schedule)
    loss = lodl.learn_loss(PICK_OPEN, Y, context=context, n_samples=2)
    np.testing.assert_array_equal(rounds.best.loss.value(y_hat), loss.value(y_hat))
    found = lodl.evaluation.diagnose(loss, PICK_OPEN, Y, y_hat, context=context)
    same = lodl.evaluation.diagnose(loss, PICK_OPEN, Y, y_hat, context=plain)
    assert str(found) == str(same)


@pytest.mark.parametrize("context", ["x" * N, b"x" * N])
def test_a_text_is_no_context(context):
    told = "`context` must be a sequence or an array with one entry per instance, got (str|bytes)"
    for use in (
        lambda: quick().fit(X, Y, context=context),
        lambda: regret(PICK, Y, Y, context=context),
        lambda: lodl.learn_loss(PICK, Y, context=context),
    ):
        with pytest.raises(InvalidInputError, match=told):
            use()


def test_a_context_that_fit_did_not_have_is_refused():
    model = quick(PICK_OPEN).fit(X, Y)
    told = "`context` must be None: the model was fitted without one, got a DataFrame"
    for use in (
        lambda: model.decide(X, CONTEXT),
        lambda: model.regret(X, Y, CONTEXT),
        lambda: model.score(X, Y, CONTEXT),
    ):
        with pytest.raises(InvalidInputError, match=told):
            use()


def test_the_mean_label_is_that_of_training_instances():
    model = quick().fit(X, Y, validation=(X + 1, Y + 100))
    np.testing.assert_allclose(model.result_.mean_label, Y.mean(axis=0), rtol=1e-12)
