"""Selection among contenders by their validation decisions, with an oracle that is a table."""

from dataclasses import replace

import numpy as np
import pytest

from lodl.errors import OracleError
from lodl.learning._folds import Folds
from lodl.learning._search import Contender, Scoreboard, average, predicts, select, shrunk

N = 40
Y = np.random.default_rng(0).normal(size=(N, 2))
PARTS = np.arange(N) % 5 == np.arange(5)[:, np.newaxis]
FOLDS = Folds(~PARTS, PARTS, N)
NOISE = np.random.default_rng(1).permutation(np.tile([-1.0, 1.0], N // 2))  # of mean 0
BASELINE, FIRST, SECOND, AVERAGE, BLEND = 0.0, 1.0, 5.0, 3.0, 2.0
"""Models predict the label plus an offset: these, their averages, and any other."""


def contender(name, offset, regret=np.nan, **fields):
    regrets = np.broadcast_to(regret, (N,)).astype(float)
    is_baseline = name.startswith("squared error")
    return Contender(name, 0, Y + offset, regret=regrets, is_baseline=is_baseline, **fields)


def scoring(regrets, folds=FOLDS):
    """Return a board that knows a regret for each offset; the others are bad."""

    def score(model):
        offset = round(float((model.y_hat - Y).mean()), 6)
        regret = np.broadcast_to(regrets.get(offset, 1e3), (N,)).astype(float)
        return replace(model, regret=regret)

    return Scoreboard(folds.validation, score)


def scored(regrets, **offsets):
    """Return a board and models that were scored; `squared_error` is the baseline."""
    board = scoring(regrets)
    models = [board.score(contender(name.replace("_", " "), at)) for name, at in offsets.items()]
    return board, models


def selected(regrets, *, folds=FOLDS, **options):
    """Return the offset of the model that is selected of squared error and two others."""
    board = scoring(regrets, folds)
    baseline = board.score(contender("squared error", BASELINE))
    others = [board.score(contender("first", FIRST)), board.score(contender("second", SECOND))]
    best = select(board, baseline, others, y=Y, means=folds.means(Y), **options)
    return round(float((best.y_hat - Y).mean()), 6)


def test_a_loss_that_is_clearly_better_than_the_average_is_selected_alone():
    assert selected({BASELINE: 10.0, FIRST: 1.0, SECOND: 9.0, AVERAGE: 5.0 + NOISE}) == FIRST


def test_the_average_is_selected_if_no_loss_is_clearly_better():
    slightly_worse = 5.1 + 2 * NOISE  # by a third of a standard error
    assert selected({BASELINE: 10.0, FIRST: 5.0, SECOND: 9.0, AVERAGE: slightly_worse}) == AVERAGE


def test_a_shrunk_model_is_scored_only_if_it_is_worth_the_calls():
    asked = []

    def is_worth(before, after):
        asked.append((before.shrinkage, after.shrinkage))
        return False

    assert selected({BASELINE: 10.0, FIRST: 1.0, SECOND: 9.0}, is_worth=is_worth) == FIRST
    [(before, after)] = asked
    assert before < after


@pytest.mark.parametrize(("n_errors", "is_clear"), [(-1.5, False), (0.5, False), (1.5, True)])
def test_a_gain_is_clear_if_it_exceeds_one_standard_error(n_errors, is_clear):
    error = NOISE.std(ddof=1) / np.sqrt(N)
    regrets = {BASELINE: 5.0 + NOISE, FIRST: 5.0 - n_errors * error}
    board, models = scored(regrets, squared_error=BASELINE, first=FIRST)
    assert board.is_clear(*models) is is_clear


def test_squared_error_joins_an_average_that_is_not_clearly_better():
    regrets = {BASELINE: 5.1 + 2 * NOISE, FIRST: 6.0, SECOND: 7.0, AVERAGE: 5.0, BLEND: 4.0}
    assert selected(regrets) == BLEND


def test_a_blend_that_loses_to_squared_error_falls_back_to_what_it_was_blended_from():
    regrets = {BASELINE: 5.1 + 2 * NOISE, FIRST: 6.0, SECOND: 7.0, AVERAGE: 5.0, BLEND: 8.0}
    assert selected(regrets) == AVERAGE
    assert selected(regrets | {AVERAGE: 5.2}) == BASELINE


def test_squared_error_stays_if_nothing_is_better_by_enough_standard_errors():
    error = NOISE.std(ddof=1) / np.sqrt(N)
    regrets = {BASELINE: 5.0 + NOISE, FIRST: 5.0 - 2.5 * error, SECOND: 9.0, AVERAGE: 9.0}
    assert selected(regrets, n_errors=2.0) == FIRST
    assert selected(regrets, n_errors=3.0) == BASELINE


def test_only_validation_decisions_select():
    part = np.arange(N)[np.newaxis] >= N - 10
    regrets = {BASELINE: 5.0, FIRST: np.where(part[0], 9.0, 0.0), SECOND: 9.0}
    assert selected(regrets, folds=Folds(~part, part, N), ensemble=False) == BASELINE


def test_when_time_is_up_nothing_further_is_scored():
    regrets = {BASELINE: 10.0, FIRST: 5.0, SECOND: 9.0, AVERAGE: 1.0}
    assert selected(regrets, is_late=lambda: True) == FIRST


def test_predictions_are_shrunk_to_the_mean_of_labels_that_the_fold_was_trained_on():
    constant = shrunk(contender("first", FIRST), 1.0, FOLDS.means(Y))
    for part in PARTS:
        others = Y[~part].mean(axis=0)
        np.testing.assert_allclose(constant.y_hat[part], np.tile(others, (part.sum(), 1)))


def test_predictions_are_shrunk_half_of_the_way_to_the_mean_of_their_fold():
    model, means = contender("first", FIRST), FOLDS.means(Y)
    moved = shrunk(model, 0.5, means)
    np.testing.assert_allclose(moved.y_hat, (means + model.y_hat) / 2)
    assert moved.shrinkage == 0.5
    assert moved.name == "first, 50% of the way to the mean"


HARD = np.arange(N) < 5
EASY_AND_HARD = np.where(HARD, 9.0, 1.0)


def test_a_model_does_not_win_because_its_hard_instances_failed():
    regrets = {BASELINE: EASY_AND_HARD, FIRST: np.where(HARD, np.nan, 1.1), SECOND: 20.0}
    assert selected(regrets, ensemble=False) == BASELINE
    assert selected(regrets | {AVERAGE: np.where(HARD, np.nan, 1.1)}) == BASELINE


def test_a_model_with_failures_may_win_by_its_other_decisions():
    two = np.arange(N) < 2
    regrets = {BASELINE: EASY_AND_HARD, FIRST: np.where(two, np.nan, 0.5), SECOND: 9.0}
    assert selected(regrets, ensemble=False) == FIRST


def test_a_failed_decision_counts_as_the_worst_one_of_the_first_model():
    regrets = {BASELINE: EASY_AND_HARD, FIRST: np.where(HARD, np.nan, 1.0)}
    board, _ = scored(regrets, squared_error=BASELINE, first=FIRST)
    assert [trial.regret for trial in board.trials()] == [2.0, 2.0]


def test_instances_that_fail_with_every_model_are_left_out():
    unsolvable = np.where(np.arange(N) < 3, np.nan, 1.0)
    solved_later = np.where(np.arange(N) < 2, np.nan, 2.0)
    regrets = {BASELINE: unsolvable, FIRST: solved_later}
    board, _ = scored(regrets, squared_error=BASELINE, first=FIRST)
    assert [trial.regret for trial in board.trials()] == [1.0, 2.0]
    assert board.index.tolist() == list(range(2, N))


def test_a_solver_that_fails_on_every_validation_instance_is_an_error():
    with pytest.raises(OracleError, match=r"every validation instance \(40 of them\)"):
        scored({BASELINE: np.nan}, squared_error=BASELINE)


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (["first", "second"], "average of first and second"),
        (["first", "squared error"], "average of first and squared error"),
        (["first", "second", "third"], "average of 3 losses"),
        (["first", "second", "squared error"], "average of 2 losses and squared error"),
    ],
)
def test_an_average_is_named_by_its_models_if_they_are_two(names, name):
    models = [
        replace(contender(model, k), parts=((model, k),), round=k) for k, model in enumerate(names)
    ]
    mean = average(models)
    assert mean.name == name
    assert mean.parts == tuple((model, k) for k, model in enumerate(names))
    assert mean.round == len(names) - 1
    np.testing.assert_allclose(mean.y_hat, Y + np.mean(range(len(names))))
    assert not mean.is_baseline


