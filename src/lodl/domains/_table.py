"""The table of domains."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from lodl.domains._domain import Domain
from lodl.domains._knapsack import item_knapsack, knapsack
from lodl.domains._linear_model import linear_model
from lodl.domains._newsvendor import newsvendor
from lodl.domains._portfolio import portfolio
from lodl.domains._shortest_path import shortest_path
from lodl.domains._web_advertising import web_advertising
from lodl.errors import InvalidInputError

DOMAINS: Mapping[str, Callable[..., Domain]] = MappingProxyType(
    {
        make.__name__: make
        for make in (
            linear_model,
            web_advertising,
            portfolio,
            shortest_path,
            knapsack,
            item_knapsack,
            newsvendor,
        )
    }
)
"""All domains by the names of their functions, the paper's three first."""


def load(name: str, **settings: Any) -> Domain:
    """Return a domain by its name.

    Args:
        name: Name of the domain's function, one of `DOMAINS`.
        **settings: Arguments of that function.

    Example:
        >>> domain = lodl.domains.load("shortest_path", grid=(3, 3), sizes=(4, 2, 2))
        >>> domain.splits.train.y.shape
        (4, 12)
    """
    if name not in DOMAINS:
        raise InvalidInputError(f"`name` must be one of {', '.join(DOMAINS)}, got {name!r}.")
    return DOMAINS[name](**settings)
