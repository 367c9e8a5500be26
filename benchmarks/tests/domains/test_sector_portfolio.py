import numpy as np
import pytest
from scipy.optimize import linprog

from lodl.errors import InvalidInputError
from lodl_benchmarks.domains import SectorPortfolio, sector_portfolio

SECTORS = (0, 1, 2, 0, 1, 2, 0, 0)


@pytest.mark.parametrize(("max_share", "max_sector"), [(0.1, 0.25), (0.3, 0.4), (0.5, 0.3), (1, 1)])
def test_shares_are_those_of_the_linear_program(max_share, max_sector):
    problem = SectorPortfolio(SECTORS, max_share, max_sector)
    y_hats = np.random.default_rng(0).normal(0.3, 1.0, size=(30, len(SECTORS)))
    of_sector = np.equal.outer(range(3), SECTORS).astype(float)
    limits = np.vstack([of_sector, np.ones(len(SECTORS))])
    for y_hat, z in zip(y_hats, problem.solve_many(y_hats), strict=True):
        found = linprog(-y_hat, A_ub=limits, b_ub=[*[max_sector] * 3, 1.0], bounds=(0, max_share))
        np.testing.assert_allclose(z, found.x, atol=1e-9)


def test_nothing_is_left_of_a_limit_by_rounding():
    z = SectorPortfolio((0,) * 5, max_share=0.1, max_sector=0.3).solve(np.arange(5.0, 0, -1), None)
    np.testing.assert_array_equal(z, [0.1, 0.1, 0.1, 0, 0])


def test_what_does_not_pay_is_not_bought():
    assert not SectorPortfolio(SECTORS).solve(np.full(8, -0.1), None).any()


def test_the_returns_are_those_of_pyepo():
    data = pytest.importorskip("pyepo.data")
    domain = sector_portfolio(7, sizes=(3, 2, 2), n_assets=6, degree=8, noise=2.0)
    _, x, y = data.portfolio.genData(7, 5, 6, deg=8, noise_level=2.0, seed=7)
    given, test = domain.splits.train_and_validation, domain.splits.test
    np.testing.assert_array_equal(np.concatenate([given.x, test.x]), x)
    np.testing.assert_array_equal(np.concatenate([given.y, test.y]).astype(np.float32), y)


def test_limits_and_predictions_must_make_sense():
    with pytest.raises(InvalidInputError, match="`max_share` must be above 0 and at most 1, got 2"):
        sector_portfolio(max_share=2)
    with pytest.raises(InvalidInputError, match="`noise` must be a number of at least 0, got -1"):
        sector_portfolio(noise=-1)
    with pytest.raises(InvalidInputError, match=r"a vector of 8 returns.*got shape \(7,\)"):
        SectorPortfolio(SECTORS).solve(np.zeros(7), None)