def test_a_label_that_never_changes_does_not_decide_whether_a_model_predicts():
    y = np.column_stack([Y[:, 0], np.full(N, 7.0)])
    means = FOLDS.means(y)
    assert predicts(y, y, means)
    assert not predicts(y + np.array([3.0, 0.0]), y, means)


def test_every_number_of_a_label_counts_in_its_own_unit_if_a_model_predicts():
    y = Y * [0.01, 100.0] / Y.std(axis=0)
    means, error = FOLDS.means(y), np.array([0.1, 0.0])  # ten deviations of the small number
    y_hat = y + error + 0.5 * (means - y) * [0.0, 1.0]
    assert not predicts(y_hat, y, means)
    assert predicts(y_hat - error, y, means)


def test_a_failed_decision_counts_as_the_worst_one_that_validates():
    board = Scoreboard(np.arange(N - 10, N))
    first = board.add(contender("squared error", 0, np.where(np.arange(N) < 5, 99.0, 2.0)))
    second = board.add(contender("first", 1, np.where(np.arange(N) < N - 5, 1.0, np.nan)))
    assert (board.mean(first), board.mean(second)) == (2.0, 1.5)


@pytest.mark.parametrize(("constant", "shrinkage"), [(5.0, 1.0), (5.1, 0.0)])
def test_the_mean_is_selected_if_squared_error_predicts_and_decides_no_better(constant, shrinkage):
    means, regrets = FOLDS.means(Y), {9.0: 5.0}
    board = scoring(regrets)
    regrets[round(float((means - Y).mean()), 6)] = constant
    baseline = board.score(contender("squared error", 9.0))
    best = select(board, baseline, [], y=Y, means=means)
    assert best.shrinkage == shrinkage


