import numpy as np
import pytest

from lodl.domains import Crop, GeneratedClickRates
from lodl.domains._web_advertising._click_rates import _density
from lodl.errors import InvalidInputError


def whole_matrices(source, n_instances, seed=0):
    crop = Crop(n_instances, np.arange(source.n_sites), np.arange(source.n_users))
    (rates,) = source.draw([crop], np.random.default_rng(seed))
    return rates


@pytest.mark.parametrize("link_rate", [0.001, 0.0397, 0.5, 0.95])
def test_the_density_gives_the_asked_rate_of_links(link_rate):
    rng = np.random.default_rng(0)
    site_weights, user_weights = np.exp(rng.standard_normal(100)), np.exp(rng.standard_normal(500))
    c = _density(site_weights, user_weights, link_rate)
    probability = 1 - np.exp(-c * site_weights[:, None] * user_weights)
    assert probability.mean() == pytest.approx(link_rate, rel=1e-5)


def test_every_matrix_has_the_asked_rate_of_links():
    linked = whole_matrices(GeneratedClickRates(), 20) > 0
    assert linked.mean() == pytest.approx(0.0397, rel=0.02)
    np.testing.assert_allclose(linked.mean(axis=(1, 2)), 0.0397, rtol=0.1)


def test_linked_rates_are_uniform_up_to_a_fifth():
    rates = whole_matrices(GeneratedClickRates(), 5)
    rates = rates[rates > 0]
    assert rates.max() <= 0.2
    assert rates.mean() == pytest.approx(0.1, rel=0.02)
    assert rates.var() == pytest.approx(0.2**2 / 12, rel=0.05)


def test_popularity_is_uneven_among_sites_and_users():
    linked = whole_matrices(GeneratedClickRates(), 5) > 0
    by_site, by_user = linked.mean(axis=2), linked.mean(axis=1)
    # Independent links would spread by 0.009 over sites and by 0.02 over users.
    assert by_site.std(axis=1).min() > 0.03
    assert by_user.std(axis=1).min() > 0.03


@pytest.mark.parametrize("link_rate", [0, 1, -0.1, float("nan")])
def test_a_rate_of_links_must_lie_between_0_and_1(link_rate):
    with pytest.raises(InvalidInputError, match="`link_rate` must be greater than 0"):
        GeneratedClickRates(link_rate=link_rate)


@pytest.mark.parametrize("name", ["n_sites", "n_users"])
def test_a_matrix_must_have_sites_and_users(name):
    with pytest.raises(InvalidInputError, match=f"`{name}` must be a whole number"):
        GeneratedClickRates(**{name: 0})
