"""Knapsack: pack the items of most value, with joint features or features of each item."""

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, Flags, Index, InstanceContext
from lodl.domains._domain import Domain, Sizes, check_sizes, in_blocks, legacy_rng, polynomials
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem
from lodl.problems.highs import LinearProgram

_MAX_TABLE = 2**25  # entries of a dynamic program: 32 MB per prediction
_TABLE_BLOCK = 2**20  # entries of the dynamic programs solved at once
_SUBSET_BLOCK = 2**17  # numbers in one temporary array: 1 MB, which stays in the cache
_ROUNDING = 1e-9  # share of the capacity: sums of weights such as 3.1 are not exact

# For sets of one size: the position of the set without its last item, and this item.
_Level = tuple[Index, Index]


def knapsack(
    seed: int = 135,
    *,
    sizes: Sizes = (1000, 250, 1000),
    n_items: int = 16,
    n_dimensions: int = 2,
    capacity: float = 20.0,
    degree: int = 4,
    noise: float = 0.5,
) -> Domain:
    """Knapsack: pack the items of most value, by their predicted values.

    Data: the 16 items have fixed weights in two dimensions, drawn uniformly from 3.00 to 7.99. An
    instance has 5 features, x ~ N(0, I), and values are polynomials of a random half of them,

        y_i = ceil(5 ((B_i x / sqrt(5) + 3)^degree + 1) / 3.5^degree * e_i),

    with a random 0/1 matrix B, the same for all instances, and noise e_i ~ U[1 - noise, 1 + noise].
    x has shape (n, 5), y has shape (n, 16). Model: linear, from the features to all values at once.
    Problem: `Knapsack`; in batches of 500 a call takes 2 µs, with 32 items 18 µs.

    PyEPO (Tang and Khalil, 2024) gives the same data for the same seed and number of instances. The
    least-squares model has a relative test regret of 0.06 to 0.08.
    """
    sizes, rng = check_sizes(sizes), legacy_rng(seed)
    check_count("n_items", n_items)
    check_count("n_dimensions", n_dimensions)
    weights = rng.choice(range(300, 800), size=(n_dimensions, n_items)) / 100
    shape = (sum(sizes), 5, n_items)
    x, y = polynomials(rng, shape, degree=degree, noise=noise, scale=5)
    problem = Knapsack((capacity,) * n_dimensions, tuple(map(tuple, weights.tolist())))
    return Domain.in_order(problem, sizes, x, np.ceil(y))


def item_knapsack(
    seed: int = 135, *, sizes: Sizes = (200, 100, 400), n_items: int = 20, capacity: int = 25
) -> Domain:
    """Knapsack, item by item: pack items that differ from instance to instance.

    Data: each of the 20 items of an instance has 5 features, x_i ~ N(0, I), and a whole weight
    drawn uniformly from 3 to 8, which is the context. Its value is a polynomial of a random half of
    its features, the same half for all items,

        y_i = 5 ((b x_i / sqrt(5) + 3)^6 + 1) / 3.5^6 * e_i,   e_i ~ U[0.5, 1.5].

    x has shape (n, 20, 5), y and the context have shape (n, 20). Model: one linear model for all
    items. Problem: `Knapsack`; in batches of 500 a call takes 1 µs. The task is ours, for models
    that see one item at a time. The least-squares model has a relative test regret of 0.03 to 0.05.
    """
    sizes, rng = check_sizes(sizes), legacy_rng(seed)
    n, n_items = sum(sizes), check_count("n_items", n_items)
    weights = rng.randint(3, 9, size=(n, n_items)).astype(np.float64)
    x, y = polynomials(rng, (n * n_items, 5, 1), degree=6, noise=0.5, scale=5)
    problem = Knapsack((check_count("capacity", capacity),))
    x, y = x.reshape(n, n_items, 5), y.reshape(n, n_items)
    return Domain.in_order(problem, sizes, x, y, weights)