def test_an_average_of_one_model_is_the_model():
    model = contender("first", FIRST)
    assert average([model]) is model


def test_the_shift_of_an_average_is_the_mean_of_the_shifts():
    y_hat = np.zeros((4, 2))
    plain = Contender("squared error", 0, y_hat, is_baseline=True)
    model = Contender("loss", 0, y_hat + 3.0, shift=np.array([3.0, 1.0]))
    blend = average([model, plain])
    np.testing.assert_array_equal(blend.shift, [1.5, 0.5])
    np.testing.assert_array_equal(blend.y_hat, y_hat + 1.5)
    assert average([plain, plain]).shift is None


def test_shrunk_predictions_need_as_many_standard_errors_as_a_loss():
    error = NOISE.std(ddof=1) / np.sqrt(N)
    means = FOLDS.means(Y)
    board = Scoreboard(
        FOLDS.validation,
        lambda model: replace(
            model, regret=5.0 + NOISE if not model.shrinkage else np.full(N, 5.0 - 2 * error)
        ),
    )
    baseline = board.score(contender("squared error", BASELINE))
    assert select(board, baseline, [], y=Y, means=means).shrinkage == 0.5
    assert select(board, baseline, [], y=Y, means=means, n_errors=3.0).shrinkage == 0.0


def test_groups_are_folds_or_fifths_of_a_single_part():
    np.testing.assert_array_equal(FOLDS.groups, np.arange(N) % 5)
    part = np.arange(N)[np.newaxis] >= 30
    np.testing.assert_array_equal(Folds(~part, part, N).groups, np.repeat(range(5), 2))
