"""Sector portfolio: buy the assets of highest return within limits per asset and per sector."""

from dataclasses import dataclass

import numpy as np

from lodl._arrays import check_count
from lodl._typing import Array, InstanceContext
from lodl.domains import Domain
from lodl.domains._domain import Sizes, check_sizes, check_vectors, legacy_rng
from lodl.errors import InvalidInputError
from lodl.problems import LinearProblem

_N_DECIMALS = 9  # of a share: equal decisions are equal numbers, however they were added up


def sector_portfolio(
    seed: int = 135,
    *,
    sizes: Sizes = (200, 50, 500),
    n_assets: int = 50,
    max_share: float = 0.1,
    degree: int = 4,
    noise: float = 1.0,
) -> Domain:
    """Sector portfolio: spread money over assets by their predicted returns, within limits.

    Data: an instance has 5 features in all, x ~ N(0, I), and the return of each of 50 assets is a
    polynomial of a random half of them plus noise, part of which the assets share,

        y_j = (0.05 B_j x / sqrt(5) + 0.1^(1 / degree))^degree + L_j f + 0.01 noise e_j,

    with a random 0/1 matrix B and loads L_jk ~ U[-0.0025 noise, 0.0025 noise], the same for all
    instances, and standard normal f and e. Every tenth asset is of the same sector. x has shape
    (n, 5), y has shape (n, 50). Model: linear, from the features to all returns at once. Problem:
    `SectorPortfolio`; in batches a call takes 4 µs.

    The returns are those of Elmachtoub and Grigas (2022) as PyEPO draws them, rounded to single
    precision. Both limit the variance of the portfolio, which takes a conic solver for each
    prediction; we limit what is held of an asset and of a sector.

    Args:
        seed: Random seed for the data.
        sizes: Number of training, validation and test instances.
        n_assets: Assets to choose from.
        max_share: Most of all money to put into one asset.
        degree: Degree of the polynomial.
        noise: Size of the noise.
    """
    sizes, rng = check_sizes(sizes), legacy_rng(seed)
    check_count("degree", degree)
    if not 0 <= noise < np.inf:
        raise InvalidInputError(f"`noise` must be a number of at least 0, got {noise!r}.")
    shape = (check_count("n_assets", n_assets), 5)
    matrix = rng.binomial(1, 0.5, size=shape)
    loads = rng.uniform(-0.0025 * noise, 0.0025 * noise, size=shape)
    x = rng.normal(size=(sum(sizes), 5))
    y = (0.05 * (x @ matrix.T) / np.sqrt(5) + 0.1 ** (1 / degree)) ** degree
    shocks = rng.normal(size=(sum(sizes), 5 + n_assets))
    y += shocks[:, :5] @ loads.T + 0.01 * noise * shocks[:, 5:]
    problem = SectorPortfolio(tuple((np.arange(n_assets) % 10).tolist()), max_share)
    return Domain.in_order(problem, sizes, x, y)


@dataclass(frozen=True)
class SectorPortfolio(LinearProblem):
    """Spread money over N assets for the most return, within limits.

        max_z  z'y,   0 <= z_i <= max_share,   sum_{i in sector} z_i <= max_sector,   sum_i z_i <= 1

    A label is a vector (N,) of returns, a decision a vector (N,) of shares; what does not pay
    stays aside. There is no context. The limits are nested (an asset in a sector, a sector in the
    whole), so that buying the asset of highest return first, as much of it as all limits allow, is
    optimal (Edmonds, 1970).

    Attributes:
        sectors: The sector of each asset, from 0 on.
        max_share: Most of all money to put into one asset.
        max_sector: Most of all money to put into one sector.
    """

    sectors: tuple[int, ...]
    max_share: float = 0.1
    max_sector: float = 0.2
    sense = "max"

    def __post_init__(self) -> None:
        for name in ("max_share", "max_sector"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidInputError(
                    f"`{name}` must be above 0 and at most 1, got {getattr(self, name)!r}."
                )

    def solve_many(self, y_hats: Array, context: InstanceContext = None) -> Array:
        sectors = np.array(self.sectors)
        y_hats = check_vectors(y_hats, len(sectors), "returns, one per asset")
        zs, rows = np.zeros(y_hats.shape), np.arange(len(y_hats))
        left = np.ones(len(y_hats))
        left_in = np.full((len(y_hats), sectors.max() + 1), float(self.max_sector))
        for asset in np.argsort(-y_hats, axis=1, kind="stable").T:
            sector = sectors[asset]
            share = np.minimum(np.minimum(left, left_in[rows, sector]), self.max_share)
            share = np.round(share, _N_DECIMALS) * (y_hats[rows, asset] > 0)
            zs[rows, asset] = share
            left -= share
            left_in[rows, sector] -= share
            if not np.round(left, _N_DECIMALS).any():
                break
        return zs
