import numpy as np
import pytest

from lodl.domains import web_advertising
from lodl.errors import DataError
from lodl_benchmarks.domains import ClickMatrices, read_click_matrices


@pytest.fixture
def matrices():
    return np.random.default_rng(0).uniform(0, 0.2, size=(30, 20, 40)).astype(np.float32)


def test_npy_and_npz_files_give_the_same_instances(tmp_path, matrices):
    np.save(tmp_path / "clicks.npy", matrices)
    np.savez(tmp_path / "clicks.npz", anything=matrices)
    expected = web_advertising(source=ClickMatrices(matrices), sizes=(10, 10, 10)).splits.train
    for name in ("clicks.npy", "clicks.npz"):
        source = read_click_matrices(tmp_path / name)
        actual = web_advertising(source=source, sizes=(10, 10, 10)).splits.train
        np.testing.assert_array_equal(actual.x, expected.x)
        np.testing.assert_array_equal(actual.y, expected.y)


def test_each_matrix_serves_one_instance(matrices):
    for number in range(30):
        matrices[number] = number / 100
    splits = web_advertising(source=ClickMatrices(matrices), sizes=(10, 10, 10)).splits
    y = np.concatenate([splits.train.y, splits.validation.y, splits.test.y])
    used = np.rint(100 * y[:, 0, 0]).astype(int)
    assert sorted(used) == list(range(30))


def test_more_instances_than_matrices_are_refused(matrices):
    with pytest.raises(DataError, match="a matrix for each of 31 instances, got 30"):
        web_advertising(source=ClickMatrices(matrices), sizes=(11, 10, 10))


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_a_rate_outside_0_to_1_is_refused(matrices, bad):
    matrices[17] = bad
    with pytest.raises(DataError, match=r"must be in \[0, 1\]; matrix 17 has others"):
        web_advertising(source=ClickMatrices(matrices), sizes=(10, 10, 10))


def test_matrices_of_different_shapes_are_refused():
    with pytest.raises(DataError, match=r"matrix 0 has shape \(2, 3\), matrix 1 has \(3, 2\)"):
        ClickMatrices([np.zeros((2, 3)), np.zeros((3, 2))])


def test_no_matrices_are_refused():
    with pytest.raises(DataError, match="at least one matrix"):
        ClickMatrices([])


@pytest.mark.parametrize("name", ["absent.npy", "absent.npz", "absent.pkl"])
def test_a_missing_file_is_refused_by_name(tmp_path, name):
    with pytest.raises(DataError, match=name):
        read_click_matrices(tmp_path / name)


def test_an_npz_of_several_arrays_is_refused(tmp_path, matrices):
    np.savez(tmp_path / "two.npz", a=matrices, b=matrices)
    with pytest.raises(DataError, match=r"an \.npz of one array"):
        read_click_matrices(tmp_path / "two.npz")


def test_an_array_of_objects_is_not_unpickled(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[1], [2, 3]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"must be an \.npy file"):
        read_click_matrices(tmp_path / "objects.npy")


@pytest.mark.parametrize("name", ["empty.npy", "empty.npz"])
def test_an_empty_file_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=rf"{name} must be an \.npy file"):
        read_click_matrices(tmp_path / name)


def test_a_damaged_header_is_refused(tmp_path, matrices):
    path = tmp_path / "damaged.npy"
    np.save(path, matrices)
    path.write_bytes(path.read_bytes().replace(b"}", b" ", 1))
    with pytest.raises(DataError, match=r"damaged\.npy must be an \.npy file"):
        read_click_matrices(path)


def test_features_do_not_look_at_test_labels():
    matrices = np.random.default_rng(0).uniform(0, 0.2, size=(30, 20, 40))
    before = web_advertising(source=ClickMatrices(matrices), sizes=(10, 10, 10)).splits
    order = {tuple(y.ravel()) for y in before.test.y}
    changed = matrices.copy()
    for matrix, old in zip(changed, matrices, strict=True):
        if any(set(y) <= set(old.ravel()) for y in order):
            matrix /= 2
    after = web_advertising(source=ClickMatrices(changed), sizes=(10, 10, 10)).splits
    np.testing.assert_array_equal(after.test.y, before.test.y / 2)
    np.testing.assert_array_equal(after.train.x, before.train.x)
    np.testing.assert_array_equal(after.validation.x, before.validation.x)


def test_a_user_who_never_clicks_has_finite_features():
    splits = web_advertising(source=ClickMatrices(np.zeros((9, 5, 10))), sizes=(3, 3, 3)).splits
    assert np.isfinite(splits.train.x).all()
