"""Click rates on a real graph of website visits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lodl._arrays import check_count
from lodl._typing import Array
from lodl.domains._web_advertising import MAX_RATE, ClickRates, Crop
from lodl.errors import DataError
from lodl_benchmarks.domains._array_archive import UNREADABLE, open_npz


@dataclass(frozen=True, eq=False)
class VisitGraph(ClickRates):
    """A graph of visits; in each instance a visit has a click rate uniform on [0, 0.2].

    The matrix of an instance holds all websites in an order of its own, and users of its own. Each
    user of the graph belongs to one split only.

    Attributes:
        visited: Whether a user visits a website, shape (websites, users).
        n_users: Columns of the matrix of an instance.
    """

    visited: npt.NDArray[np.bool_]
    n_users: int = 500

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.visited), self.n_users

    def draw(self, crops: Sequence[Crop], rng: np.random.Generator) -> list[Array]:
        groups = np.array_split(rng.permutation(self.visited.shape[1]), len(crops))
        if len(groups[-1]) < self.n_users:
            raise DataError(
                f"The graph must have at least {self.n_users} users for each of {len(crops)} "
                f"splits, got {self.visited.shape[1]} in all."
            )
        return [
            np.stack([self._instance(crop, group, stream) for _ in range(crop.n_instances)])
            for crop, group, stream in zip(crops, groups, rng.spawn(len(crops)), strict=True)
        ]

    def _instance(self, crop: Crop, group: npt.NDArray[np.intp], rng: np.random.Generator) -> Array:
        sites = rng.permutation(len(self.visited))[crop.sites]
        users = rng.choice(group, self.n_users, replace=False)[crop.users]
        linked = self.visited[np.ix_(sites, users)]
        rates: Array = linked * rng.uniform(0, MAX_RATE, size=linked.shape)
        return rates


def msweb_graph(path: str | Path, *, n_sites: int = 100) -> VisitGraph:
    """Read a graph of visits from an `.npz` file, such as the UCI Anonymous Microsoft Web Data.

    Args:
        path: A file with two arrays of equal length, `vroot` and `user`: a website and a user for
            each visit, numbered from 0.
        n_sites: Only the most visited websites are kept. Of all 285 most have hardly a visitor;
            the first 100 have links at a rate of 0.029, close to the paper's data.
    """
    visited = _read_visits(Path(path))
    if len(visited) < check_count("n_sites", n_sites):
        raise DataError(f"{path} must have at least {n_sites} websites, got {len(visited)}.")
    most_visited = np.argsort(-visited.sum(axis=1), kind="stable")[:n_sites]
    return VisitGraph(visited[most_visited])


def _read_visits(path: Path) -> npt.NDArray[np.bool_]:
    """Return whether a user visits a website, shape (websites, users)."""
    try:
        with open_npz(path) as arrays:
            sites, users = arrays["vroot"], arrays["user"]
            if min(sites.min(), users.min()) < 0:
                raise ValueError("numbers must not be negative")
            visited = np.zeros((int(sites.max()) + 1, int(users.max()) + 1), dtype=np.bool_)
            visited[sites, users] = True
    except (*UNREADABLE, IndexError) as error:
        raise DataError(
            f"{path} must be an .npz file with arrays `vroot` and `user` of website and user "
            f"numbers: {error}"
        ) from error
    return visited
