"""The rule by which models stop, against a loop over single models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodl.training._learner import EarlyStopping

SCORES = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=12, max_size=12),
    min_size=1,
    max_size=4,
)


def alone(scores, patience, every):
    """Return best score, best step and last step of one model."""
    best, best_step = np.inf, 0
    for i, score in enumerate(scores):
        if score < best:
            best, best_step = score, i * every
        if i * every - best_step > patience:
            break
    return best, best_step, i * every


@given(scores=SCORES, patience=st.integers(0, 9), every=st.integers(1, 3))
def test_models_stop_as_they_would_alone(scores, patience, every):
    stopping = EarlyStopping(patience, len(scores))
    for i in range(12):
        if not len(stopping.running):
            break
        running = stopping.running
        going_on = stopping.update(np.array([scores[k][i] for k in running]), i * every)
        np.testing.assert_array_equal(stopping.running, running[going_on])
        assert stopping.is_better.shape == running.shape
    expected = [alone(model, patience, every) for model in scores]
    got = zip(stopping.best_scores, stopping.best_steps, stopping.last_steps, strict=True)
    assert list(got) == expected


def test_a_score_that_is_hardly_better_does_not_count():
    stopping = EarlyStopping(10, 1, least_gain=0.01)
    for step, score in enumerate([1.0, 0.995, 0.98, 0.975]):
        stopping.update(np.array([score]), step)
    assert stopping.best_steps.tolist() == [2]
    assert stopping.best_scores.tolist() == [0.98]


@pytest.mark.parametrize("score", [5.0, np.nan, np.inf])
def test_without_patience_the_last_step_is_the_best(score):
    stopping = EarlyStopping(None, 2)
    for step in (0, 50, 100):
        assert stopping.update(np.array([step, score]), step).all()
        assert stopping.is_better.all()
    assert stopping.best_steps.tolist() == [100, 100]
