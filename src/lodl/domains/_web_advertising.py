"""The paper's second domain."""

from lodl import datasets
from lodl.datasets import ClickRates
from lodl.domains._domain import Domain, ModelShape
from lodl.problems import WebAdvertising


def web_advertising(
    seed: int = 0,
    *,
    source: ClickRates | None = None,
    sizes: tuple[int, int, int] = (80, 20, 500),
    n_sites: int = 5,
    n_users: int = 10,
    budget: int = 2,
) -> Domain:
    """Web Advertising: choose the websites on which most users will click.

    Data. An instance is a matrix y of click rates, 5 websites by 10 users, cut from a larger one
    (100 x 500) of its own. Few users ever see a website: 4 % of the rates are not zero, and more
    than a fifth of the instances have nothing to win. The features of a website are its own click
    rates, standardised by user and scrambled by a random linear map, so all that is to be learned
    is to undo the map. x and y have shape (n, 5, 10); 80, 20 and 500 instances.

    By default the matrices are generated, to the statistics of the data behind the paper
    (`datasets.GeneratedClickRates`). `source=datasets.msweb_graph(path)` takes a real graph of
    website visits, `source=datasets.read_click_matrices(path)` the original for its owners.

    Model. One network for all websites, from 10 features to the 10 click rates of a website: two
    layers with 500 ReLU units between, and a ReLU at the end. With a large step the last ReLU can
    die for good: Adam with 1e-4 trains well.

    Solver. All 10 pairs of websites are tried: exact 0/1 decisions. Where there are more than
    10,000 ways to choose, lazy greedy (`lodl.problems.WebAdvertising`).

    Objective. The expected share of users that click at least once, to be maximised. The paper has
    the expected number, which is the share times the number of users.

    What the paper says, and where we differ. The paper scores fractional decisions of the
    multilinear relaxation, found by gradient steps; we score what can be bought. Its data
    (Yahoo! Webscope) is no longer public, and was a bid graph with random rates, not measured
    clicks. Its features are standardised by each split's own mean and deviation, which moves the
    map to be learned from split to split; ours by those of the training split.

    Args:
        seed: Of all randomness.
        source: Where matrices come from; generated if None.
        sizes: Instances in train, validation and test.
        n_sites: Websites in an instance.
        n_users: Users in an instance.
        budget: Websites to choose.
    """
    return Domain(
        problem=WebAdvertising(budget),
        splits=datasets.web_advertising(
            seed, source=source, sizes=sizes, n_sites=n_sites, n_users=n_users
        ),
        model=ModelShape(n_features=n_users, n_outputs=n_users, hidden=(500,), output="relu"),
    )