@dataclass(frozen=True)
class Knapsack(LinearProblem):
    """Choose items of the most value whose weights fit, in one dimension or in several.

        max_z  sum_i z_i y_i,   z_i in {0, 1},   sum_i w_di z_i <= capacity_d for every d

    A label has shape (N,), a decision is a vector of N zeros and ones. Weights are the same for all
    instances, or each has its own as context, shape (N,) or (dimensions, N). Always exact:

    - one dimension, whole weights, and a capacity of no more than millions: dynamic programming;
    - otherwise, if at most `max_subsets` sets of items fit: all of them are tried;
    - otherwise: HiGHS, one prediction at a time, in milliseconds instead of microseconds.
    """

    capacity: tuple[float, ...]  #: Capacity in each dimension.
    weights: tuple[tuple[float, ...], ...] | None = None  #: Positive, one row per dimension.
    max_subsets: int = 100_000  #: Largest number of sets to try.
    sense = "max"

    def __post_init__(self) -> None:
        check_count("max_subsets", self.max_subsets, minimum=0)
        if not all(0 < room < np.inf for room in self.capacity):
            raise InvalidInputError(f"`capacity` must be positive numbers, got {self.capacity}.")

    def describe(self, z: Array) -> str:
        return f"packs items {', '.join(map(str, np.flatnonzero(z)))}" if z.any() else "packs none"

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        y_hats = check_labels(y_hats, "y_hats")
        weights = self._weights_of(context, y_hats.shape[1:])
        if len(weights) == 1 and not (weights % 1).any():
            room = int(min(self.capacity[0], weights.sum()))
            if room * y_hats.shape[1] <= _MAX_TABLE:
                best = partial(_best_packing, weights=weights[0].astype(np.int64), capacity=room)
                return in_blocks(best, y_hats, _TABLE_BLOCK // (y_hats.shape[1] * (room + 1)))
        rows = tuple(map(tuple, weights.tolist()))
        subsets = _subsets_that_fit(rows, self.capacity, self.max_subsets)
        if subsets is not None:
            members, levels = subsets
            best = partial(_best_subset, members=members, levels=levels)
            return in_blocks(best, y_hats, _SUBSET_BLOCK // len(members))
        program = LinearProgram(weights, "max", row_upper=self.capacity, upper=1, integrality=1)
        return np.array([program.solve(y_hat) for y_hat in y_hats])

    def _weights_of(self, context: InstanceContext, label_shape: tuple[int, ...]) -> Array:
        """Return the weights of an instance, shape (dimensions, N)."""
        given = context if self.weights is None else self.weights
        if given is None:
            advice = "give `weights`, or the weights of each instance as its context."
            raise InvalidInputError(f"A knapsack needs weights: {advice}")
        weights, shape = np.atleast_2d(given).astype(np.float64), (len(self.capacity), *label_shape)
        if weights.shape != shape:
            wanted = f"shape {shape}, a row per dimension and a column per item of a prediction"
            raise InvalidInputError(f"Weights must have {wanted}, got shape {weights.shape}.")
        if not ((weights > 0) & (weights < np.inf)).all():
            raise InvalidInputError("The weights of a knapsack must be positive numbers.")
        return weights


def _best_packing(y_hats: Array, weights: npt.NDArray[np.int64], capacity: int) -> Array:
    """Return the packing of most value under each prediction, by dynamic programming.

        value(i, room) = max(value(i - 1, room), value(i - 1, room - w_i) + y_i)

    for all rooms and predictions at once. An item that adds nothing is left out.
    """
    # The room is the first axis, so that shifting by a weight takes contiguous memory.
    value = np.zeros((capacity + 1, len(y_hats)))
    is_taken = np.zeros((len(weights), *value.shape), dtype=np.bool_)
    for item, weight in enumerate(weights):
        with_item = value[: max(0, capacity + 1 - weight)] + y_hats[:, item]
        np.greater(with_item, value[weight:], out=is_taken[item, weight:])
        np.maximum(value[weight:], with_item, out=value[weight:])
    zs = np.empty(y_hats.shape)
    each, room = np.arange(len(y_hats)), np.full(len(y_hats), capacity)
    for item in reversed(range(len(weights))):
        taken = is_taken[item, room, each]
        room -= taken * weights[item]
        zs[:, item] = taken
    return zs


@lru_cache(maxsize=8)  # the same weights come back with the next instance or batch of points
def _subsets_that_fit(
    rows: tuple[tuple[float, ...], ...], capacity: tuple[float, ...], max_subsets: int
) -> tuple[Flags, list[_Level]] | None:
    """Return the sets of items within the capacity by size, or None if over `max_subsets`."""
    weights, most = np.array(rows), np.array(capacity) * (1 + _ROUNDING)
    n_items = weights.shape[1]
    members = [np.zeros((1, n_items), dtype=np.bool_)]
    levels: list[_Level] = []
    last, load, n_subsets = np.array([-1]), np.zeros((len(weights), 1)), 1
    while True:
        can_add = last[:, np.newaxis] < np.arange(n_items)  # items enter a set in rising order
        for weight, loaded, limit in zip(weights, load, most, strict=True):
            can_add &= loaded[:, np.newaxis] + weight <= limit
        n_subsets += int(can_add.sum())
        if n_subsets > max_subsets:
            return None
        parents, last = np.nonzero(can_add)
        if len(last) == 0:
            return np.concatenate(members), levels
        load = load[:, parents] + weights[:, last]
        members.append(members[-1][parents])
        members[-1][np.arange(len(last)), last] = True
        levels.append((parents, last))


def _best_subset(y_hats: Array, members: Flags, levels: list[_Level]) -> Array:
    """Return the set of most value under each prediction, the first of equals, shape (k, N)."""
    values = [np.zeros((len(y_hats), 1))]
    for parents, items in levels:
        values.append(values[-1].take(parents, axis=1) + y_hats.take(items, axis=1))
    best: Array = members[np.concatenate(values, axis=1).argmax(axis=1)].astype(np.float64)
    return best
