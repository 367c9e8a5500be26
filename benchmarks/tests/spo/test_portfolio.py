import cvxpy as cp
import numpy as np
import pytest

from lodl.domains import Domain
from lodl_benchmarks import spo
from lodl_benchmarks.spo import _portfolio
from lodl_benchmarks.spo._portfolio import founding_portfolio

pytestmark = pytest.mark.slow

CELL = "portfolio-100-1-4"


@pytest.fixture(scope="module", params=[(1, 1.0), (16, 2.0)], ids=str)
def domain(request) -> Domain:
    degree, noise = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_portfolio, "N_TEST", 500)
        return founding_portfolio(3, n=40, degree=degree, noise=noise)


def test_decisions_are_those_of_a_conic_solver(domain):
    problem, y = domain.problem, domain.splits.test.y[:8].copy()
    y[0] -= 2 * y[0].max()  # no asset gains
    y[1] -= np.median(y[1])
    root = np.linalg.cholesky(
        problem.loads @ problem.loads.T + problem.deviation**2 * np.eye(len(problem.loads))
    )
    for label, z in zip(y, problem.solve_many(y, None), strict=True):
        shares = cp.Variable(len(label), nonneg=True)
        risk = cp.norm(root.T @ shares) <= problem.limit**0.5
        model = cp.Problem(cp.Maximize(label @ shares), [cp.sum(shares) <= 1, risk])
        model.solve(solver="CLARABEL")
        assert label @ z == pytest.approx(model.value, rel=1e-6, abs=1e-9)


def test_decisions_keep_all_limits_and_do_not_depend_on_their_batch(domain):
    problem, y = domain.problem, domain.splits.test.y
    z = problem.solve_many(y, None)
    assert z.min() >= 0
    assert z.sum(axis=1).max() <= 1 + 1e-12
    assert problem._variance(z).max() <= problem.limit * (1 + 1e-12)
    assert np.allclose(problem.solve_many(y[7:8], None)[0], z[7], atol=1e-8)


def test_most_money_is_not_in_the_best_asset_because_risk_is_limited(domain):
    z = domain.problem.solve_many(domain.splits.test.y, None)
    assert (z > 1e-6).sum(axis=1).min() > 10
    assert z.sum(axis=1).min() > 0.999


def test_a_portfolio_has_a_row_of_each_method_that_can_solve_it(tmp_path, monkeypatch):
    monkeypatch.setattr(_portfolio, "N_TEST", 200)
    trials = spo.plan([CELL], ["least squares", "SPO+", "SPO+, all rows", "lodl"], {100: (1,)})
    assert [trial.method for trial in trials] == ["least squares", "SPO+", "lodl"]
    rows = spo.run(trials, tmp_path, progress=False)
    assert all(0 < row["percent"] < 20 for row in rows)
    published = {("portfolio", 100, 1.0, 4, "SPO+"): spo.Figure(2.64, 0.01)}
    text = "\n".join(table.markdown() for table in spo.tables(rows, published))
    assert "portfolio, n = 100, noise 1, degree 4" in text
    assert "2.640 ± 0.010" in text
    assert "0 of 0 cells" not in text
