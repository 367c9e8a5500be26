import numpy as np
import pytest

from lodl.oracle._inputs import check_inputs
from lodl.oracle._layout import _chunk_shape, _chunk_size, measure_layout
from lodl.samplers import AllPerturbed

RUNS = [
    # calls, seconds per call, seconds of a chunk at least and at most
    (500_000, 5e-6, 0.19, 0.21),  # short: enough chunks for a few workers
    (10_000_000, 1e-3, 0.9, 1.1),  # a second
    (200_000, 10.0, 90, 110),  # long: not more than 20,000 chunks
    (10, 60.0, 60, 60),  # never less than a call
    (100, 1e-7, 0, 0.21),
]


@pytest.mark.parametrize(("n_calls", "seconds", "least", "most"), RUNS)
def test_a_chunk_takes_about_a_second_or_a_64th_or_a_20000th_of_the_run(
    n_calls, seconds, least, most
):
    assert least <= _chunk_size(n_calls, seconds) * seconds <= most


def test_a_chunk_is_never_more_than_two_megabytes():
    assert _chunk_size(10**12, 1e-9) == 2**18


@pytest.mark.parametrize(
    ("size", "is_vectorised", "expected"),
    [
        (1, False, (1, 1)),
        (99, False, (1, 99)),
        (1, True, (1, 500)),  # a vectorised problem gets whole blocks
        (750, False, (1, 500)),
        (3999, True, (1, 3500)),
        (4000, True, (1, 4000)),  # 3,700 samples are 8 blocks
        (12_500, True, (3, 4000)),
        (10**6, True, (50, 4000)),  # not more rows than instances
    ],
)
def test_chunks_hold_whole_blocks_and_whole_rows_where_they_can(size, is_vectorised, expected):
    assert _chunk_shape(size, 50, 3_700, is_vectorised) == expected


def layout_of(problem, y):
    inputs = check_inputs(problem, y, context=None, sampler=AllPerturbed(), seed=0)
    return measure_layout(inputs, 10_000)


def test_candidates_harder_than_labels_make_smaller_chunks(loop, y):
    class HardCandidates(loop):
        def solve(self, y_hat, context):
            is_label = (y == y_hat).all(axis=1).any()
            return loop(seconds=0 if is_label else 0.02).solve(y_hat, context)

    rows, columns = layout_of(HardCandidates(), y).regret
    assert rows * columns <= 100
    assert layout_of(HardCandidates(), y).optimum == (6, 1)


def test_calls_that_fail_at_once_do_not_pass_for_the_cost_of_a_call(loop, y):
    class FailsFirst(loop):
        def solve(self, y_hat, context):
            if self.seconds == 0 and np.abs(y[:4] - y_hat).max(axis=1).min() < 1:
                raise ValueError("no solution")
            return loop(seconds=0.02).solve(y_hat, context)

    inputs = check_inputs(FailsFirst(), y, context=None, sampler=AllPerturbed(1e-3), seed=0)
    rows, columns = measure_layout(inputs, 10_000).regret
    assert rows * columns <= 100


def test_a_slow_start_does_not_pass_for_the_cost_of_a_call(loop, y):
    class SlowStart(loop):
        def solve(self, y_hat, context):
            self.seconds, seconds = 0.0, self.seconds
            return loop(seconds=seconds).solve(y_hat, context)

    inputs = check_inputs(SlowStart(seconds=0.5), y, context=None, sampler=AllPerturbed(), seed=0)
    rows, columns = measure_layout(inputs, 10_000).regret
    assert rows * columns > 100  # at half a second a call it would be a few
