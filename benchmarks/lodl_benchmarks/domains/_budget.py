"""Budget: give customers treatments of most effect that one budget can pay."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count, check_labels
from lodl._typing import Array, InstanceContext
from lodl.domains._domain import Domain, Sizes, check_sizes
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem
from lodl_benchmarks.domains._streams import streams

_ROUNDING = 1e-9  # share of the budget
_BUDGETS = (0.2, 1.0)  # range of the budgets per customer
_N_FEATURES = 8


def budget(
    seed: int = 0, *, sizes: Sizes = (200, 50, 200), n_customers: int = 100, noise: float = 1.0
) -> Domain:
    """Budget: choose at most one of three treatments for each customer of a batch.

    Data: a customer has 8 features, x ~ N(0, I), and treatments of costs 1, 2 and 4 have effects

        tau_t = a_t exp(0.8 w_t x),   a = (0.5, 0.9, 1.5),

    with unit vectors w_t, which are positive and uneven. A label is the effect plus normal noise.
    An instance is a batch of customers, and its context their budget, drawn uniformly from 0.2 to
    1.0 per customer. x has shape (n, 100, 8), y (n, 100, 3), the context (n,). Model: linear, from
    the features of a customer to all effects. Problem: `Budget`; in batches of 50 predictions a
    call takes about 40 µs. The task is ours. `lodl_benchmarks.budget` has labels of trials.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_customers: Customers in an instance.
        noise: Standard deviation of the noise.
    """
    map_rng, x_rng, noise_rng, budget_rng = streams("budget", seed, 4)
    n, n_customers = sum(check_sizes(sizes)), check_count("n_customers", n_customers)
    weights = map_rng.normal(size=(_N_FEATURES, 3))
    weights /= np.linalg.norm(weights, axis=0)
    x = x_rng.normal(size=(n, n_customers, _N_FEATURES))
    y = np.array([0.5, 0.9, 1.5]) * np.exp(0.8 * x @ weights)
    y += noise * noise_rng.normal(size=y.shape)
    budgets = n_customers * budget_rng.uniform(*_BUDGETS, size=n)
    return Domain.in_order(Budget((1.0, 2.0, 4.0)), sizes, x, y, budgets)


class Cut(NamedTuple):
    """The end of a budget: steps above the price are paid, and those at it up to a customer."""

    price: float  # value per unit of money
    row: int  # customers before it also get the steps whose value is the price


class Steps(NamedTuple):
    """Each customer's treatments in the order in which more money buys them, shape (n, T).

    Values per unit of money do not rise along a row. Steps that nobody would pay for are zero.
    """

    value: Array  # additional effect per additional unit of money
    extra: Array  # additional money
    treatment: npt.NDArray[np.int8]  # the treatment that it leads to, from 0

    def of(self, rows: slice) -> "Steps":
        """Return the steps of some customers."""
        return Steps(self.value[rows], self.extra[rows], self.treatment[rows])

    def chosen(self, cut: Cut, first: int = 0) -> npt.NDArray[np.int8]:
        """Return the treatment of each customer, -1 for none, if the first is number `first`."""
        is_before = first + np.arange(len(self.value)) < cut.row
        is_paid = self.value > cut.price
        is_paid |= (self.value == cut.price) & is_before[:, np.newaxis] & (self.value > 0)
        chosen = np.full(len(self.value), -1, dtype=np.int8)
        for paid, treatment in zip(is_paid.T, self.treatment.T, strict=True):
            np.copyto(chosen, treatment, where=paid)
        return chosen


def steps_of(effects: Array, costs: Array) -> Steps:
    """Return the upper hull of each customer's effects (n, T) over costs (T,), from nothing on.

    At a price p, `argmax_t effect_t - p cost_t` is the last step whose value is above p.
    """
    n, n_treatments = effects.shape
    value, extra = np.zeros((n_treatments, n)), np.zeros((n_treatments, n))
    reached = np.zeros((n_treatments, n), dtype=np.int8)
    effect, cost, last = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    for step in range(n_treatments):
        best, best_value = np.full(n, -1, dtype=np.int8), np.zeros(n)
        for treatment in range(n_treatments):
            more = costs[treatment] - cost
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = (effects[:, treatment] - effect) / more
            is_best = (more > 0) & (ratio > best_value)
            np.copyto(best, np.int8(treatment), where=is_best)
            np.copyto(best_value, ratio, where=is_best)
        rows = np.flatnonzero(best >= 0)
        if not len(rows):
            break
        to = best[rows]
        last[rows] = np.minimum(best_value[rows], last[rows])  # rounding must not make it rise
        value[step, rows], reached[step, rows] = last[rows], to
        extra[step, rows] = costs[to] - cost[rows]
        effect[rows], cost[rows] = effects[rows, to], costs[to]
    return Steps(value.T, extra.T, reached.T)


def cut_of(steps: Steps, budget: float) -> Cut:
    """Return where the budget ends: the first step, by value and then customer, that it lacks."""
    value, extra = steps.value.ravel(), steps.extra.ravel()
    order = np.argsort(-value, kind="stable")
    spent = np.cumsum(extra[order])
    n_paid = int(np.searchsorted(spent, paid_by(budget), side="right"))
    if n_paid == len(order) or value[order[n_paid]] == 0:
        return Cut(0.0, 0)
    end = order[n_paid]
    return Cut(float(value[end]), int(end // steps.value.shape[1]))


def paid_by(budget: float) -> float:
    """Return the money that may be spent: sums of costs such as 0.1 are not exact."""
    return budget * (1 + _ROUNDING)


@dataclass(frozen=True)
class Budget(LinearProblem):
    """Give each customer at most one treatment, within a budget for all.

        max_z  sum_it z_it y_it,   z_it in {0, 1},   sum_t z_it <= 1,   sum_it c_t z_it <= budget

    A label has shape (customers, T): the effect of each treatment on each customer. A decision has
    its shape, the context is the budget. A price on money decides: each customer gets the treatment
    of most effect less its price. This is the linear relaxation, in which one customer may be
    treated in part; here the step that the budget cannot pay in whole is left out, so that a
    decision is worth less than the best one by at most one customer's step.
    """

    costs: tuple[float, ...]  #: The positive cost of each treatment.
    sense = "max"

    def __post_init__(self) -> None:
        if not self.costs or not all(0 < cost < np.inf for cost in self.costs):
            raise InvalidInputError(f"`costs` must be positive numbers, got {self.costs}.")

    def describe(self, z: Array) -> str:
        return "treats " + ", ".join(f"{int(n)} by {t}" for t, n in enumerate(z.sum(axis=0)))

    def solve_many(self, y_hats: Array, context: InstanceContext) -> Array:
        y_hats, costs = check_labels(y_hats, "y_hats"), np.array(self.costs)
        if y_hats.ndim != 3 or y_hats.shape[2] != len(costs):
            wanted = f"shape (customers, {len(costs)}), a column per treatment"
            raise InvalidInputError(f"A prediction must have {wanted}, got {y_hats.shape[1:]}.")
        money = _budget_of(context)
        steps = steps_of(y_hats.reshape(-1, len(costs)), costs)
        zs, n = np.zeros(y_hats.shape), y_hats.shape[1]
        for number, z in enumerate(zs):
            own = steps.of(slice(number * n, (number + 1) * n))
            chosen = own.chosen(cut_of(own, money))
            treated = np.flatnonzero(chosen >= 0)
            z[treated, chosen[treated]] = 1.0
        return zs


def _budget_of(context: Any) -> float:
    """Return the budget of an instance."""
    money = np.asarray(np.nan if context is None else context, dtype=np.float64)
    if money.size != 1 or not 0 <= money.item() < np.inf:
        raise InvalidInputError(f"The context must be a budget of at least 0, got {context!r}.")
    return float(money.item())
