"""The domains: values from features of the instance, or from features of each item."""

import numpy as np

from lodl._arrays import check_count
from lodl.domains._domain import Domain, ModelShape
from lodl.domains._instances import Instances, Sizes, check_sizes, split_in_order
from lodl.domains._knapsack._problem import Knapsack
from lodl.domains._polynomial import legacy_rng, polynomial_labels


def knapsack(
    seed: int = 135,
    *,
    sizes: Sizes = (1000, 250, 1000),
    n_items: int = 16,
    n_dimensions: int = 2,
    capacity: float = 20.0,
    n_features: int = 5,
    degree: int = 4,
    noise: float = 0.5,
) -> Domain:
    """Knapsack: pack the items of most value, by their predicted values.

    Data. The 16 items have fixed weights in two dimensions, drawn uniformly from 3.00 to 7.99, so
    that about four of them fit. An instance has 5 features in all, x ~ N(0, I), and the value of
    each item is a polynomial of a random half of them, rounded up to a whole number,

        y_i = ceil(5 ((B_i x / sqrt(5) + 3)^degree + 1) / 3.5^degree * e_i),

    with a random 0/1 matrix B, the same for all instances, and noise e_i ~ U[1 - noise, 1 + noise].
    x has shape (n, 5), y has shape (n, 16), and there is no context.

    Model. Linear, from the 5 features to all 16 values at once.

    Solver. `Knapsack`: all sets of items that fit are tried (871 of them). Exact. In batches of 500
    a call takes 2 µs; with 32 items 18 µs in two dimensions and 44 µs in one:
    `python speed/domains.py`.

    Objective. The sum of the true values of the packed items, to be maximised.

    What is known, and where we differ. The data is that of PyEPO (Tang and Khalil, 2024), which
    gives the same weights, features and values for the same seed and the same number of instances
    in all. The least-squares model has a relative test regret of 0.06 to 0.08, depending on the
    seed.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_items: Items in an instance.
        n_dimensions: Dimensions in which items have a weight.
        capacity: Capacity, the same in every dimension.
        n_features: Features of an instance.
        degree: Degree of the polynomial.
        noise: Half width of the multiplicative noise.
    """
    sizes, rng = check_sizes(sizes), legacy_rng(seed)
    check_count("n_items", n_items)
    check_count("n_dimensions", n_dimensions)
    weights = rng.choice(range(300, 800), size=(n_dimensions, n_items)) / 100
    shape = (sum(sizes), n_features, n_items)
    x, y = polynomial_labels(rng, shape, degree=degree, noise=noise, scale=5)
    return Domain(
        problem=Knapsack((capacity,) * n_dimensions, tuple(map(tuple, weights.tolist()))),
        splits=split_in_order(Instances(x, np.ceil(y)), sizes),
        model=ModelShape(n_features, n_outputs=n_items, hidden=(), output="identity"),
    )


def item_knapsack(
    seed: int = 135,
    *,
    sizes: Sizes = (200, 100, 400),
    n_items: int = 20,
    capacity: int = 25,
    n_features: int = 5,
    degree: int = 6,
    noise: float = 0.5,
) -> Domain:
    """Knapsack, item by item: pack items that differ from instance to instance.

    Data. Each of the 20 items of an instance has features of its own, x_i ~ N(0, I) of 5 numbers,
    and a whole weight drawn uniformly from 3 to 8, which is the context. Its value is a polynomial
    of a random half of its features, the same half for all items,

        y_i = 5 ((b x_i / sqrt(5) + 3)^degree + 1) / 3.5^degree * e_i,

    with noise e_i ~ U[1 - noise, 1 + noise]. x has shape (n, 20, 5), y has shape (n, 20), the
    context has shape (n, 20).

    Model. One linear model for all items, from 5 features to a value. What matters is the value per
    weight, so the model cannot do with the right order of the items alone.

    Solver. `Knapsack`: dynamic programming over the capacity, for all predictions of an instance at
    once. Exact. In batches of 500 a call takes 1 µs: `python speed/domains.py`.

    Objective. The sum of the true values of the packed items, to be maximised.

    What is known. The task is ours: the item-wise counterpart of `knapsack`, with weights as
    context, for models that see one item at a time (gradient-boosted trees among them). The
    least-squares model has a relative test regret of 0.03 to 0.05, depending on the seed.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_items: Items in an instance.
        capacity: Total weight that fits.
        n_features: Features of an item.
        degree: Degree of the polynomial.
        noise: Half width of the multiplicative noise.
    """
    sizes, rng = check_sizes(sizes), legacy_rng(seed)
    n, n_items = sum(sizes), check_count("n_items", n_items)
    weights = rng.randint(3, 9, size=(n, n_items)).astype(np.float64)
    shape = (n * n_items, n_features, 1)
    x, y = polynomial_labels(rng, shape, degree=degree, noise=noise, scale=5)
    instances = Instances(x.reshape(n, n_items, n_features), y.reshape(n, n_items), weights)
    return Domain(
        problem=Knapsack((check_count("capacity", capacity),)),
        splits=split_in_order(instances, sizes),
        model=ModelShape(n_features, n_outputs=1, hidden=(), output="identity"),
    )
