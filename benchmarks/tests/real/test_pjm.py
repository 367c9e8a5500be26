import gzip

import cvxpy as cp
import numpy as np
import pytest

from lodl.errors import DataError, InvalidInputError
from lodl_benchmarks.real import GenerationScheduling, pjm


def test_the_last_training_day_divides_the_days(data):
    split = pjm(data / "pjm_load.csv.gz", "2011-12-31")
    assert split.x_train.shape == (363, 149)  # the first day of two files is dropped
    assert split.x_test.shape == (420 - 365, 149)
    assert split.y_test.shape == (55, 24)
    np.testing.assert_allclose(split.x_train.std(axis=0)[:144], 1)
    assert np.isfinite(split.x_train).all()


def test_choosing_splits_have_no_day_after_the_last_training_day(data):
    split = pjm(data / "pjm_load.csv.gz", "2012-01-31", choosing=True)
    everything = pjm(data / "pjm_load.csv.gz", "2012-01-31").y_train
    np.testing.assert_array_equal(np.vstack([split.y_train, split.y_test]), everything)
    assert len(split.y_test) == 365


def test_an_origin_without_training_days_is_refused(data):
    with pytest.raises(InvalidInputError, match="`until` must leave days"):
        pjm(data / "pjm_load.csv.gz", "2010-01-01")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("load_03", "lod_03", "load_03"),
        ("2011-01-02,", "yesterday,", "must be dates"),
        ("2011-01-02,", "2011-01-01,", "must have one row"),
        ("2011-01-02,1,", "2011-01-02,x,", "`file` must be a number"),
    ],
)
def test_a_file_that_is_not_as_described_is_refused(data, tmp_path, old, new, message):
    text = gzip.decompress((data / "pjm_load.csv.gz").read_bytes()).decode()
    path = tmp_path / "broken.csv"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        pjm(path, "2011-12-31")


@pytest.fixture(scope="module")
def model():
    problem, z, y = GenerationScheduling(), cp.Variable(24), cp.Parameter(24)
    kinked = problem.shortage * cp.pos(y - z) + problem.excess * cp.pos(z - y)
    cost = cp.sum(kinked + cp.square(z - y) / 2)
    return cp.Problem(cp.Minimize(cost), [cp.abs(cp.diff(z)) <= problem.ramp]), y


@pytest.mark.parametrize("deviation", [0.05, 0.3, 1.0, 30.0])
def test_schedules_are_as_cheap_as_those_of_cvxpy(model, deviation):
    problem, (program, y) = GenerationScheduling(), model
    rng = np.random.default_rng(1)
    for y_hat in rng.normal(1.5, deviation, size=(4, 24)):
        y.value = y_hat
        program.solve(solver="CLARABEL")
        z = problem.solve(y_hat)
        assert np.abs(np.diff(z)).max() <= problem.ramp * (1 + 1e-9)
        assert problem.objective(z, y_hat) == pytest.approx(program.value, rel=1e-6, abs=1e-6)


def test_equal_loads_and_loads_at_the_ramp_limit_are_followed_exactly():
    problem = GenerationScheduling()
    for y_hat in (np.ones(24), 1 + 0.4 * np.arange(24), np.tile([1.0, 1.4], 12)):
        assert problem.objective(problem.solve(y_hat), y_hat) == pytest.approx(0, abs=1e-9)
