"""The choice among models by their held-out decisions, with an oracle that is a table."""

from types import SimpleNamespace

import numpy as np
import pytest

from lodl.errors import OracleError
from lodl.learning._folds import Folds
from lodl.learning._gain import Failures
from lodl.learning._held_out import HeldOut
from lodl.learning._search import Search, Tried

N = 40
Y = np.random.default_rng(0).normal(size=(N, 2))
FOLDS = Folds(N, tuple(np.arange(i, N, 5) for i in range(5)), N)
NOISE = np.random.default_rng(1).permutation(np.tile([-1.0, 1.0], N // 2))  # of mean 0
BASELINE, FIRST, SECOND, AVERAGE, BLEND = 0.0, 1.0, 5.0, 3.0, 2.0
"""Models predict the label plus an offset: these, their averages, and any other."""


def searching(regrets, folds=FOLDS, **options):
    """Return a search whose oracle knows a regret for each offset; the others are very bad."""

    def ask(sampler, n_samples):
        offset = round(float((sampler.y_hat - Y).mean()), 6)
        regret = np.broadcast_to(regrets.get(offset, 1e3), (N,)).astype(float)
        return SimpleNamespace(first_regrets=lambda: regret)

    return Search(None, Y, None, folds, ask, lambda: 0, 0.0, **options)


def looked_at(search, **offsets):
    """Return models after their held-out decisions were looked at."""
    unknown = np.full(N, np.nan)
    return [
        search._look_at(Tried(name.replace("two", "2-"), Y + offset, unknown, ()), 0)
        for name, offset in offsets.items()
    ]


def chosen(regrets, *, ensemble=True, **options):
    """Return the offset of the model that is kept of 2-stage and two others."""
    search = searching(regrets, **options)
    found = looked_at(search, twostage=BASELINE, first=FIRST, second=SECOND)
    kept = search._choose(found, 0, ensemble=ensemble)
    return round(float((kept.y_hat - Y).mean()), 6)


def test_a_loss_that_is_clearly_better_than_the_average_is_kept_alone():
    assert chosen({BASELINE: 10.0, FIRST: 1.0, SECOND: 9.0, AVERAGE: 5.0 + NOISE}) == FIRST


def test_the_average_is_kept_if_no_loss_is_clearly_better():
    slightly_worse = 5.1 + 2 * NOISE  # by a third of a standard error
    assert chosen({BASELINE: 10.0, FIRST: 5.0, SECOND: 9.0, AVERAGE: slightly_worse}) == AVERAGE


@pytest.mark.parametrize(("n_errors", "is_clear"), [(-1.5, False), (0.5, False), (1.5, True)])
def test_a_gain_is_clear_if_it_exceeds_one_standard_error(n_errors, is_clear):
    error = NOISE.std(ddof=1) / np.sqrt(N)
    search = searching({BASELINE: 5.0 + NOISE, FIRST: 5.0 - n_errors * error})
    assert search._is_clear(*looked_at(search, twostage=BASELINE, first=FIRST)) is is_clear


def test_squared_error_joins_an_average_that_is_not_clearly_better():
    regrets = {BASELINE: 5.1 + 2 * NOISE, FIRST: 6.0, SECOND: 7.0, AVERAGE: 5.0, BLEND: 4.0}
    assert chosen(regrets) == BLEND


def test_a_blend_that_loses_to_squared_error_falls_back_to_what_it_was_blended_from():
    regrets = {BASELINE: 5.1 + 2 * NOISE, FIRST: 6.0, SECOND: 7.0, AVERAGE: 5.0, BLEND: 8.0}
    assert chosen(regrets) == AVERAGE
    assert chosen(regrets | {AVERAGE: 5.2}) == BASELINE


def test_only_held_out_decisions_choose():
    last = Folds(N, (np.arange(N - 10, N),), N)
    in_sample = np.arange(N) < N - 10
    regrets = {BASELINE: 5.0, FIRST: np.where(in_sample, 0.0, 9.0), SECOND: 9.0}
    assert chosen(regrets, folds=last, ensemble=False) == BASELINE


def test_predictions_are_drawn_to_the_mean_of_labels_that_the_fold_was_trained_on():
    search = searching({})
    (model,) = looked_at(search, first=FIRST)
    constant = search._drawn_to_the_mean(model, 0.0, 0)
    for part in FOLDS.held_out:
        others = np.delete(Y, part, axis=0).mean(axis=0)
        np.testing.assert_allclose(constant.y_hat[part], np.tile(others, (len(part), 1)))


@pytest.mark.parametrize(("by_solver", "kept"), [(4.0, "first"), (6.0, "2-stage")])
def test_the_solver_has_the_last_word_where_known_decisions_chose(by_solver, kept):
    search = searching({BASELINE: 5.0, FIRST: by_solver})
    baseline, first = looked_at(search, twostage=BASELINE, first=FIRST)
    search.solver_judges = False
    found, beside = search._ask_the_solver(first, baseline)
    assert (found.name, beside.name) == (kept, "2-stage")


HARD = np.arange(N) < 5
EASY_AND_HARD = np.where(HARD, 9.0, 1.0)


def test_a_model_does_not_win_because_its_hard_instances_failed():
    regrets = {BASELINE: EASY_AND_HARD, FIRST: np.where(HARD, np.nan, 1.1), SECOND: 20.0}
    assert chosen(regrets, ensemble=False) == BASELINE
    assert chosen(regrets | {AVERAGE: np.where(HARD, np.nan, 1.1)}) == BASELINE


def test_a_model_with_failures_may_win_by_its_other_decisions():
    some = np.arange(N) < 2
    regrets = {BASELINE: EASY_AND_HARD, FIRST: np.where(some, np.nan, 0.5), SECOND: 9.0}
    assert chosen(regrets, ensemble=False) == FIRST


def test_a_failed_decision_counts_as_the_worst_one_met():
    search = searching({BASELINE: EASY_AND_HARD, FIRST: np.where(HARD, np.nan, 1.0)})
    looked_at(search, twostage=BASELINE, first=FIRST)
    assert [row.regret for row in search.history] == [2.0, 2.0]


def test_instances_that_fail_with_every_model_are_left_out():
    unsolvable = np.where(np.arange(N) < 3, np.nan, 1.0)
    solved_later = np.where(np.arange(N) < 2, np.nan, 2.0)
    search = searching({BASELINE: unsolvable, FIRST: solved_later})
    looked_at(search, twostage=BASELINE, first=FIRST)
    assert [row.regret for row in search.history] == [1.0, 2.0]
    assert search.regrets.index.tolist() == list(range(2, N))
    assert search.regrets.n_left_out == 2


def test_a_solver_that_fails_on_every_held_out_instance_is_an_error():
    search = searching({BASELINE: np.nan})
    with pytest.raises(OracleError, match=r"every held-out instance \(40 of them\)"):
        looked_at(search, twostage=BASELINE)


@pytest.mark.parametrize(
    ("offsets", "name"),
    [
        ({"first": 1, "second": 2}, "average of first and second"),
        ({"first": 1, "twostage": 0}, "average of first and 2-stage"),
        ({"first": 1, "second": 2, "third": 3}, "average of 3 losses"),
        ({"first": 1, "second": 2, "twostage": 0}, "average of 2 losses and 2-stage"),
    ],
)
def test_an_average_is_named_by_its_models_if_they_are_two(offsets, name):
    search = searching({})
    assert search._average(looked_at(search, **offsets), 0).name == name


def test_a_label_that_never_changes_does_not_decide_whether_a_model_predicts():
    y = np.column_stack([Y[:, 0], np.full(N, 7.0)])
    search = Search(None, y, None, FOLDS, None, lambda: 0, 0.0)
    exact, silly = (Tried("", y_hat, np.zeros(N), ()) for y_hat in (y, y + np.array([3.0, 0.0])))
    assert search._predicts(exact)
    assert not search._predicts(silly)


def test_failed_decisions_of_both_models_are_counted():
    masks = np.arange(6) < 4, np.arange(6) < 2
    held_out = HeldOut(np.arange(6), np.ones(6), np.ones(6), *masks)
    assert held_out.failures == Failures(4, 2, 0)


def test_a_model_is_moved_half_of_the_way_to_the_mean_of_its_fold():
    search = searching({})
    (model,) = looked_at(search, first=FIRST)
    means = FOLDS.means(Y)
    moved = search._drawn_to_the_mean(model, 0.5, 0)
    np.testing.assert_allclose(moved.y_hat, (means + model.y_hat) / 2)
    assert moved.kept == 0.5


def test_a_look_at_a_model_takes_one_call_per_instance_and_a_round_adds_its_answers():
    asked = []

    def ask(sampler, n_samples):
        asked.append(n_samples)
        return SimpleNamespace(first_regrets=lambda: np.ones(N))

    search = Search(None, Y, None, FOLDS, ask, lambda: 0, 0.0)
    search._samples = SimpleNamespace(union=lambda answers: ("both", answers))
    search._judge("first", None, SimpleNamespace(y_hat=Y), 1, n_asked=4)
    assert asked == [4, 1]
    assert search._samples[0] == "both"
