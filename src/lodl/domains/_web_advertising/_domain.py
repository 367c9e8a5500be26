"""The domain: click rates, features that scramble them, and the shape of the model."""

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.domains._domain import Domain, ModelShape
from lodl.domains._instances import Instances, Sizes, Splits, check_sizes, streams
from lodl.domains._web_advertising._click_rates import ClickRates, Crop, GeneratedClickRates
from lodl.domains._web_advertising._problem import WebAdvertising


def web_advertising(
    seed: int = 0,
    *,
    source: ClickRates | None = None,
    sizes: Sizes = (80, 20, 500),
    n_sites: int = 5,
    n_users: int = 10,
    budget: int = 2,
) -> Domain:
    """Web Advertising: choose the websites on which most users will click.

    Data. An instance is a matrix y of click rates, 5 websites by 10 users, cut from a larger matrix
    (100 x 500) of its own. A split takes the same rows and columns, drawn with replacement, from
    all of its matrices. Few users ever see a website: 4% of the rates are not zero, and in more
    than a fifth of the instances there is nothing to win. The features of a website are its own
    click rates, standardised by user and sent through a random linear map,

        x_m = A ((y_m - mean) / deviation) + b,   A and b uniform on +-1/sqrt(n_users),

    so all that there is to learn is to undo the map. Mean and deviation are those of the training
    split, A and b are the same for all splits. x and y have shape (n, 5, 10), there is no context,
    and there are 80 training, 20 validation and 500 test instances.

    By default the matrices are generated to match the statistics of the data behind the paper
    (`GeneratedClickRates`). Pass other data as a `source`, a `ClickRates`.

    Model. One network for all websites, from the 10 features of a website to its 10 click rates:
    two layers with 500 ReLU units between them, and a ReLU at the end. With a large step the last
    ReLU can die for good; Adam with a learning rate of 1e-4 trains well.

    Solver. `WebAdvertising`: all 10 pairs of websites are tried, so decisions are exact and 0/1.
    Where there are more than 10,000 ways to choose, lazy greedy.

    Objective. The expected share of users who click at least once, to be maximised. The paper has
    the expected number, which is the share times the number of users.

    What the paper says, and where we differ. The paper scores fractional decisions of the
    multilinear relaxation, found by gradient steps; we score what can be bought. Its data
    (Yahoo! Webscope) is no longer public, and was a bid graph with random rates, not measured
    clicks. Its features are standardised by each split's own mean and deviation, which moves the
    map to be learned from split to split; ours by those of the training split.

    Args:
        seed: Random seed for the click rates and the features.
        source: Supply of click-rate matrices; `GeneratedClickRates()` if None.
        sizes: Number of training, validation and test instances.
        n_sites: Websites in an instance.
        n_users: Users in an instance.
        budget: Websites to choose.
    """
    source = GeneratedClickRates() if source is None else source
    check_count("n_sites", n_sites)
    check_count("n_users", n_users)
    crop_rng, rate_rng, map_rng = streams("web advertising", seed, 3)
    ys = _click_rates(source, check_sizes(sizes), (n_sites, n_users), crop_rng, rate_rng)
    xs = _features(ys, map_rng)
    return Domain(
        problem=WebAdvertising(budget),
        splits=Splits(*(Instances(x, y) for x, y in zip(xs, ys, strict=True))),
        model=ModelShape(n_features=n_users, n_outputs=n_users, hidden=(500,), output="relu"),
    )


def _click_rates(
    source: ClickRates,
    sizes: Sizes,
    shape: tuple[int, int],
    crop_rng: np.random.Generator,
    rate_rng: np.random.Generator,
) -> list[Array]:
    """Return the labels of each split, shape (size, *shape)."""
    crops, repeats = [], []
    for size in sizes:
        # A row or column that is drawn twice is the same website or user: its rates are drawn once.
        drawn_sites = crop_rng.integers(source.shape[0], size=shape[0])
        drawn_users = crop_rng.integers(source.shape[1], size=shape[1])
        sites, site_of = np.unique(drawn_sites, return_inverse=True)
        users, user_of = np.unique(drawn_users, return_inverse=True)
        crops.append(Crop(size, sites, users))
        repeats.append(np.ix_(np.arange(size), site_of, user_of))
    rates = source.draw(crops, rate_rng)
    return [y[repeat] for y, repeat in zip(rates, repeats, strict=True)]


def _features(ys: list[Array], rng: np.random.Generator) -> list[Array]:
    """Scramble the click rates of each split by one map; the first split gives the scale."""
    n_users = ys[0].shape[2]
    bound = 1 / np.sqrt(n_users)
    matrix = rng.uniform(-bound, bound, size=(n_users, n_users))
    bias = rng.uniform(-bound, bound, size=n_users)
    mean, deviation = ys[0].mean(axis=(0, 1)), ys[0].std(axis=(0, 1))
    deviation[deviation == 0] = 1.0  # a user who never clicks
    return [(y - mean) / deviation @ matrix.T + bias for y in ys]
