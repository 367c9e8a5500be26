"""A mixed-integer program of about a second a solve: sites to open, at predicted operating costs.

    python results/structure/facility.py SEED 1 2 default ...   # adds to rows.jsonl
    python results/structure/facility.py SEED SPO+ ...          # ten minutes and more each

Twenty sites may be opened to serve sixty customers, who may be served by several. Opening a site
and shipping have known costs; what a site costs per unit that it handles (0.3 plus 0.3 of a
polynomial of degree 6 with noise 0.5) is predicted by a linear model of five features. All else is
as in `commitment.py`, which has the methods and writes the rows; 80 instances train.
"""

import sys

import numpy as np
from commitment import run
from scipy.sparse import block_array, coo_array, csc_array, eye_array, kron

from lodl.domains._domain import legacy_rng, polynomials
from lodl.problems.highs import LinearProgram

N, N_TEST, SITES, CUSTOMERS = 80, 60, 20, 60
UNIT = 10.0  # of demand


def facility(seed: int) -> LinearProgram:
    """Return the program of all variables: shares of customers by site, open sites, units."""
    rng, s, c = np.random.default_rng(seed), SITES, CUSTOMERS
    sites, customers = rng.random((s, 2)), rng.random((c, 2))
    demand, room = rng.uniform(5, 35, c) / UNIT, rng.uniform(1, 2, s)
    room *= 4 * demand.sum() / room.sum()
    shipping = np.linalg.norm(sites[:, None] - customers[None], axis=2) * demand
    opening = 0.5 * np.sqrt(UNIT * room) * rng.uniform(2, 4, s)
    of_site, every = kron(eye_array(s), demand[None]), eye_array(s * c)
    at_open = kron(eye_array(s), np.ones((c, 1)))
    matrix = block_array(
        [
            [kron(np.ones((1, s)), eye_array(c)), None, None],  # all customers are served
            [every, -at_open, None],  # by open sites
            [of_site, -coo_array(np.diag(room)), None],  # that have the room
            [of_site, None, -eye_array(s)],  # and handle this many units
        ]
    )
    at_most = np.full(s * c + s, -np.inf)
    return LinearProgram(
        csc_array(matrix),
        "min",
        row_lower=np.r_[np.ones(c), at_most, np.zeros(s)],
        row_upper=np.r_[np.ones(c), np.zeros(s * c + 2 * s)],
        upper=np.r_[np.ones(s * c + s), np.full(s, np.inf)],
        integrality=np.r_[np.zeros(s * c), np.ones(s), np.zeros(s)],
        costs=np.r_[shipping.ravel(), opening, np.zeros(s)],
        predicted=range(s * c + s, s * c + 2 * s),
        options={"mip_rel_gap": 1e-5},
    )


if __name__ == "__main__":
    SEED = int(sys.argv[1])
    X, Y = polynomials(legacy_rng(SEED), (N + N_TEST, 5, SITES), degree=6, noise=0.5)
    run("facility", facility(SEED), X, 0.3 + 0.3 * Y, N)
