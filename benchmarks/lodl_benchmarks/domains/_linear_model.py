"""Linear Model: choose the best of many items. The paper's first domain."""

from lodl._arrays import check_count
from lodl.domains import Domain, Split, Splits, TopK
from lodl.domains._domain import Sizes, check_sizes
from lodl_benchmarks.domains._streams import streams


def linear_model(seed: int = 0, *, sizes: Sizes = (200, 200, 400), n_items: int = 50) -> Domain:
    """Linear Model: choose the best item, with a model too simple to predict well.

    Data: an instance has 50 items, each with one feature x drawn uniformly from [-1, 1] and the
    utility y = 10 x^3 - 6.5 x. x has shape (n, 50, 1), y has shape (n, 50).

    Model: a straight line, y_hat = w x + b, the same for all items. The least-squares line falls
    and picks nearly always the worst item, any rising line nearly always the best. Problem: `TopK`.

    Differences from the paper: it prints x ~ U[0, 1], which contradicts its table.

    Args:
        seed: Random seed for the features.
        sizes: Number of training, validation and test instances.
        n_items: Items in an instance.
    """
    check_count("n_items", n_items)
    splits = []
    for size, rng in zip(check_sizes(sizes), streams("linear model", seed, 3), strict=True):
        x = rng.uniform(-1, 1, size=(size, n_items))
        splits.append(Split(x[..., None], 10 * x**3 - 6.5 * x))
    return Domain(TopK(1), Splits(*splits))
