import numpy as np
import pytest

from lodl.domains import Crop, web_advertising
from lodl.errors import DataError, InvalidInputError
from lodl_benchmarks.domains import VisitGraph, msweb_graph


@pytest.fixture
def graph_file(tmp_path):
    """A graph of 30 websites with falling numbers of visits, and 600 users."""
    rng = np.random.default_rng(0)
    popularity = 0.5 / (1 + np.arange(30)[:, None])
    vroot, user = np.nonzero(rng.random((30, 600)) < popularity)
    shuffled = rng.permutation(30).astype(np.uint16)
    path = tmp_path / "graph.npz"
    np.savez(path, vroot=shuffled[vroot], user=user.astype(np.uint16))
    return path


def test_the_most_visited_websites_are_kept(graph_file):
    with np.load(graph_file) as arrays:
        visits = np.bincount(arrays["vroot"])
    graph = msweb_graph(graph_file, n_sites=10)
    assert sorted(graph.visited.sum(axis=1)) == sorted(visits)[-10:]


def test_a_rate_is_positive_only_where_there_is_a_visit():
    visited = np.zeros((4, 30), dtype=bool)
    visited[:, ::3] = True  # a third of the users visit all websites, the others none
    y = web_advertising(source=VisitGraph(visited, n_users=10), sizes=(50, 50, 50)).splits.test.y
    by_user = (y > 0).mean(axis=1)
    assert set(np.unique(by_user)) == {0.0, 1.0}
    assert by_user.mean() == pytest.approx(1 / 3, abs=0.1)
    assert y.max() <= 0.2


def test_a_user_belongs_to_one_split():
    # User u visits u websites, so the number of links in a column names its user.
    graph = VisitGraph(np.arange(60)[:, None] < np.arange(60), n_users=15)
    crops = [Crop(10, np.arange(60), np.arange(15))] * 3
    rates = graph.draw(crops, np.random.default_rng(0))
    train, validation, test = (set((y > 0).sum(axis=1).ravel().tolist()) for y in rates)
    assert min(len(train), len(validation), len(test)) >= 15
    assert not train & validation
    assert not train & test
    assert not validation & test


def test_the_real_graph_has_about_the_papers_density(data_file):
    graph = msweb_graph(data_file("msweb_285x32710.npz"))
    assert graph.visited.shape == (100, 32710)
    assert graph.visited.mean() == pytest.approx(0.0286, abs=1e-4)
    y = web_advertising(source=graph, sizes=(5, 5, 500)).splits.test.y
    assert (y > 0).mean() == pytest.approx(0.0286, abs=0.01)


def test_too_few_users_are_refused(graph_file):
    with pytest.raises(DataError, match="at least 500 users for each of 3 splits, got 600 in all"):
        web_advertising(source=msweb_graph(graph_file, n_sites=10))


def test_too_few_websites_are_refused(graph_file):
    with pytest.raises(DataError, match="must have at least 100 websites, got 30"):
        msweb_graph(graph_file)


def test_a_count_of_websites_must_be_positive(graph_file):
    with pytest.raises(InvalidInputError, match="`n_sites` must be a whole number"):
        msweb_graph(graph_file, n_sites=0)


def test_a_file_without_the_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", edges=np.zeros(3))
    with pytest.raises(DataError, match=r"other\.npz must be an \.npz file with arrays `vroot`"):
        msweb_graph(tmp_path / "other.npz")


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(DataError, match=r"absent\.npz must be an \.npz file"):
        msweb_graph(tmp_path / "absent.npz")


@pytest.mark.parametrize("name", ["vroot", "user"])
def test_a_negative_number_is_refused(tmp_path, name):
    arrays = {"vroot": np.arange(5), "user": np.arange(5)}
    arrays[name] -= 1
    np.savez(tmp_path / "graph.npz", **arrays)
    with pytest.raises(DataError, match="numbers must not be negative"):
        msweb_graph(tmp_path / "graph.npz", n_sites=2)


def test_a_file_of_one_array_is_refused(tmp_path):
    np.save(tmp_path / "graph.npy", np.arange(5))
    with pytest.raises(DataError, match="no archive of arrays"):
        msweb_graph(tmp_path / "graph.npy", n_sites=2)
