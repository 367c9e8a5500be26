"""Websites, users, and how often they click."""

import numpy as np

from lodl._typing import Array
from lodl._validation import check_count
from lodl.datasets._click_rates import ClickRates, Crop, GeneratedClickRates
from lodl.datasets._instances import Instances, Sizes, Splits, check_sizes, streams


def web_advertising(
    seed: int = 0,
    *,
    source: ClickRates | None = None,
    sizes: Sizes = (80, 20, 500),
    n_sites: int = 5,
    n_users: int = 10,
) -> Splits:
    """Draws click rates of websites by users, and features that scramble them.

    Each instance comes from its own large matrix of click rates. A split takes the same rows and
    columns, drawn with replacement, from all of its matrices. The features of a website are its
    click rates, standardised by user and sent through a random linear map:

        x_m = A ((y_m - mean) / deviation) + b,   A and b uniform on +-1/sqrt(n_users)

    Mean and deviation are those of the training split, A and b the same for all splits.

    Args:
        seed: Of all randomness.
        source: Where matrices come from: `GeneratedClickRates()` if None, or `msweb_graph(path)`,
            or `read_click_matrices(path)`.
        sizes: Instances in train, validation and test.
        n_sites: Websites in an instance.
        n_users: Users in an instance.

    Returns:
        x and y of shape (n, n_sites, n_users), no context.
    """
    source = GeneratedClickRates() if source is None else source
    check_count("n_sites", n_sites)
    check_count("n_users", n_users)
    crop_rng, rate_rng, map_rng = streams("web advertising", seed, 3)
    crops, repeats = [], []
    for size in check_sizes(sizes):
        # A row or column that comes twice is the same website or user: it is drawn once.
        drawn_sites = crop_rng.integers(source.shape[0], size=n_sites)
        drawn_users = crop_rng.integers(source.shape[1], size=n_users)
        sites, site_of = np.unique(drawn_sites, return_inverse=True)
        users, user_of = np.unique(drawn_users, return_inverse=True)
        crops.append(Crop(size, sites, users))
        repeats.append(np.ix_(np.arange(size), site_of, user_of))
    rates = source.draw(crops, rate_rng)
    ys = [y[repeat] for y, repeat in zip(rates, repeats, strict=True)]
    return Splits(*(Instances(x, y) for x, y in zip(_features(ys, map_rng), ys, strict=True)))


def _features(ys: list[Array], rng: np.random.Generator) -> list[Array]:
    """Scrambles the click rates of each split by one map; the first split gives the scale."""
    n_users = ys[0].shape[2]
    bound = 1 / np.sqrt(n_users)
    matrix = rng.uniform(-bound, bound, size=(n_users, n_users))
    bias = rng.uniform(-bound, bound, size=n_users)
    mean, deviation = ys[0].mean(axis=(0, 1)), ys[0].std(axis=(0, 1))
    deviation[deviation == 0] = 1.0  # a user who never clicks
    return [(y - mean) / deviation @ matrix.T + bias for y in ys]
