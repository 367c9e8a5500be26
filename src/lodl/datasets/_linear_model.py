"""Items whose utility is a cubic of their feature."""

from lodl._validation import check_count
from lodl.datasets._instances import Instances, Sizes, Splits, check_sizes, streams


def linear_model(
    seed: int = 0,
    *,
    sizes: Sizes = (200, 200, 400),
    n_items: int = 50,
    x_range: tuple[float, float] = (-1.0, 1.0),
) -> Splits:
    """Draws items with one feature x and the utility y = 10 x^3 - 6.5 x.

    Args:
        seed: Of all randomness.
        sizes: Instances in train, validation and test.
        n_items: Items in an instance.
        x_range: Where features are drawn, uniformly. The paper prints (0, 1), but its results need
            (-1, 1): on (0, 1) every model that rises picks the best item.

    Returns:
        x of shape (n, n_items, 1), y of shape (n, n_items), no context.
    """
    check_count("n_items", n_items)
    splits = []
    for size, rng in zip(check_sizes(sizes), streams("linear model", seed, 3), strict=True):
        x = rng.uniform(*x_range, size=(size, n_items))
        splits.append(Instances(x[..., None], 10 * x**3 - 6.5 * x))
    return Splits(*splits)
