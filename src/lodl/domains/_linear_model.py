"""The paper's first domain."""

from lodl import datasets
from lodl.domains._domain import Domain, ModelShape
from lodl.problems import TopK


def linear_model(
    seed: int = 0,
    *,
    sizes: tuple[int, int, int] = (200, 200, 400),
    n_items: int = 50,
    budget: int = 1,
    x_range: tuple[float, float] = (-1.0, 1.0),
) -> Domain:
    """Linear Model: choose the best item, with a model too simple to predict well.

    Data. An instance has 50 items, each with one feature x drawn uniformly from [-1, 1] and the
    utility y = 10 x^3 - 6.5 x. Train, validation and test have 200, 200 and 400 instances, every
    split from a random stream of its own. x has shape (n, 50, 1), y has shape (n, 50).

    Model. A straight line: y_hat = w x + b, the same for all items. It cannot follow the cubic. The
    least-squares line falls (w = -0.5) and so picks the item with the smallest x, nearly always the
    worst; any line that rises picks the item with the largest x, nearly always the best.

    Solver. The `budget` items with the largest predictions, by partition; of equal items the first.
    Exact (`lodl.problems.TopK`).

    Objective. The sum of the true utilities of the chosen items, to be maximised.

    What the paper says, and where we differ. The paper prints x ~ U[0, 1]. On that range every
    method that predicts a rising line scores 1, and its table (2-stage -0.95,
    DirectedWeightedMSE 0.96) cannot come about; it does with x ~ U[-1, 1], which is the default
    here. `x_range=(0, 1)` gives the printed setting. All else is as in the paper.

    Args:
        seed: Of all randomness.
        sizes: Instances in train, validation and test.
        n_items: Items in an instance.
        budget: Items to choose.
        x_range: Where features are drawn, uniformly.
    """
    return Domain(
        problem=TopK(budget),
        splits=datasets.linear_model(seed, sizes=sizes, n_items=n_items, x_range=x_range),
        model=ModelShape(n_features=1, n_outputs=1, hidden=(), output="identity"),
    )
