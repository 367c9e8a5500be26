import numpy as np
import pytest

from lodl.domains import ClickRates, GeneratedClickRates, web_advertising
from lodl.errors import InvalidInputError

SMALL = GeneratedClickRates(n_sites=20, n_users=40, link_rate=0.3)


def splits_of(**arguments):
    return web_advertising(**arguments).splits


def parts(splits):
    return [splits.train, splits.validation, splits.test]


class Numbered(ClickRates):
    """Rates that tell from which row and column they come; each instance has a factor."""

    shape = (3, 4)

    def draw(self, crops, rng):
        self.crops = crops
        grid = np.arange(1, 13).reshape(3, 4) / 100
        return [
            (1 + np.arange(crop.n_instances)[:, None, None]) * grid[np.ix_(crop.sites, crop.users)]
            for crop in crops
        ]


def test_small_instances_have_the_published_statistics():
    y = np.concatenate([splits_of(seed=seed, sizes=(1, 1, 100)).test.y for seed in range(20)])
    assert (y > 0).mean() == pytest.approx(0.0397, rel=0.1)
    assert 0.17 < (y == 0).all(axis=(1, 2)).mean() < 0.27  # about a fifth have nothing to win


def test_rows_and_columns_are_shared_within_a_split_and_come_with_replacement():
    splits = splits_of(source=Numbered(), sizes=(6, 6, 6), n_sites=5, n_users=10)
    for part in parts(splits):
        first = part.y[0]
        for number, y in enumerate(part.y):
            np.testing.assert_allclose(y, (1 + number) * first)
        assert len(np.unique(first)) < first.size  # 5 of 3 rows: some come twice
    assert not np.array_equal(splits.train.y[0], splits.test.y[0])


def test_a_source_is_asked_for_each_row_and_column_once():
    source = Numbered()
    splits_of(source=source, sizes=(2, 2, 2), n_sites=5, n_users=10)
    for crop in source.crops:
        assert len(set(crop.sites)) == len(crop.sites)
        assert len(set(crop.users)) == len(crop.users)


def test_one_affine_map_leads_from_labels_to_features_in_every_split():
    splits = splits_of(source=SMALL, sizes=(80, 20, 100))
    y = np.concatenate([part.y for part in parts(splits)]).reshape(-1, 10)
    x = np.concatenate([part.x for part in parts(splits)]).reshape(-1, 10)
    with_constant = np.column_stack([y, np.ones(len(y))])
    affine, *_ = np.linalg.lstsq(with_constant, x, rcond=None)
    np.testing.assert_allclose(with_constant @ affine, x, atol=1e-9)


def test_training_features_are_a_map_of_standardised_rates():
    x = splits_of(source=SMALL, sizes=(80, 20, 20)).train.x
    bias = x.mean(axis=(0, 1))  # standardised rates have mean 0, so only the bias is left
    assert np.abs(bias).max() <= 1 / np.sqrt(10)


def test_the_size_of_the_test_split_leaves_the_training_data_as_it_is():
    small, large = splits_of(sizes=(5, 5, 5)), splits_of(sizes=(5, 5, 50))
    np.testing.assert_array_equal(small.train.x, large.train.x)
    np.testing.assert_array_equal(small.validation.x, large.validation.x)


def test_large_instances_can_be_asked_for():
    splits = splits_of(sizes=(2, 1, 1), n_sites=100, n_users=500)
    assert splits.train.y.shape == (2, 100, 500)


@pytest.mark.parametrize("name", ["n_sites", "n_users"])
def test_an_instance_must_have_sites_and_users(name):
    with pytest.raises(InvalidInputError, match=f"`{name}` must be a whole number"):
        web_advertising(**{name: 0})
