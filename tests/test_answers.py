import numpy as np

from lodl.oracle import Answers

Y, D = np.ones((2, 3)), np.arange(24.0).reshape(4, 2, 3)


def test_errors_are_flat_and_counted_from_the_label():
    np.testing.assert_array_equal(Answers(Y, Y + D, np.zeros(4)).d, D.reshape(4, 6))


def test_answers_about_some_points_keep_the_slopes_that_decisions_refer_to():
    answers = Answers(Y, Y + D, np.arange(4.0), np.array([1, 0, 1, 2]), np.ones((3, 6)))
    for index in ([0, 3], np.array([True, False, False, True])):
        some = answers.take(index)
        np.testing.assert_array_equal(some.d, answers.d[[0, 3]])
        assert (some.regret.tolist(), some.decision.tolist()) == ([0, 3], [1, 2])
        assert some.slope is answers.slope


def test_answers_without_slopes_stay_without():
    assert Answers(Y, Y + D, np.zeros(4)).take([1]).decision is None
